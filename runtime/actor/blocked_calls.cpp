#include "runtime/actor/blocked_calls.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "runtime/actor/actor_client.h"
#include "runtime/actor/actor_executor.h"
#include "runtime/actor/actor_options.h"
#include "runtime/actor/outgoing_call.h"
#include "runtime/actor/worker_link.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"

namespace runtime {

namespace {

thread_local const RunningCall* running_call = nullptr;
thread_local std::string cycle_of_last_wait;

/// That of a task's call is the task's.
bool has_own_limit(const OutgoingCall& call) {
  return call.timeout.count() > 0 ? call.timeout < kDefaultCallTimeout
                                  : call.deadline < deadline_after(kDefaultCallTimeout / 2);
}

/// The calls that make what these make, by themselves or by their parts.
std::vector<std::shared_ptr<OutgoingCall>> calls_of(const BlockedCalls::Producers& producers) {
  std::vector<std::shared_ptr<OutgoingCall>> calls;
  std::vector<std::shared_ptr<Producer>> open;
  for (const std::weak_ptr<Producer>& weak : producers) open.push_back(weak.lock());
  std::unordered_set<const Producer*> seen;  // parts may be shared, many times over
  while (!open.empty()) {
    const std::shared_ptr<Producer> producer = std::move(open.back());
    open.pop_back();
    if (!producer || !seen.insert(producer.get()).second) continue;
    if (auto call = std::dynamic_pointer_cast<OutgoingCall>(producer))
      calls.push_back(std::move(call));
    else
      std::ranges::move(producer->parts(), std::back_inserter(open));
  }
  return calls;
}

}  // namespace

RunningCall::RunningCall(Key key, const std::string& class_name, const std::string& method)
    : key_(std::move(key)), class_name_(class_name), method_(method), outer_(running_call) {
  running_call = this;
}

RunningCall::~RunningCall() { running_call = outer_; }

const RunningCall* RunningCall::current() { return running_call; }

std::string RunningCall::describe() const {
  return class_name_ + " " + std::get<0>(key_).short_hex() + ": " + method_;
}

std::string describe_cycle(const std::vector<WaitStep>& steps) {
  std::string text = "calls wait for each other in a cycle: ";
  for (std::size_t i = 0; i < steps.size(); ++i)
    text += (i == 0 ? "" : "; ") + steps[i].waiting + " waits for " + steps[i].awaited;
  return text +
         ". An actor runs one call after another: let it run more at once "
         "(ActorOptions::max_concurrency), await in a coroutine method, or do not wait there";
}

/// A call that waits.
struct BlockedCalls::Entry {
  std::uint64_t number = 0;
  std::string waiting;
  Producers producers;
  bool bounded = false;
  std::mutex mutex;  // guards what follows
  std::string cycle;
};

/// In the table while it lives.
class BlockedCalls::Registered {
 public:
  Registered(BlockedCalls& table, const RunningCall& call, Producers producers, bool bounded)
      : table_(table), key_(call.key()), entry_(std::make_shared<Entry>()) {
    entry_->waiting = call.describe();
    entry_->producers = std::move(producers);
    entry_->bounded = bounded;
    std::lock_guard lock(table_.mutex_);
    entry_->number = ++table_.numbers_;
    table_.entries_[key_] = entry_;
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() {
    std::lock_guard lock(table_.mutex_);
    table_.entries_.erase(key_);
  }

  const Entry& entry() const { return *entry_; }
  std::string cycle() const {
    std::lock_guard lock(entry_->mutex);
    return entry_->cycle;
  }

 private:
  BlockedCalls& table_;
  const RunningCall::Key key_;
  const std::shared_ptr<Entry> entry_;
};

bool BlockedCalls::wait(EventLoop& loop, Event& event, const ObjectState* const* objects,
                        std::size_t count, Deadline deadline) {
  if (!RunningCall::current() || simulation()) return block_until(loop, event, deadline);
  Producers producers;
  for (std::size_t i = 0; i < count; ++i) {
    if (auto producer = objects[i]->producer()) producers.push_back(std::move(producer));
  }
  return wait(loop, event, std::move(producers), deadline);
}

bool BlockedCalls::wait(EventLoop& loop, Event& event, Producers producers, Deadline deadline) {
  const RunningCall* call = RunningCall::current();
  if (!call || producers.empty() || simulation()) return block_until(loop, event, deadline);
  cycle_of_last_wait.clear();
  Deadline next = deadline_after(kPeriod);
  if (next >= deadline) return block_until(loop, event, deadline);
  if (block_until(loop, event, next)) return true;
  const Registered registered(*this, *call, std::move(producers), deadline != Deadline::max());
  bool settled = false;
  while (!settled && next < deadline && !loop.is_stopped()) {
    tell(registered.entry(), {});
    next += kPeriod;
    settled = block_until(loop, event, std::min(next, deadline));
  }
  cycle_of_last_wait = registered.cycle();
  return settled;
}

std::string BlockedCalls::take_cycle() {
  std::string cycle = std::exchange(cycle_of_last_wait, {});
  return cycle.empty() ? cycle : ": " + cycle;
}

void BlockedCalls::tell(const Entry& entry, const std::vector<WaitStep>& steps) const {
  for (const auto& call : calls_of(entry.producers)) {
    const std::uint64_t sequence = call->sequence.load();
    const std::shared_ptr<Channel> channel =
        sequence != 0 && !call->result->is_settled() ? call->client->worker()->channel() : nullptr;
    if (!channel) continue;  // it waits for something else than an actor
    CallNotice notice{call->client->id(), sequence, CallNotice::Kind::kWaits};
    notice.waits = steps;
    notice.waits.push_back({session_, entry.number, entry.waiting, call->describe(),
                            entry.bounded || has_own_limit(*call)});
    send_notice(*channel, notice, Flush::kNow);
  }
}

void BlockedCalls::on_waits(const RunningCall::Key& held_by, const std::vector<WaitStep>& steps) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(held_by);
    if (found != entries_.end()) entry = found->second;
  }
  if (!entry || steps.empty()) return;
  const WaitStep here{session_, entry->number, {}, {}, false};
  if (steps.front().is_same_wait(here)) return on_cycle(*entry, steps);
  // A cycle that its origin is no part of: those that are find it.
  const bool seen = std::any_of(steps.begin(), steps.end(),
                                [&](const WaitStep& step) { return step.is_same_wait(here); });
  if (!seen && steps.size() < WaitStep::kStepsMax) tell(*entry, steps);
}

void BlockedCalls::on_cycle(Entry& entry, const std::vector<WaitStep>& steps) const {
  const std::string cycle = describe_cycle(steps);
  bool is_new = false;
  {
    std::lock_guard lock(entry.mutex);
    is_new = entry.cycle.empty();
    entry.cycle = cycle;
  }
  const bool ends_by_itself =
      std::any_of(steps.begin(), steps.end(), [](const WaitStep& step) { return step.bounded; });
  // One of them is to fail, so that the others can go on; all agree on which.
  const bool breaks_here = std::none_of(steps.begin(), steps.end(), [&](const WaitStep& step) {
    return std::pair(step.session, step.number) >
           std::pair(steps.front().session, steps.front().number);
  });
  if (is_new && breaks_here) LOG(warn, "{}", cycle);
  for (const auto& call : calls_of(entry.producers)) {
    if (call->describe() != steps.front().awaited) continue;
    call->cycle = cycle;
    if (ends_by_itself || !breaks_here) continue;
    call->result->fail(invalid_argument(call->describe() + ": " + cycle));
    (void)ActorClient::cancel(call, CancelMode::kCooperative);
  }
}

}  // namespace runtime
