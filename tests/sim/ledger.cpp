#include "ledger.h"

#include <tuple>
#include <utility>

#include "world.h"

namespace sim {

namespace {

// A deadline is looked at by timers of a millisecond's grain, in processes of which others may run
// first.
constexpr std::chrono::milliseconds kGrace{60};

/// The failures that a caller can do something about. Anything else means that the runtime has lost
/// its thread.
bool is_expected(runtime::ErrorCode code) {
  using runtime::ErrorCode;
  switch (code) {
    case ErrorCode::kOk:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kCancelled:
    case ErrorCode::kActorDied:
    case ErrorCode::kObjectLost:
    case ErrorCode::kResourceExhausted:  // a full store and a full disk
    case ErrorCode::kTaskFailed: return true;
    default: return false;
  }
}

}  // namespace

std::uint64_t Ledger::issue(CallRecord call) {
  calls_.emplace(next_, std::move(call));
  return next_++;
}

std::string Ledger::describe(std::uint64_t number) const {
  const CallRecord& call = calls_.at(number);
  return "call " + std::to_string(number) + " (" + call.method +
         (call.actor.is_none() ? "" : " of actor " + call.actor.short_hex()) + " by driver " +
         std::to_string(call.driver) + ", " + std::to_string(call.retries) + " retries)";
}

void Ledger::ran(std::uint64_t number) {
  Process* process = world_.current();
  if (process->crashed) return;
  auto found = calls_.find(number);
  if (found == calls_.end())
    return world_.fail("call " + std::to_string(number) + " ran, which no program has made");
  found->second.runs.push_back({process->id, ++events_});
  ++runs_;
  world_.note("ran " + describe(number));
  if (found->second.retries == 0 && found->second.runs.size() > 1)
    world_.fail(describe(number) + " ran twice without opting in");
}

void Ledger::settled(std::uint64_t number) {
  Process* process = world_.current();
  CallRecord& call = calls_.at(number);
  if (!process || process->crashed) return;
  if (call.settled) return world_.fail(describe(number) + " settled twice");
  call.settled = true;
  if (world_.now() <= call.deadline + kGrace + process->paused_for) return;
  const auto late =
      std::chrono::duration_cast<std::chrono::milliseconds>(world_.now() - call.deadline);
  world_.fail(describe(number) + " settled " + std::to_string(late.count()) +
              " ms after its deadline");
}

void Ledger::told(std::uint64_t number, runtime::Status answer) {
  Process* process = world_.current();
  if (process->crashed) return;
  CallRecord& call = calls_.at(number);
  call.told = true;
  call.answer = std::move(answer);
  world_.note("told " + std::to_string(number) + " " + call.answer.to_string());
  if (call.answer.ok()) ++succeeded_;
  if (!is_expected(call.answer.code()))
    world_.fail(describe(number) + ": " + call.answer.to_string());
  if (call.must_succeed && !call.answer.ok())
    world_.fail(describe(number) + " failed, though nothing was wrong: " + call.answer.to_string());
  if (call.answer.ok() && call.runs.empty())
    world_.fail(describe(number) + " succeeded and did not run");
}

void Ledger::check() {
  // Of one caller at one incarnation: calls without retries start in the order in which they were
  // made.
  std::map<std::tuple<int, int, std::string>, std::pair<std::uint64_t, std::uint64_t>>
      last;  // driver, process and actor: number, time of the run
  for (const auto& [number, call] : calls_) {
    if (call.retries >= 0 && call.runs.size() > static_cast<std::size_t>(call.retries) + 1) {
      world_.fail(describe(number) + " ran " + std::to_string(call.runs.size()) + " times");
    }
    if (!call.ordered || call.retries != 0) continue;
    for (const Run& run : call.runs) {
      auto [before, first] =
          last.try_emplace({call.driver, run.process, call.actor.short_hex()}, number, run.at);
      if (first) continue;
      if (run.at < before->second.second)
        world_.fail(describe(number) + " ran before call " + std::to_string(before->second.first) +
                    ", made earlier");
      before->second = {number, run.at};
    }
  }
}

std::string Ledger::summary() const {
  return std::to_string(calls_.size()) + " calls, " + std::to_string(runs_) + " runs, " +
         std::to_string(succeeded_) + " succeeded";
}

}  // namespace sim
