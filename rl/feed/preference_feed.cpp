#include "rl/feed/preference_feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rl/batch/balance.h"
#include "rl/feed/shown_row.h"
#include "rl/feed/vocabulary_check.h"

namespace rl {
namespace {

using runtime::Result;

Result<PreferenceTokenOptions> token_options(const Config& config) {
  ConfigReader read(config);
  PreferenceTokenOptions options;
  options.tokens_max = read.get_int("data.max_length");
  const std::string truncation = read.get_string("data.truncation");
  options.chat_template = read.find_string("model.custom_chat_template").value_or("");
  if (!read.status().ok()) return read.status();
  const Result<Truncation> cut = parse_truncation(truncation);
  if (!cut.ok()) return cut.status();
  options.truncation = *cut;
  const auto* variables = config.find("data.apply_chat_template_kwargs");
  if (variables != nullptr && variables->is_object()) options.template_variables = *variables;
  return options;
}

// Of a step's responses, in order.
struct Single {
  const PreferenceTokens* row = nullptr;
  const std::vector<std::int32_t>* response = nullptr;
  bool wanted = true;
};

// The nearest response before `index`, around the end, to another prompt; the one before where all
// answer the same.
const std::vector<std::int32_t>& other_response(const std::vector<Single>& singles,
                                                std::size_t index) {
  const std::size_t count = singles.size();
  for (std::size_t back = 1; back < count; ++back) {
    const Single& other = singles[(index + count - back) % count];
    if (other.row->prompt != singles[index].row->prompt) return *other.response;
  }
  return *singles[(index + count - 1) % count].response;
}

}  // namespace

Result<std::optional<DatasetOptions>> preference_dataset(const Config& config, Split split,
                                                         PreferenceForm form) {
  Result<std::optional<DatasetOptions>> options = dataset_options(config, split);
  if (!options.ok() || !*options) return options;
  Result<PreferenceMapping> mapping = PreferenceMapping::from_config(config, form);
  if (!mapping.ok()) return mapping.status();
  RowMapping& rows = (*options)->mapping;
  if (rows.conversations != RowMapping::Conversations::kNone) {
    return runtime::invalid_argument(
        "data.conversations does not go with preferences: lists of messages in " + mapping->chosen +
        " and " + mapping->rejected + " are read as they are; leave it out");
  }
  rows.preference = std::move(*mapping);
  return options;
}

Result<std::unique_ptr<PreferenceFeed>> PreferenceFeed::create(
    const Config& config, const DatasetOptions& dataset, const PreferenceFeedOptions& options) {
  Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer.ok()) return tokenizer.status();
  std::unique_ptr<PreferenceFeed> feed(new PreferenceFeed(options, std::move(*tokenizer)));
  const Result<PreferenceTokenOptions> how = token_options(config);
  if (!how.ok()) return how.status();
  feed->tokens_max_ =
      options.context > 0 ? std::min(how->tokens_max, options.context) : how->tokens_max;
  Result<PreferenceBuilder> builder = PreferenceBuilder::create(feed->tokenizer_, *how);
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
    const Result<PreferenceTokens> tokens = feed->tokens(row);
    if (!tokens.ok()) return tokens.status();
  }
  return feed;
}

Result<PreferenceTokens> PreferenceFeed::tokens(std::int64_t row) const {
  const Result<DataRow> read = rows_->dataset().read(row);
  if (!read.ok()) return read.status();
  Result<PreferenceTokens> tokens = builder_->tokenize(*read);
  if (!tokens.ok()) return tokens;
  const std::size_t longest =
      tokens->prompt.size() + std::max(tokens->chosen.size(), tokens->rejected.size());
  if (options_.context > 0 && static_cast<std::int64_t>(longest) > options_.context) {
    return runtime::invalid_argument(
        read->where + ": prompt and response have " + std::to_string(longest) +
        " tokens, the model's context is " + std::to_string(options_.context) +
        ": lower data.max_length to that, with data.truncation=left|right");
  }
  for (const auto* ids : {&tokens->prompt, &tokens->chosen, &tokens->rejected}) {
    if (const runtime::Status known =
            check_vocabulary(*ids, options_.vocabulary, tokenizer_, read->where);
        !known.ok())
      return known;
  }
  return tokens;
}

