#include "runtime/call/blocked_calls.h"

#include <algorithm>
#include <iterator>
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
struct BlockedCalls::Entry {
  std::uint64_t number = 0;
  std::string waiting;
  Producers producers;
  bool bounded = false;
  std::mutex mutex;  // guards what follows
  std::string cycle;
};

BlockedCalls::Registered::Registered(BlockedCalls& table, const ServedCall& call,
                                     Producers producers, bool bounded)
    : table_(table), key_(call.key), entry_(std::make_shared<Entry>()) {
  entry_->waiting = call.describe();
  entry_->producers = std::move(producers);
  entry_->bounded = bounded;
  std::lock_guard lock(table_.mutex_);
  entry_->number = ++table_.numbers_;
  table_.entries_.emplace(key_, entry_);
}

BlockedCalls::Registered::~Registered() {
  std::lock_guard lock(table_.mutex_);
  const auto [first, last] = table_.entries_.equal_range(key_);
  table_.entries_.erase(
      std::find_if(first, last, [this](const auto& entry) { return entry.second == entry_; }));
}

std::string BlockedCalls::Registered::cycle() const {
  std::lock_guard lock(entry_->mutex);
  return entry_->cycle;
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
  const Registered registered(*this, *call, std::move(producers), deadline != Deadline::max());
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

void BlockedCalls::tell(const Entry& entry, const std::vector<WaitStep>& steps) const {
  for (const auto& call : calls_of(entry.producers)) {
    std::vector<WaitStep> waits = steps;
    waits.push_back({session_, entry.number, entry.waiting, call->describe(),
                     entry.bounded || call->has_own_limit()});
    call->tell(waits);
  }
}

void BlockedCalls::on_waits(const ServedCall::Key& held_by, const std::vector<WaitStep>& steps) {
  if (steps.empty()) return;
  std::vector<std::shared_ptr<Entry>> entries;
  {
    std::lock_guard lock(mutex_);
    const auto [first, last] = entries_.equal_range(held_by);
    for (auto found = first; found != last; ++found) entries.push_back(found->second);
  }
  for (const auto& entry : entries) on_waits(*entry, steps);
}

void BlockedCalls::on_waits(Entry& entry, const std::vector<WaitStep>& steps) const {
  const WaitStep here{session_, entry.number, {}, {}, false};
  if (steps.front().is_same_wait(here)) return on_cycle(entry, steps);
  // A cycle that its origin is no part of: those that are find it.
  const bool seen = std::any_of(steps.begin(), steps.end(),
                                [&](const WaitStep& step) { return step.is_same_wait(here); });
  if (!seen && steps.size() < WaitStep::kStepsMax) tell(entry, steps);
}

void BlockedCalls::on_cycle(Entry& entry, const std::vector<WaitStep>& steps) const {
  const std::string cycle = describe_cycle(steps);
  // One of them is to fail, so that the others can continue; all agree on which.
  const bool breaks_here = std::none_of(steps.begin(), steps.end(), [&](const WaitStep& step) {
    return failing_order(step) > failing_order(steps.front());
  });
  note(entry, cycle, breaks_here);
  for (const auto& call : calls_of(entry.producers)) {
    if (call->describe() == steps.front().awaited)
      call->on_cycle(call, cycle, breaks_here && !has_limit(steps));
  }
}

void BlockedCalls::note(Entry& entry, const std::string& cycle, bool logs) {
  bool is_new = false;
  {
    std::lock_guard lock(entry.mutex);
    is_new = entry.cycle.empty();
    entry.cycle = cycle;
  }
  if (is_new && logs) LOG(warn, "{}", cycle);
}

}  // namespace runtime
