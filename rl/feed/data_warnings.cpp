#include "rl/feed/data_warnings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "rl/data/row_feed.h"

namespace rl {
namespace {

// To look for fields that a template does not write. Rendering takes its time, and a template that
// leaves a field out leaves it out of all rows.
constexpr std::int64_t kRowsRenderedMax = 1000;

constexpr std::size_t kFilesNamedMax = 8;  // for each kind of warning

/// Whether what scores is given ground truths as they are, and may do without.
bool asks_no_rule(const Config& config) {
  for (const char* key : {"reward.custom_reward_function.path", "reward.http.url",
                          "reward.shared_library.path", "reward.mixture"}) {
    const nlohmann::ordered_json* value = config.find(key);
    if (value != nullptr && !value->is_null()) return true;
  }
  return false;
}

bool may_miss_template(const Config& config, const char* template_key, const Tokenizer& tokenizer) {
  if (config.is_set("data.prompt_form")) return false;
  const auto custom = config.find_string(template_key);
  return !tokenizer.chat_templates().empty() || (custom.ok() && *custom);
}

/// One warning a file, of the first rows of their kind.
class FileWarnings {
 public:
  void add(const DataRow& row, const std::string& what) {
    // "rows.jsonl:7", "rows.parquet: row 7".
    if (!files_.insert(row.where.substr(0, row.where.rfind(':'))).second) return;
    if (files_.size() <= kFilesNamedMax) texts_.push_back(row.where + what);
  }
  /// Moves them behind `all`.
  void append_to(std::vector<std::string>& all) {
    if (files_.size() > kFilesNamedMax)
      texts_.back() +=
          "; and so it is in " + std::to_string(files_.size() - kFilesNamedMax) + " more files";
    all.insert(all.end(), texts_.begin(), texts_.end());
  }

 private:
  std::set<std::string> files_;
  std::vector<std::string> texts_;
};

}  // namespace

DataWarningOptions DataWarningOptions::of_prompts(const Config& config,
                                                  const Tokenizer& tokenizer) {
  return {.answers = asks_no_rule(config),
          .templates =
              may_miss_template(config, "actor_rollout_ref.model.custom_chat_template", tokenizer)};
}

DataWarningOptions DataWarningOptions::of_stage(const Config& config, const Tokenizer& tokenizer) {
  return {.answers = false,
          .templates = may_miss_template(config, "model.custom_chat_template", tokenizer)};
}

std::vector<std::string> data_warnings(const Dataset& dataset, const DataWarningOptions& options) {
  FileWarnings answerless, plain, unread;
  const auto look_at = [&](const DataRow& row) {
    if (options.answers && !row.answerless.empty())
      answerless.add(
          row, ": no answer: it has " + row.answerless +
                   ", and no value in any of reward_model.ground_truth, ground_truth, answer, "
                   "solution and target; the reward gets None for it. data.columns.answer names "
                   "another column");
    if (options.templates && !row.is_chat())
      plain.add(row,
                ": the prompt is plain text, which does not go through the model's chat template. "
                "data.prompt_form=chat makes it a user's message, data.prompt_form=plain says that "
                "it is meant so");
    if (!row.unread.empty())
      unread.add(row, ": it has " + row.unread +
                          ", which the prompt does not get, since it is plain text: "
                          "data.prompt_form=chat makes it a user's message, and the chat template "
                          "gets both");
  };
  if (dataset.in_memory()) {
    for (const DataRow& row : dataset.rows()) look_at(row);
  } else {
    for (std::int64_t i = 0; i < std::min(dataset.size(), kRowsCheckedMax); ++i) {
      const runtime::Result<DataRow> row = dataset.read(i);
      if (!row.ok()) break;  // for others to say
      look_at(*row);
    }
  }
  std::vector<std::string> warnings;
  answerless.append_to(warnings);
  plain.append_to(warnings);
  unread.append_to(warnings);
  return warnings;
}

std::vector<std::string> unwritten_fields(
    const Dataset& dataset, const std::function<UnwrittenFields(const DataRow&)>& of_row) {
  UnwrittenFields unwritten;
  for (std::int64_t i = 0; i < std::min(dataset.size(), kRowsRenderedMax); ++i) {
    const runtime::Result<DataRow> row = dataset.read(i);
    if (!row.ok()) break;  // for others to say
    unwritten.merge(of_row(*row));
  }
  std::vector<std::string> texts;
  for (auto& [field, text] : unwritten) texts.push_back(std::move(text));
  return texts;
}

void add_warnings(std::vector<std::string> more, std::vector<std::string>& warnings) {
  for (std::string& warning : more) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
      warnings.push_back(std::move(warning));
  }
}

void add_data_warnings(const Dataset& dataset, const DataWarningOptions& options,
                       std::vector<std::string>& warnings) {
  add_warnings(data_warnings(dataset, options), warnings);
}

}  // namespace rl
