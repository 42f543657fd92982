// PreferenceMapping: the way from a stored row to two responses of which one is better, or to one
// that is wanted or not.
#pragma once

#include <string>

#include "rl/data/data_row.h"
#include "runtime/core/result.h"

namespace rl {

class Config;
struct RawRow;
struct RowMapping;

enum class PreferenceForm {
  kPairs,   // prompt, chosen, rejected
  kSingles  // prompt, completion, label; a pair counts as a wanted and an unwanted response
};

/// What `data.columns.*` says of them. Empty strings are what is not said.
struct PreferenceMapping {
  PreferenceForm form = PreferenceForm::kPairs;
  std::string chosen = "chosen";
  std::string rejected = "rejected";
  std::string margin;  // otherwise `margin`, or the difference of chosen_score and rejected_score
                       // (score_chosen and score_rejected); a row need not have any
  std::string completion = "completion";
  std::string label = "label";

  static runtime::Result<PreferenceMapping> from_config(const Config& config, PreferenceForm form);
  bool operator==(const PreferenceMapping&) const = default;
};

/// A row of preferences, with mapping.preference. Responses are texts or lists of messages. Lists
/// may repeat the prompt's messages, or a prompt that is a text as the user's last message. Without
/// a prompt it is what both responses begin with. kInvalidArgument: a column is missing or of a
/// wrong type, both responses are equal, or a response does not belong to the prompt. The message
/// names row and column.
runtime::Result<DataRow> map_preference(const RawRow& row, const RowMapping& mapping);

}  // namespace rl
