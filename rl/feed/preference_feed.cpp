#include "rl/feed/preference_feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rl/batch/balance.h"
#include "rl/feed/data_warnings.h"
#include "rl/feed/shown_row.h"

namespace rl {
namespace {

using runtime::Result;

// One of a step's responses, which are in order.
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

Result<std::unique_ptr<PreferenceFeed>> PreferenceFeed::create(const Config& config,
                                                               const DatasetOptions& dataset,
                                                               PreferenceForm form,
                                                               const EncodedRowsOptions& options) {
  const Result<SequenceOptions> how = SequenceOptions::from_config(config);
  if (!how.ok()) return how.status();
  const std::int64_t tokens_max =
      options.context > 0 ? std::min(how->tokens_max, options.context) : how->tokens_max;
  Result<std::unique_ptr<Rows>> rows = Rows::create(dataset, options, *how);
  if (!rows.ok()) return rows.status();
  return std::unique_ptr<PreferenceFeed>(new PreferenceFeed(form, tokens_max, std::move(*rows)));
}

void PreferenceFeed::add_singles(const std::vector<PreferenceTokens>& rows,
                                 PreferenceStep& step) const {
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
  DealtRows dealt = deal_rows(lengths, rows_->options().workers, rows_->options().leaves);
  step.leaves = std::move(dealt.leaves);
  for (const std::vector<std::int64_t>& share : dealt.rows) {
    PreferenceBatch& batch = step.batches.emplace_back();
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
}

PreferenceStep PreferenceFeed::make(const std::vector<PreferenceTokens>& rows) const {
  PreferenceStep step;
  if (form_ == PreferenceForm::kSingles) {
    add_singles(rows, step);
  } else {
    std::vector<std::int64_t> lengths;
    for (const PreferenceTokens& pair : rows)
      lengths.push_back(static_cast<std::int64_t>(pair.prompt.size() + pair.chosen.size() +
                                                  pair.rejected.size()));
    DealtRows dealt = deal_rows(lengths, rows_->options().workers, rows_->options().leaves);
    step.leaves = std::move(dealt.leaves);
    for (const auto& share : dealt.rows) {
      PreferenceBatch& batch = step.batches.emplace_back();
      for (const std::int64_t index : share)
        batch.append_pair(rows[static_cast<std::size_t>(index)]);
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
  const Result<std::vector<PreferenceTokens>> rows = rows_->next();
  if (!rows.ok()) return rows.status();
  return make(*rows);
}

Result<std::vector<PreferenceStep>> PreferenceFeed::all(std::int64_t step_rows) const {
  return rows_->all(step_rows,
                    [this](const std::vector<PreferenceTokens>& rows) { return make(rows); });
}

RowLengths PreferenceFeed::row_lengths(bool shares_prompts) const {
  const bool pairs = form_ == PreferenceForm::kPairs;
  RowLengths lengths{.sequences_per_item = pairs ? 2 : 1,
                     .rows = rows().rows(),
                     .rows_seen = std::ssize(rows_->part_sizes()),
                     .scores_other_responses = !pairs};
  for (const std::vector<std::int64_t>& parts : rows_->part_sizes()) {
    const std::int64_t prompt = parts[0], chosen = parts[1], rejected = parts[2];
    lengths.longest = std::max(lengths.longest, prompt + std::max(chosen, rejected));
    if (pairs) {
      lengths.add((shares_prompts ? 1 : 2) * prompt + chosen + rejected);
      continue;
    }
    lengths.add(prompt + chosen);
    if (rejected == 0) continue;
    lengths.add(prompt + rejected);
    lengths.items_per_row = 2;
  }
  lengths.sort();
  return lengths;
}

Result<std::string> PreferenceFeed::first_row() const {
  const Result<DataRow> read = rows().dataset().read(0);
  if (!read.ok()) return read.status();
  const Result<PreferenceTokens> row = rows_->read(0);
  if (!row.ok()) return row.status();
  const auto part = [this](const std::string& name, const std::vector<std::int32_t>& ids,
                           char mark) {
    return name + " (" + std::to_string(ids.size()) + " tokens):\n" +
           shown_lines(rows_->tokenizer().decode(ids, false), mark);
  };
  std::string text = "the first row (" + read->where + "), as the model reads it\n" +
                     part("its prompt", row->prompt, '|');
  if (form_ == PreferenceForm::kSingles)
    return text + part(row->wanted ? "its response, labelled good" : "its response, labelled bad",
                       row->chosen, '>');
  text += part("the chosen response", row->chosen, '>');
  return text + part("the rejected response", row->rejected, '>');
}

std::vector<std::string> PreferenceFeed::unwritten_fields() const {
  return rl::unwritten_fields(rows().dataset(), [this](const DataRow& row) {
    return rows_->builder().unwritten_fields(row);
  });
}

}  // namespace rl
