// From a file's tensors to our parameters: names, shapes, and the order of rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/model/model_config.h"
#include "rl/model/model_plan.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/status.h"

namespace rl {

/// Reads the parameters of a config from a source. Borrows all three; safe to use from several
/// threads.
class ParameterReader {
 public:
  /// `gguf_names`: tensors are named, and q/k rows ordered, as in GGUF.
  ParameterReader(const ModelConfig& config, const ModelPlan& plan, const WeightSource& source,
                  bool gguf_names);

  /// kInvalidArgument: the tensors missing (but for heads, if they may), surplus or of another
  /// shape, each by name.
  runtime::Status check(bool heads_may_lack = false) const;

  /// False for a head that the checkpoint lacks.
  bool is_there(const FamilyParameter& parameter) const;

  /// Whether the parameter is stored just as it lies in the arena, so that any stretch of it can be
  /// read alone.
  bool lies_alike(const FamilyParameter& parameter) const;

  /// Elements of a stretch that can be read alone are multiples of this: a block of the stored
  /// dtype.
  std::int64_t unit(const FamilyParameter& parameter) const;

  /// Elements [first, first + out.size()) of a parameter that lies_alike().
  runtime::Status read_range(const FamilyParameter& parameter, std::int64_t first,
                             std::span<float> out) const;

  /// All of a parameter, row-major.
  runtime::Status read_whole(const FamilyParameter& parameter, std::span<float> out) const;

 private:
  // Rows that belong together where GGUF mixes them: a head's; 1 elsewhere.
  std::int64_t rows_together(const FamilyParameter& parameter) const;
  std::string stored_name(const FamilyParameter& parameter) const;

  const ModelConfig& config_;
  const ModelPlan& plan_;
  const WeightSource& source_;
  bool gguf_;
  std::string without_;  // a first part that the source's names lack
  std::string
      tied_;  // the output layer, where the source has it and not the embedding that it is tied to
};

}  // namespace rl
