// Teachers of on-policy distillation: one for all rows, or several, each for its own rows.
#pragma once

#include <string>
#include <vector>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// One of `distillation.teacher_models`.
struct NamedTeacher {
  std::string name;
  std::string model_key;  // the configuration key that says where its model is
  std::string rows;  // what the column `distillation.teacher_key` has in its rows; empty: it is the
                     // only one, and has all rows

  bool operator==(const NamedTeacher&) const = default;
};

/// In the configuration's order. kInvalidArgument: none, one of several without a model or a key,
/// two with one key, or `teacher_model` (which verl leaves out then) besides others.
runtime::Result<std::vector<NamedTeacher>> teachers_from_config(const Config& config);

}  // namespace rl
