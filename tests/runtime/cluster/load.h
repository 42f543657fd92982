// The load: actors whose every acknowledged change is accounted for, and a driver. The driver works
// with them and writes down what it asked and was told.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "history.h"
#include "runtime/runtime.h"

namespace runtime::test {

inline constexpr const char* kNameSpace = "proof";

/// Marks by client; saved at the head before a mark is acknowledged.
class Tally {
 public:
  using State = std::map<std::int32_t, std::vector<std::uint64_t>>;

  Tally(Runtime& runtime, std::string key, const std::string& history);
  /// Returns the incarnation that has it.
  Result<std::uint64_t> add(const CallContext& call, std::int32_t client, std::int64_t mark);
  State marks() const { return done_; }
  /// Where it runs now.
  std::int32_t pid() const;

  State save_state() const { return done_; }
  void restore_state(State saved) { done_ = std::move(saved); }

 private:
  Runtime& runtime_;
  State done_;
};

class Echo {
 public:
  std::int64_t say(std::int64_t value) const { return value; }
};

/// Calls an Echo, so that the call is between actors.
class Relay {
 public:
  explicit Relay(Runtime& runtime) : runtime_(runtime) {}
  Result<std::int64_t> ask(const CallContext& call, const ActorHandle<Echo>& echo,
                           std::int64_t value) const;

 private:
  Runtime& runtime_;
};

void register_load(Runtime& runtime);

struct LoadOptions {
  std::string history{};
  std::int32_t client = 0;
  int tallies = 3;                 // named tally-0 to tally-N; made if they are not there
  double seconds = 0;              // 0: until SIGTERM
  double per_second = 20;          // of each kind of operation, at most
  std::string kinds = "aecpsvnw";  // Op's letters
};

/// `program --load OPTIONS` on a machine with a node. Exit code 0: the time was up; 9: its node, or
/// the cluster, has ended.
std::vector<std::string> load_command(const LoadOptions& options);
int run_load(int argc, char** argv);

/// `program --verify HISTORY OUTCOME`: asks the cluster what is there in the end, about all that
/// the history names, and writes it to OUTCOME.
int run_verify(int argc, char** argv);
/// `program --fill COUNT MIB`: puts COUNT objects and holds them; reads again what it could put.
/// Exit code 0: each was there as it was put, or refused in time for want of room, and some were
/// each.
int run_fill(int argc, char** argv);
Result<Outcome> read_outcome(const std::string& file);

}  // namespace runtime::test
