// The samples of a step as a file, in the form that verl's tools read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "runtime/core/status.h"

namespace rl {

/// Which file: `folder`/`step`.jsonl.
struct RolloutDump {
  std::filesystem::path folder;  // made if need be
  std::int64_t step = 0;
  bool append = false;  // go on with a file of the same step, rather than replace it
};

/// What is known of a sample besides its text.
struct DumpedSample {
  SampleText text;
  std::vector<float> advantages = {};         // one, or one of each learned token, or none
  std::map<std::string, double> extras = {};  // numbers that the reward gave besides the score
};

/// A line a sample: {"input", "output", "gts", "score", "step"}, and the reward's further numbers
/// by their names. Where the samples have them, also "tokens" (texts that make up the output),
/// their "logprobs", "advantages" and "response_mask". `starling report` colours these. Bytes that
/// are no UTF-8 become U+FFFD.
std::string encode_samples(std::int64_t step, const std::vector<DumpedSample>& samples);

/// Whether there are dumps in a folder already, of any run.
bool has_dumps(const std::filesystem::path& folder);

/// Writes dumps. What could not be written (the disk is full) is kept and written with a later one,
/// in order. The log tells when that begins and ends. Not thread-safe.
class RolloutDumper {
 public:
  RolloutDumper() = default;
  RolloutDumper(RolloutDumper&&) = default;
  RolloutDumper& operator=(RolloutDumper&&) = default;

  /// A file's samples are in it whole, or not at all.
  void write(const RolloutDump& dump, const std::vector<DumpedSample>& samples);

  /// Tries once more. Errors: why some is still not written, with the file's name and how many
  /// files wait.
  runtime::Status flush();

 private:
  struct Unwritten {
    RolloutDump dump;
    std::string text;
  };
  static constexpr std::size_t kUnwrittenBytesMax = 256 << 20;

  void give_up_oldest();  // down to that

  std::deque<Unwritten> unwritten_;
};

}  // namespace rl
