// Checks for faults of a machine before anything runs on it, each with its cure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace placement {

struct Finding {
  enum class State { kGood, kNote, kWarning, kFailure };
  std::string check;  // "cores", "open files", ...
  State state = State::kGood;
  std::string what;
  std::string cure;  // empty when there is nothing to cure
};
const char* to_string(Finding::State state);  // "ok", "note", "warning", "failure"

/// What the checks look at; a test gives what it wants to see judged.
struct MachineFacts {
  int cpus = 0;  // that this process may use
  int cpus_online = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_available_bytes = 0;
  std::uint64_t shm_bytes = 0;  // of /dev/shm; 0: there is none
  std::uint64_t open_files = 0, open_files_hard = 0;
  std::uint64_t processes = 0;  // may be started; 0: no limit
  std::uint64_t locked_bytes = 0;
  std::uint64_t session_free_bytes = 0;
  std::string session_root;
  std::string kernel, glibc;
  bool clock_synchronised = true;
  int gpus = 0;        // that the kernel shows
  std::string driver;  // the NVIDIA driver's version, or what the kernel says of it; empty: none
  int cuda = 0;        // the newest CUDA that the driver serves, as 13000; 0: none, or no library
  int nccl = 0;        // as 22703; 0: not found
  std::string starling, rl;  // versions; empty: it is not there
  std::string port_user;     // who has the default port: empty: none, or a node of this user's
};

MachineFacts machine_facts();
std::vector<Finding> judge(const MachineFacts& facts);

/// A measured connection from one node to another.
struct PairSpeed {
  std::string from, to;  // addresses
  double bytes_per_s = 0;
  double round_trip_s = 0;
  std::string error = {};  // it could not be measured
  bool skipped = false;    // it answers; how fast it is, the others have left no time to measure
};
/// Names what is broken, and what is slower than half of the others' median.
std::vector<Finding> judge_pairs(const std::vector<PairSpeed>& pairs);
/// `seconds_behind`: how far each node's clock is behind this one, by address.
std::vector<Finding> judge_clocks(
    const std::vector<std::pair<std::string, double>>& seconds_behind);

}  // namespace placement
