#include "runtime/head/request_ledger.h"

#include <utility>

#include "runtime/control/control_codec.h"
#include "runtime/control/request_ids.h"
#include "runtime/core/log.h"

namespace runtime {

namespace {

// Larger ones are those of placement groups, which are asked for again by their ids.
constexpr std::size_t kReplyBytesMax = 4096;

}  // namespace

ControlAnswerer RequestLedger::once(HeadCall& call, const ControlRequest& request,
                                    ControlAnswerer answer) {
  if (request.id.is_none() || !carries_id(request.body)) return answer;
  call.id = request.id;
  if (auto waiting = under_way_.find(call.id); waiting != under_way_.end()) {
    waiting->second.push_back(std::move(answer));
    return nullptr;
  }
  const RequestRecord* known = context_.tables.requests().find(call.id);
  if (known && known->reply) {
    LOG(debug, "request {} comes again; it has its answer", call.id.short_hex());
    answer(decode_control_reply(Buffer::copy_of(*known->reply)));
    return nullptr;
  }
  call.has_begun = known != nullptr;
  call.about = known ? known->about : 0;
  under_way_[call.id].push_back(std::move(answer));
  return
      [this, id = call.id](Result<ControlAnswer> result) { this->answer(id, std::move(result)); };
}

void RequestLedger::note_begun(const HeadCall& call, std::uint64_t about) {
  if (!call.id.is_none() && !call.has_begun)
    context_.commit(command::RequestBegun{call.id, unix_milliseconds(), about});
}

void RequestLedger::answer(RequestId id, Result<ControlAnswer> result) {
  const Buffer reply = encode(result);
  if (reply.size() <= kReplyBytesMax)
    context_.commit(command::RequestAnswered{id, unix_milliseconds(), std::string(reply.text())});
  std::vector<ControlAnswerer> waiting = std::move(under_way_.extract(id).mapped());
  while (waiting.size() > 1) {
    waiting.back()(result);
    waiting.pop_back();
  }
  waiting.front()(std::move(result));
}

}  // namespace runtime
