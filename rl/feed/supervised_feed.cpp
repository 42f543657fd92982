#include "rl/feed/supervised_feed.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "rl/batch/balance.h"
#include "rl/feed/data_warnings.h"
#include "rl/feed/shown_row.h"

namespace rl {

using runtime::Result;

namespace {

Result<ConversationOptions> conversation_options(const Config& config) {
  ConfigReader read(config);
  ConversationOptions options;
  options.message_by_message = read.get_bool("data.ignore_input_ids_mismatch");
  read.take(options.sequence, SequenceOptions::from_config(config));
  if (!read.status().ok()) return read.status();
  const auto* thinking = config.find("data.enable_thinking_default");
  options.thinking_given = thinking != nullptr && thinking->is_boolean();
  options.thinking = options.thinking_given && thinking->get<bool>();
  return options;
}

}  // namespace

Result<std::optional<DatasetOptions>> supervised_dataset(const Config& config, Split split) {
  Result<std::optional<DatasetOptions>> options = dataset_options(config, split);
  if (!options.ok() || !*options) return options;
  ConfigReader read(config);
  RowMapping& mapping = (*options)->mapping;
  const std::optional<bool> conversations = read.find_bool("data.multiturn.enable");
  mapping.messages = read.get_string("data.messages_key");
  mapping.tools = read.get_string("data.tools_key");
  mapping.thinking = read.get_string("data.enable_thinking_key");
  mapping.prompt_path =
      read.find_strings("data.prompt_dict_keys").value_or(std::vector<std::string>{});
  mapping.response_path =
      read.find_strings("data.response_dict_keys").value_or(std::vector<std::string>{});
  const std::string response = read.get_string("data.response_key");
  if (!read.status().ok()) return read.status();
  if (mapping.response.empty() && response != "response") mapping.response = response;
  if (conversations == false) mapping.messages.clear();
  if (conversations == true) mapping.prompt = mapping.messages;  // a row without one is told so
  if (mapping.conversations != RowMapping::Conversations::kNone)
    mapping.response.clear();  // the last message is it
  return options;
}

Result<std::unique_ptr<SupervisedFeed>> SupervisedFeed::create(const Config& config,
                                                               const DatasetOptions& dataset,
                                                               const EncodedRowsOptions& options) {
  const Result<ConversationOptions> how = conversation_options(config);
  if (!how.ok()) return how.status();
  Result<std::unique_ptr<Rows>> rows = Rows::create(dataset, options, *how);
  if (!rows.ok()) return rows.status();
  return std::unique_ptr<SupervisedFeed>(new SupervisedFeed(std::move(*rows)));
}

SupervisedStep SupervisedFeed::make(const std::vector<LearnedTokens>& rows) const {
  SupervisedStep step;
  std::vector<std::int64_t> lengths;
  for (const LearnedTokens& row : rows) lengths.push_back(row.longest());
  DealtRows dealt = deal_rows(lengths, rows_->options().workers, rows_->options().leaves);
  step.leaves = std::move(dealt.leaves);
  for (const auto& share : dealt.rows) {
    SupervisedBatch& batch = step.batches.emplace_back();
    for (const std::int64_t index : share) batch.append(rows[static_cast<std::size_t>(index)]);
    step.tokens += static_cast<std::int64_t>(batch.ids.values.size());
    step.learned_tokens += batch.learned_tokens();
  }
  return step;
}

Result<SupervisedStep> SupervisedFeed::next() {
  const Result<std::vector<LearnedTokens>> rows = rows_->next();
  if (!rows.ok()) return rows.status();
  SupervisedStep step = make(*rows);
  if (step.learned_tokens == 0) {
    return runtime::invalid_argument(
        "of the rows of this step no token is left to learn: data.truncation has cut all responses "
        "away; raise data.max_length (data.truncation=left keeps the end)");
  }
  return step;
}

Result<std::vector<SupervisedStep>> SupervisedFeed::all(std::int64_t step_rows) const {
  return rows_->all(step_rows,
                    [this](const std::vector<LearnedTokens>& rows) { return make(rows); });
}

RowLengths SupervisedFeed::row_lengths() const {
  RowLengths lengths{.rows = rows().rows(), .rows_seen = std::ssize(rows_->part_sizes())};
  for (const std::vector<std::int64_t>& parts : rows_->part_sizes()) lengths.add(parts.front());
  lengths.sort();
  if (!lengths.items.empty()) lengths.longest = lengths.items.front();
  return lengths;
}

std::vector<std::string> SupervisedFeed::unwritten_fields() const {
  return rl::unwritten_fields(rows().dataset(), [this](const DataRow& row) {
    return rows_->builder().unwritten_fields(row);
  });
}

Result<std::string> SupervisedFeed::first_row() const {
  const Result<DataRow> read = rows().dataset().read(0);
  if (!read.ok()) return read.status();
  const Result<LearnedTokens> row = rows_->read(0);
  if (!row.ok()) return row.status();
  std::string text =
      "the first row (" + read->where + "), as the model reads it; the text after > is learned, " +
      std::to_string(row->count()) + " of " + std::to_string(row->ids.size()) + " tokens:\n";
  for (std::size_t begin = 0; begin < row->ids.size();) {
    std::size_t end = begin;
    while (end < row->ids.size() && row->learned[end] == row->learned[begin]) ++end;
    text += shown_lines(
        rows_->tokenizer().decode(std::span(row->ids).subspan(begin, end - begin), false),
        row->learned[begin] != 0 ? '>' : '|');
    begin = end;
  }
  return text;
}

}  // namespace rl
