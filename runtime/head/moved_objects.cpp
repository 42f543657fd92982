#include "runtime/head/moved_objects.h"

#include <memory>
#include <utility>

#include "runtime/head/head_words.h"

namespace runtime {

namespace {

/// One question to many nodes: the first that knows answers it.
struct NodesAsked {
  ControlAnswerer answer;
  std::size_t outstanding = 1;
  void end(const Status& none) {
    if (--outstanding == 0 && answer) answer(none);
  }
};

}  // namespace

void MovedObjects::serve(const HeadCall& call, control::FindObject& body, ControlAnswerer answer) {
  const NodeDeparture* departure = context_.tables.nodes().departure(body.node);
  const bool is_leaving = drained_.contains(body.node);  // it may have closed its port already
  if (!is_leaving && (!departure || !departure->drained))
    return answer(not_found("node " + body.node.short_hex() + " was not drained"));
  auto asked = std::make_shared<NodesAsked>();
  asked->answer = std::move(answer);
  const Status none = not_found((is_leaving ? drained_.text(body.node) : departure->why) +
                                "; no other node has taken the object over");
  for (const auto& [id, info] : context_.tables.nodes().all()) {
    if (id == body.node) continue;
    ++asked->outstanding;
    const auto time =
        head_words::until(context_.now(), call.deadline) / 2 + std::chrono::milliseconds(1);
    context_.links.request(
        id, ControlRequest{{}, time, ObjectControl{body}},
        [asked, none](Result<ControlAnswer> found) {
          auto* objects = found.ok() ? std::get_if<ObjectControlAnswer>(&*found) : nullptr;
          if (objects && std::holds_alternative<ObjectLocation>(*objects) && asked->answer)
            std::exchange(asked->answer, nullptr)(std::move(found));
          asked->end(none);
        });
  }
  asked->end(none);
}

}  // namespace runtime
