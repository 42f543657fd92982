#include "rl/feed/supervised_feed.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "rl/batch/balance.h"
#include "rl/feed/shown_row.h"
#include "rl/feed/vocabulary_check.h"

namespace rl {

using runtime::Result;

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

Result<ConversationOptions> conversation_options(const Config& config) {
  ConfigReader read(config);
  ConversationOptions options;
  options.tokens_max = read.get_int("data.max_length");
  const std::string truncation = read.get_string("data.truncation");
  options.message_by_message = read.get_bool("data.ignore_input_ids_mismatch");
  options.chat_template = read.find_string("model.custom_chat_template").value_or("");
  if (!read.status().ok()) return read.status();
  const Result<Truncation> cut = parse_truncation(truncation);
  if (!cut.ok()) return cut.status();
  options.truncation = *cut;
  const auto* variables = config.find("data.apply_chat_template_kwargs");
  if (variables != nullptr && variables->is_object()) options.template_variables = *variables;
  const auto* thinking = config.find("data.enable_thinking_default");
  options.thinking_given = thinking != nullptr && thinking->is_boolean();
  options.thinking = options.thinking_given && thinking->get<bool>();
  return options;
}

Result<std::unique_ptr<SupervisedFeed>> SupervisedFeed::create(
    const Config& config, const DatasetOptions& dataset, const SupervisedFeedOptions& options) {
  Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer.ok()) return tokenizer.status();
  std::unique_ptr<SupervisedFeed> feed(new SupervisedFeed(options, std::move(*tokenizer)));
  const Result<ConversationOptions> how = conversation_options(config);
  if (!how.ok()) return how.status();
  Result<ConversationBuilder> builder = ConversationBuilder::create(feed->tokenizer_, *how);
  if (!builder.ok()) return builder.status();
  feed->builder_ = std::move(*builder);
  Result<Dataset> rows = Dataset::load(dataset);
  if (!rows.ok()) return rows.status();
  Result<RowFeed> batches =
      RowFeed::create(std::move(*rows), {.batch_rows = options.batch_rows,
                                         .shuffle = options.shuffle,
                                         .shuffle_seed = options.shuffle_seed});
  if (!batches.ok()) return batches.status();
  feed->rows_ = std::move(*batches);
  for (std::int64_t row = 0; row < std::min(feed->rows_->rows(), kRowsCheckedMax); ++row) {
    const Result<LearnedTokens> tokens = feed->tokens(row);
    if (!tokens.ok()) return tokens.status();
  }
  return feed;
}

Result<LearnedTokens> SupervisedFeed::tokens(std::int64_t row) const {
  const Result<DataRow> read = rows_->dataset().read(row);
  if (!read.ok()) return read.status();
  Result<LearnedTokens> tokens = builder_->tokenize(*read);
  if (tokens.ok() && options_.context > 0 &&
      static_cast<std::int64_t>(tokens->ids.size()) > options_.context) {
    return runtime::invalid_argument(
        read->where + ": the sequence has " + std::to_string(tokens->ids.size()) +
        " tokens, the model's context is " + std::to_string(options_.context) +
        ": lower data.max_length to that, with data.truncation=left|right");
  }
  if (!tokens.ok()) return tokens;
  if (const runtime::Status known =
          check_vocabulary(tokens->ids, options_.vocabulary, tokenizer_, read->where);
      !known.ok())
    return known;
  return tokens;
}

Result<SupervisedStep> SupervisedFeed::make(const std::vector<std::int64_t>& rows) const {
  SupervisedStep step;
  std::vector<LearnedTokens> all;
  std::vector<std::int64_t> lengths;
  for (const std::int64_t index : rows) {
    Result<LearnedTokens> row = tokens(index);
    if (!row.ok()) return row.status();
    lengths.push_back(static_cast<std::int64_t>(row->ids.size()));
    all.push_back(std::move(*row));
  }
  for (const std::vector<std::int64_t>& share : spread_evenly(lengths, options_.workers)) {
    SupervisedBatch& batch = step.batches.emplace_back();
    for (const std::int64_t index : share) batch.append(all[static_cast<std::size_t>(index)]);
    step.tokens += static_cast<std::int64_t>(batch.ids.values.size());
    step.learned_tokens += batch.learned_tokens();
  }
  return step;
}

Result<SupervisedStep> SupervisedFeed::next() {
  const Result<std::vector<std::int64_t>> rows = rows_->next();
  if (!rows.ok()) return rows.status();
  Result<SupervisedStep> step = make(*rows);
  if (step.ok() && step->learned_tokens == 0) {
    return runtime::invalid_argument(
        "of the rows of this step no token is left to learn: data.truncation has cut all responses "
        "away; raise data.max_length (data.truncation=left keeps what stands last)");
  }
  return step;
}

Result<std::vector<SupervisedStep>> SupervisedFeed::all(std::int64_t step_rows) const {
  std::vector<SupervisedStep> steps;
  for (const std::vector<std::int64_t>& indices : rows_->in_order(step_rows)) {
    Result<SupervisedStep> step = make(indices);
    if (!step.ok()) return step.status();
    steps.push_back(std::move(*step));
  }
  return steps;
}

Result<std::string> SupervisedFeed::first_row() const {
  const Result<DataRow> read = rows_->dataset().read(0);
  if (!read.ok()) return read.status();
  const Result<LearnedTokens> row = tokens(0);
  if (!row.ok()) return row.status();
  std::string text = "the first row (" + read->where +
                     "), as the model reads it; what stands behind > is learned, " +
                     std::to_string(row->count()) + " of " + std::to_string(row->ids.size()) +
                     " tokens:\n";
  for (std::size_t begin = 0; begin < row->ids.size();) {
    std::size_t end = begin;
    while (end < row->ids.size() && row->learned[end] == row->learned[begin]) ++end;
    text += shown_lines(tokenizer_.decode(std::span(row->ids).subspan(begin, end - begin), false),
                        row->learned[begin] != 0 ? '>' : '|');
    begin = end;
  }
  return text;
}

}  // namespace rl
