#include "runtime/call/blocked_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "runtime/call/awaited_call.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/transport/block_until.h"

namespace runtime {

namespace {

thread_local const ServedCall* running_call = nullptr;
thread_local std::string cycle_of_last_wait;

/// What is called to make what these make, by themselves or by their parts.
std::vector<std::shared_ptr<AwaitedCall>> calls_of(const BlockedCalls::Producers& producers) {
  std::vector<std::shared_ptr<AwaitedCall>> calls;
  std::vector<std::shared_ptr<Producer>> open;
  for (const std::weak_ptr<Producer>& weak : producers) open.push_back(weak.lock());
  std::unordered_set<const Producer*> seen;  // parts may be shared, many times over
  while (!open.empty()) {
    const std::shared_ptr<Producer> producer = std::move(open.back());
    open.pop_back();
    if (!producer || !seen.insert(producer.get()).second) continue;
    if (auto call = std::dynamic_pointer_cast<AwaitedCall>(producer))
      calls.push_back(std::move(call));
    else
      std::ranges::move(producer->parts(), std::back_inserter(open));
  }
  return calls;
}

bool has_limit(const std::vector<WaitStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const WaitStep& step) { return step.bounded; });
}

/// The wait that fails in a cycle is the greatest. Rather one for a constructor than one for a
/// call: a creation that fails ends its actor. Rather a method's than a constructor's, whose actor
/// would not come to be.
auto failing_order(const WaitStep& step) {
  return std::tuple(step.awaited.ends_with(kConstructor), !step.waiting.ends_with(kConstructor),
                    step.session, step.number);
}

}  // namespace

const std::string kConstructor = "(constructor)";  // no method's name

std::string ServedCall::describe() const {
  return *class_name + " " + std::get<0>(key).short_hex() + ": " + *method;
}

RunningCall::RunningCall(const ServedCall& call) : call_(call), outer_(running_call) {
  running_call = &call_;
}

RunningCall::~RunningCall() { running_call = outer_; }

const ServedCall* RunningCall::current() { return running_call; }

std::string describe_cycle(const std::vector<WaitStep>& steps) {
  std::string text = "calls wait for each other in a cycle: ";
  for (std::size_t i = 0; i < steps.size(); ++i)
    text += (i == 0 ? "" : "; ") + steps[i].waiting + " waits for " + steps[i].awaited;
  return text +
         ". An actor runs one call after another: let it run more at once "
         "(ActorOptions::max_concurrency), await in a coroutine method, or do not wait there";
}

/// A call that waits.
struct BlockedWait {
  const std::uint64_t session;
  const std::uint64_t number;
  const std::string waiting;
  const BlockedCalls::Producers producers;
  const bool bounded;
  std::mutex mutex{};  // guards what follows
  std::string cycle{};

  /// Passes a chain of waits, whose last is for this call's end, on to what this one waits for.
  void tell(const std::vector<WaitStep>& steps) const {
    for (const auto& call : calls_of(producers)) {
      std::vector<WaitStep> waits = steps;
      waits.push_back(
          {session, number, waiting, call->describe(), bounded || call->has_own_limit()});
      call->tell(waits);
    }
  }
  void on_waits(const std::vector<WaitStep>& steps);

 private:
  void on_cycle(const std::vector<WaitStep>& steps);
  void note(const std::string& found, bool logs);
};

/// The waits of a process. Any thread.
class WaitTable {
 public:
  explicit WaitTable(std::uint64_t session) : session_(session) {}

  std::shared_ptr<BlockedWait> add(const ServedCall& call, BlockedCalls::Producers producers,
                                   bool bounded) {
    std::string waiting = call.describe();
    std::lock_guard lock(mutex_);
    std::shared_ptr<BlockedWait> wait(
        new BlockedWait{session_, ++numbers_, std::move(waiting), std::move(producers), bounded});
    waits_.emplace(call.key, wait);
    return wait;
  }
  void remove(const ServedCall::Key& key, const BlockedWait* wait) {
    std::lock_guard lock(mutex_);
    const auto [first, last] = waits_.equal_range(key);
    waits_.erase(
        std::find_if(first, last, [wait](const auto& each) { return each.second.get() == wait; }));
  }
  std::vector<std::shared_ptr<BlockedWait>> of(const ServedCall::Key& key) const {
    std::vector<std::shared_ptr<BlockedWait>> waits;
    std::lock_guard lock(mutex_);
    const auto [first, last] = waits_.equal_range(key);
    for (auto found = first; found != last; ++found) waits.push_back(found->second);
    return waits;
  }