std::vector<PreferenceBatch> PreferenceFeed::shard_singles(
    const std::vector<PreferenceTokens>& rows) const {
  std::vector<Single> singles;
  for (const PreferenceTokens& row : rows) {
    const bool pair = !row.rejected.empty();
    singles.push_back({&row, &row.chosen, pair || row.wanted});
    if (pair) singles.push_back({&row, &row.rejected, false});
  }
  std::vector<std::int64_t> lengths;
  for (const Single& single : singles)
    lengths.push_back(
        static_cast<std::int64_t>(single.row->prompt.size() + single.response->size()));
  std::vector<PreferenceBatch> batches;
  for (const std::vector<std::int64_t>& share : spread_evenly(lengths, options_.workers)) {
    PreferenceBatch& batch = batches.emplace_back();
    for (const std::int64_t index : share) {
      const Single& single = singles[static_cast<std::size_t>(index)];
      const std::vector<std::int32_t>& other =
          other_response(singles, static_cast<std::size_t>(index));
      const std::size_t room = static_cast<std::size_t>(tokens_max_) -
                               single.row->prompt.size();  // at least 1: its own response had some
      batch.append_single(single.row->prompt, *single.response, single.wanted,
                          std::span(other).first(std::min(other.size(), room)));
    }
  }
  return batches;
}

Result<PreferenceStep> PreferenceFeed::make(const std::vector<std::int64_t>& rows) const {
  std::vector<PreferenceTokens> all;
  for (const std::int64_t row : rows) {
    Result<PreferenceTokens> one = tokens(row);
    if (!one.ok()) return one.status();
    all.push_back(std::move(*one));
  }
  PreferenceStep step;
  if (options_.form == PreferenceForm::kSingles) {
    step.batches = shard_singles(all);
  } else {
    std::vector<std::int64_t> lengths;
    for (const PreferenceTokens& pair : all)
      lengths.push_back(static_cast<std::int64_t>(pair.prompt.size() + pair.chosen.size() +
                                                  pair.rejected.size()));
    for (const std::vector<std::int64_t>& share : spread_evenly(lengths, options_.workers)) {
      PreferenceBatch& batch = step.batches.emplace_back();
      for (const std::int64_t index : share)
        batch.append_pair(all[static_cast<std::size_t>(index)]);
    }
  }
  for (const PreferenceBatch& batch : step.batches) {
    step.tokens += batch.tokens();
    step.rows += batch.rows();
    step.wanted += batch.wanted_count();
  }
  return step;
}

Result<PreferenceStep> PreferenceFeed::next() {
  const Result<std::vector<std::int64_t>> rows = rows_->next();
  if (!rows.ok()) return rows.status();
  return make(*rows);
}

Result<std::vector<PreferenceStep>> PreferenceFeed::all(std::int64_t step_rows) const {
  std::vector<PreferenceStep> steps;
  for (const std::vector<std::int64_t>& indices : rows_->in_order(step_rows)) {
    Result<PreferenceStep> step = make(indices);
    if (!step.ok()) return step.status();
    steps.push_back(std::move(*step));
  }
  return steps;
}

Result<std::string> PreferenceFeed::first_row() const {
  const Result<DataRow> read = rows_->dataset().read(0);
  if (!read.ok()) return read.status();
  const Result<PreferenceTokens> row = tokens(0);
  if (!row.ok()) return row.status();
  const auto part = [this](const std::string& name, const std::vector<std::int32_t>& ids,
                           char mark) {
    return name + " (" + std::to_string(ids.size()) + " tokens):\n" +
           shown_lines(tokenizer_.decode(ids, false), mark);
  };
  std::string text = "the first row (" + read->where + "), as the model reads it\n" +
                     part("its prompt", row->prompt, '|');
  if (options_.form == PreferenceForm::kSingles)
    return text + part(row->wanted ? "its response, labelled good" : "its response, labelled bad",
                       row->chosen, '>');
  text += part("the chosen response", row->chosen, '>');
  return text + part("the rejected response", row->rejected, '>');
}

}  // namespace rl
