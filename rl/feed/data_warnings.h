// Warnings for people about probable mistakes in rows of data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/data/unwritten_fields.h"
#include "rl/tokenizer/tokenizer.h"

namespace rl {

/// What of it would matter.
struct DataWarningOptions {
  bool answers = false;    // what scores takes rows without one, and gets None
  bool templates = false;  // the model has a chat template, and data.prompt_form is not set

  /// Of rows that a reward judges: `starling train`, `starling eval`.
  static DataWarningOptions of_prompts(const Config& config, const Tokenizer& tokenizer);
  /// Of rows that a stage learns from: `starling sft`, `dpo`, `kto`, `rm`.
  static DataWarningOptions of_stage(const Config& config, const Tokenizer& tokenizer);
};

/// The first row of each file that has no answer, the first that is plain text, and the first with
/// a column that nothing reads. Of many files it names some. Each comes with the key that says what
/// is meant. Looks at all rows in memory, of others at the first kRowsCheckedMax.
std::vector<std::string> data_warnings(const Dataset& dataset, const DataWarningOptions& options);

/// What the chat template leaves out, with the first row of each field that it does not write;
/// `of_row` says it of one row. Looks at some of the rows.
std::vector<std::string> unwritten_fields(
    const Dataset& dataset, const std::function<UnwrittenFields(const DataRow&)>& of_row);

/// Puts those that are not among them behind others.
void add_warnings(std::vector<std::string> more, std::vector<std::string>& warnings);
void add_data_warnings(const Dataset& dataset, const DataWarningOptions& options,
                       std::vector<std::string>& warnings);

}  // namespace rl