 private:
  const std::uint64_t session_;
  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t numbers_ = 0;
  std::multimap<ServedCall::Key, std::shared_ptr<BlockedWait>> waits_;
};

RegisteredWait::RegisteredWait(std::shared_ptr<WaitTable> waits, const ServedCall::Key& key,
                               std::shared_ptr<BlockedWait> wait)
    : waits_(std::move(waits)), key_(key), wait_(std::move(wait)) {}

RegisteredWait::~RegisteredWait() {
  if (waits_) waits_->remove(key_, wait_.get());
}

void RegisteredWait::announce() const { wait_->tell({}); }

std::string RegisteredWait::cycle() const {
  std::lock_guard lock(wait_->mutex);
  return wait_->cycle;
}

BlockedCalls::BlockedCalls(std::uint64_t session) : waits_(std::make_shared<WaitTable>(session)) {}

RegisteredWait BlockedCalls::enter(const ServedCall& call, Producers producers,
                                   bool bounded) const {
  return {waits_, call.key, waits_->add(call, std::move(producers), bounded)};
}

bool BlockedCalls::wait(EventLoop& loop, Event& event, const ObjectState* const* objects,
                        std::size_t count, Deadline deadline) {
  cycle_of_last_wait.clear();
  if (!RunningCall::current() || simulation()) return block_until(loop, event, deadline);
  Producers producers;
  for (std::size_t i = 0; i < count; ++i) {
    if (auto producer = objects[i]->producer()) producers.push_back(std::move(producer));
  }
  return wait(loop, event, std::move(producers), deadline);
}

bool BlockedCalls::wait(EventLoop& loop, Event& event, Producers producers, Deadline deadline) {
  cycle_of_last_wait.clear();
  const ServedCall* call = RunningCall::current();
  if (!call || producers.empty() || simulation()) return block_until(loop, event, deadline);
  Deadline next = deadline_after(kPeriod);
  if (next >= deadline) return block_until(loop, event, deadline);
  if (block_until(loop, event, next)) return true;
  const RegisteredWait registered = enter(*call, std::move(producers), deadline != Deadline::max());
  bool settled = false;
  while (!settled && next < deadline && !loop.is_stopped()) {
    registered.announce();
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

void BlockedCalls::on_waits(const ServedCall::Key& held_by,
                            const std::vector<WaitStep>& steps) const {
  if (steps.empty()) return;
  for (const auto& wait : waits_->of(held_by)) wait->on_waits(steps);
}

void BlockedWait::on_waits(const std::vector<WaitStep>& steps) {
  const WaitStep here{session, number, {}, {}, false};
  if (steps.front().is_same_wait(here)) return on_cycle(steps);
  // A cycle that its origin is no part of: those that are find it.
  const bool seen = std::any_of(steps.begin(), steps.end(),
                                [&](const WaitStep& step) { return step.is_same_wait(here); });
  if (!seen && steps.size() < WaitStep::kStepsMax) tell(steps);
}

void BlockedWait::on_cycle(const std::vector<WaitStep>& steps) {
  const std::string found = describe_cycle(steps);
  // One of them is to fail, so that the others can continue; all agree on which.
  const bool breaks_here = std::none_of(steps.begin(), steps.end(), [&](const WaitStep& step) {
    return failing_order(step) > failing_order(steps.front());
  });
  note(found, breaks_here);
  for (const auto& call : calls_of(producers)) {
    if (call->describe() == steps.front().awaited)
      call->on_cycle(call, found, breaks_here && !has_limit(steps));
  }
}

void BlockedWait::note(const std::string& found, bool logs) {
  bool is_new = false;
  {
    std::lock_guard lock(mutex);
    is_new = cycle.empty();
    cycle = found;
  }
  if (is_new && logs) LOG(warn, "{}", found);
}

}  // namespace runtime
