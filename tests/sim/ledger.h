// Ledger: the record of what calls were promised, what callers were told, and what ran, with the
// check that these agree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/ids.h"
#include "runtime/core/status.h"

namespace sim {

class World;

/// One run of a method: in which process (an actor's incarnation has one), and as what of all that
/// happened.
struct Run {
  int process;
  std::uint64_t at;
};

struct CallRecord {
  int driver = 0;
  runtime::ActorId actor;
  std::string method;
  std::int32_t retries = 0;
  bool ordered = true;  // sent to the default lane of an actor that runs one call at a time
  bool must_succeed = false;
  runtime::Deadline deadline;
  std::vector<Run> runs;
  bool settled = false;
  bool told = false;  // the caller has an answer
  runtime::Status answer;
};

class Ledger {
 public:
  explicit Ledger(World& world) : world_(world) {}

  /// The number that the call carries.
  std::uint64_t issue(CallRecord call);
  void prolong(std::uint64_t call, runtime::Deadline deadline) {
    calls_.at(call).deadline = deadline;
  }
  /// From inside of a method. Runs of a process that has crashed do not count.
  void ran(std::uint64_t call);
  /// Its result has settled, at this moment.
  void settled(std::uint64_t call);
  /// What the caller got.
  void told(std::uint64_t call, runtime::Status answer);

  /// Looks at all of it once everything is over.
  void check();
  std::string summary() const;
  std::size_t calls() const { return calls_.size(); }
  std::size_t succeeded() const { return succeeded_; }
  std::size_t runs() const { return runs_; }

 private:
  std::string describe(std::uint64_t call) const;

  World& world_;
  std::map<std::uint64_t, CallRecord> calls_;  // by number: in order of issue
  std::uint64_t next_ = 1;
  std::uint64_t events_ = 0;
  std::size_t succeeded_ = 0;
  std::size_t runs_ = 0;
};

}  // namespace sim
