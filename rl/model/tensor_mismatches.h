// Tensors of a checkpoint that do not fit the model, collected for one message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace rl {

/// Names of tensors that do not fit, as they are found.
struct TensorMismatches {
  std::vector<std::string> missing;
  std::vector<std::string> misshaped;
  std::vector<std::string> unexpected;

  /// Notes the wrong shape of a tensor that is there.
  void add_misshaped(const std::string& name, const std::vector<std::int64_t>& found,
                     const std::vector<std::int64_t>& expected);

  /// Ok without any; else kInvalidArgument "<what>: missing a, b and 12 more; of the wrong shape c
  /// [2] instead of [3]; unexpected d".
  runtime::Status status(const std::string& what) const;
};

}  // namespace rl
