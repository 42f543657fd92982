// Room: the free resources of a node or a bundle, its GPUs one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "placement/resource/resources.h"

namespace placement {

/// Numbers of a node's GPUs.
using GpuList = std::vector<std::uint32_t>;

/// Whether an amount of GPUs can be given: a part of one, or whole ones. Errors: kInvalidArgument.
runtime::Status check_gpus(const Resources& demand);

/// Amounts, of which "GPU" is more than a sum. Whole GPUs are given whole, and a part of one comes
/// from a single GPU, of those that fit the one with the least left. A value. Demands must have
/// passed check_gpus().
class Room {
 public:
  Room() = default;
  /// All of a node: its GPUs are numbered from 0.
  explicit Room(const Resources& total);
  /// All of a bundle, which has these GPUs of its node.
  Room(const Resources& total, const GpuList& gpus);

  const Resources& left() const { return left_; }
  bool covers(const Resources& demand) const { return left_.covers(demand) && has_gpus(demand); }
  /// Takes it out; answers with the GPUs. CHECKs that this covers it.
  GpuList take(const Resources& demand);
  /// Takes it out with these GPUs; false, and nothing is taken, if they are not there or not free.
  bool take(const Resources& demand, const GpuList& gpus);
  /// Gives back what was taken.
  void give(const Resources& demand, const GpuList& gpus);

  /// What `demand` lacks here: "GPU 1 (has 0.5 free of 2)"; also that GPUs are free in parts only.
  /// Empty if it is covered.
  std::string missing(const Resources& demand, const Resources& total) const;

 private:
  bool has_gpus(const Resources& demand) const;
  std::int64_t* gpu(std::uint32_t number);

  Resources left_;
  std::vector<std::pair<std::uint32_t, std::int64_t>>
      gpus_;  // number, and units that are left of it
};

}  // namespace placement
