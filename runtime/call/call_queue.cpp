#include "runtime/call/call_queue.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/call/call_numbers.h"
#include "runtime/call/outgoing_call.h"

namespace runtime {

/// While no calls may be made.
struct CallQueue::Hold {
  Status why;
  std::size_t holders = 0;
  std::vector<std::function<void()>> quiet;  // to be called
};

CallQueue::CallQueue(CallNumbers& numbers, bool out_of_order)
    : numbers_(numbers), out_of_order_(out_of_order) {}

CallQueue::~CallQueue() = default;

void CallQueue::push(OutgoingCallPtr call) {
  call->order = ++order_;
  line_.push_back(std::move(call));
}

OutgoingCallPtr CallQueue::pop(std::vector<BlockedCall>& blocked) {
  while (!line_.empty()) {
    ObjectStatePtr blocker = line_.front()->blocker();
    if (blocker && !out_of_order_) {
      if (watched_ == blocker.get()) return nullptr;
      watched_ = blocker.get();
      blocked.push_back({std::move(blocker), {}});
      return nullptr;
    }
    OutgoingCallPtr call = std::move(line_.front());
    line_.pop_front();
    if (!blocker) return call;
    if (!aside_) aside_ = std::make_unique<std::map<std::uint64_t, OutgoingCallPtr>>();
    blocked.push_back({std::move(blocker), call});
    const std::uint64_t order = call->order;
    aside_->emplace(order, std::move(call));
  }
  return nullptr;
}

void CallQueue::on_settled(const ObjectState* blocker, const std::weak_ptr<OutgoingCall>& aside) {
  if (!out_of_order_) {
    if (watched_ == blocker) watched_ = nullptr;
    return;
  }
  // Else its time was up, or it was cancelled.
  if (OutgoingCallPtr call = aside.lock(); call && take_from_aside(*call))
    line_.push_back(std::move(call));
}

bool CallQueue::take_from_aside(const OutgoingCall& call) {
  if (!aside_ || aside_->erase(call.order) == 0) return false;
  if (aside_->empty()) aside_.reset();
  return true;
}

// Behind those that came back before it.
void CallQueue::put_back(OutgoingCallPtr call) {
  call->sequence = 0;
  call->channel.reset();
  auto place = line_.begin();
  while (place != line_.end() && (*place)->order < call->order) ++place;
  line_.insert(place, std::move(call));
  watched_ = nullptr;
}

bool CallQueue::remove(const OutgoingCallPtr& call) {
  const auto found = std::find(line_.begin(), line_.end(), call);
  if (found == line_.end()) return take_from_aside(*call);
  line_.erase(found);
  return true;
}

void CallQueue::orphan_line() {
  for (OutgoingCallPtr& call : std::exchange(line_, {})) orphans_.push_back(std::move(call));
}

bool CallQueue::settle_orphans(const Status& why, bool keep_unsent,
                               std::vector<FailedCall>& failed) {
  std::list<OutgoingCallPtr> again;
  for (OutgoingCallPtr& call : std::exchange(orphans_, {})) {
    const bool unsent = call->sequence == 0;
    if (!unsent) numbers_.end(call->sequence);  // sent again it has another number
    const bool is_kept = unsent && keep_unsent;
    if ((!is_kept && call->retries_left == 0) || call->forced) {
      failed.push_back({std::move(call), why});
      continue;
    }
    if (!is_kept) call->retries_left -= call->retries_left > 0 ? 1 : 0;
    call->sequence = 0;
    call->channel.reset();
    again.push_back(std::move(call));
  }
  if (again.empty()) return false;
  line_.splice(line_.end(), again);
  line_.sort(
      [](const OutgoingCallPtr& a, const OutgoingCallPtr& b) { return a->order < b->order; });
  watched_ = nullptr;
  return true;
}

void CallQueue::fail_line(const Status& why, std::vector<FailedCall>& failed) {
  for (OutgoingCallPtr& call : std::exchange(line_, {})) failed.push_back({std::move(call), why});
}

void CallQueue::fail_all(const Status& why, std::vector<FailedCall>& failed) {
  for (OutgoingCallPtr& call : std::exchange(orphans_, {}))
    failed.push_back({std::move(call), why});
  fail_line(why, failed);
  if (!aside_) return;
  for (const auto& [order, call] : *aside_) failed.push_back({call, why});
  aside_.reset();
}

bool CallQueue::expire(const OutgoingCallPtr& call, Deadline now, bool restarting,
                       std::vector<FailedCall>& failed) {
  if (call->deadline > now) return false;
  const char* why = restarting        ? ": the actor is being restarted"
                    : call->blocker() ? ": an argument was not there"
                                      : "";
  failed.push_back(
      {call, call->late(std::string("the call's time was up before it could be sent") + why)});
  return true;
}

void CallQueue::expire(Deadline now, bool restarting, std::vector<FailedCall>& failed) {
  std::erase_if(line_,
                [&](const OutgoingCallPtr& call) { return expire(call, now, restarting, failed); });
  if (aside_) {
    std::erase_if(*aside_,
                  [&](const auto& entry) { return expire(entry.second, now, restarting, failed); });
    if (aside_->empty()) aside_.reset();
  }
  std::erase_if(orphans_, [&](const OutgoingCallPtr& call) {
    if (call->deadline > now) return false;
    const bool unsent = call->sequence == 0;
    if (!unsent) numbers_.end(call->sequence);
    failed.push_back(
        {call, call->late(unsent ? "the call's time was up before it could be sent"
                                 : "the connection was lost, and no reply came in time; the call "
                                   "may have run")});
    return true;
  });
}

Deadline CallQueue::earliest_deadline() const {
  Deadline earliest = Deadline::max();
  for (const OutgoingCallPtr& call : line_) earliest = std::min(earliest, call->deadline);
  for (const OutgoingCallPtr& call : orphans_) earliest = std::min(earliest, call->deadline);
  if (!aside_) return earliest;
  for (const auto& [order, call] : *aside_) earliest = std::min(earliest, call->deadline);
  return earliest;
}

void CallQueue::hold(Status why, std::function<void()> quiet) {
  if (!hold_) hold_ = std::make_unique<Hold>();
  ++hold_->holders;
  hold_->why = std::move(why);
  hold_->quiet.push_back(std::move(quiet));
}

void CallQueue::resume() {
  if (hold_ && --hold_->holders == 0) hold_.reset();
}

const Status* CallQueue::held() const { return hold_ ? &hold_->why : nullptr; }

std::vector<std::function<void()>> CallQueue::take_quiet() {
  return hold_ ? std::exchange(hold_->quiet, {}) : std::vector<std::function<void()>>{};
}

}  // namespace runtime
