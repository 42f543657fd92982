// AllReduceProbe: an actor that runs all-reduces with its like on other nodes, to see whether they
// work and how fast.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "rl/comm/communicator.h"
#include "runtime/runtime.h"

namespace rl {

struct AllReduceResult {
  double seconds = 0;    // of the fastest round
  bool correct = false;  // every element is the sum

  auto fields() { return std::tie(seconds, correct); }
};

/// One rank.
class AllReduceProbe {
 public:
  static constexpr const char* kName = "AllReduceProbe";

  AllReduceProbe(runtime::Runtime& runtime, int rank, int size, std::string group)
      : runtime_(runtime), rank_(rank), size_(size), group_(std::move(group)) {}

  /// All ranks call it at the same time, with the same arguments. Errors: as
  /// make_gloo_communicator; those of the collective.
  runtime::Result<AllReduceResult> measure(std::uint64_t elements, int rounds);
  /// The version of the NCCL that this process can use. Errors: as NcclLibrary::load.
  runtime::Result<std::string> nccl_version();
  /// As measure(), on the GPU that this actor was given, by NCCL.
  runtime::Result<AllReduceResult> measure_nccl(std::uint64_t elements, int rounds);

 private:
  runtime::Runtime& runtime_;
  const int rank_;
  const int size_;
  const std::string group_;
};

/// Registers the probe with the program's other actors, before it starts.
void register_all_reduce_probe(runtime::Runtime& runtime);

}  // namespace rl
