#include "rl/feed/prompt_feed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rl/data/json_text.h"
#include "rl/data/random.h"
#include "rl/feed/data_warnings.h"
#include "rl/feed/vocabulary_check.h"

namespace rl {
namespace {

using runtime::Result;

// Seeds that differ in one argument are unrelated.
std::uint64_t mix(std::uint64_t seed, std::uint64_t step, std::uint64_t prompt) {
  const std::uint64_t first = SplitMix(seed).next();
  const std::uint64_t second = SplitMix(first ^ step).next();
  return SplitMix(second ^ prompt).next();
}

// That the loop which the row asks for is one that there is.
runtime::Status check_agent(const DataRow& row, bool conversations, bool custom) {
  if (custom || row.agent_name.empty() || row.agent_name == "single_turn_agent" ||
      (conversations && row.agent_name == "tool_agent"))
    return {};
  if (row.agent_name == "tool_agent") {
    return runtime::invalid_argument(
        row.where +
        ": its agent_name is tool_agent: set actor_rollout_ref.rollout.multi_turn.enable=true, "
        "with the tools in multi_turn.tool_config_path");
  }
  return runtime::unimplemented(
      row.where + ": its agent_name is " + row.agent_name +
      ", and there are single_turn_agent and tool_agent: name the file of custom agent loops in "
      "actor_rollout_ref.rollout.agent.agent_loop_config_path");
}

// That the model can read what it is to learn; 0: its context is not known.
runtime::Status check_demonstration(const DataRow& row, std::size_t prompt, std::size_t response,
                                    std::int64_t context) {
  const std::size_t tokens = prompt + response;
  if (context == 0 || tokens <= static_cast<std::size_t>(context)) return {};
  return runtime::invalid_argument(row.where + ": the prompt and its demonstration have " +
                                   std::to_string(tokens) + " tokens, the model's context is " +
                                   std::to_string(context) + ": leave such rows out");
}

}  // namespace

std::string conversation_context(const DataRow& row, bool whole) {
  using nlohmann::ordered_json;
  ordered_json context = {
      {"messages", row.is_chat()
                       ? row.prompt
                       : ordered_json::array({{{"role", "user"}, {"content", row.prompt}}})}};
  for (const char* key : {"tools_kwargs", "interaction_kwargs", "tool_selection"}) {
    if (row.extra.is_object() && row.extra.contains(key)) context[key] = row.extra[key];
  }
  if (!row.agent_name.empty()) context["agent_name"] = row.agent_name;
  if (whole) {
    const ordered_json extra = row.extra.is_object() ? row.extra : ordered_json::object();
    // A text that is a dictionary is given as one.
    ordered_json truth = text_as_json(
        row.ground_truth, row.ground_truth_is_json || row.ground_truth.starts_with('{'));
    if (!row.answerless.empty()) truth = nullptr;
    context["row"] = {{"data_source", row.data_source},
                      {"reward_model", {{"style", "rule"}, {"ground_truth", std::move(truth)}}},
                      {"extra_info", extra},
                      {"index", extra.value("index", ordered_json(0))}};
    for (const char* key : {"tools_kwargs", "interaction_kwargs"})
      context["row"][key] = extra.value(key, ordered_json::object());
  }
  return context.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<std::unique_ptr<PromptFeed>> PromptFeed::create(const Config& config,
                                                       const DatasetOptions& dataset,
                                                       const PromptFeedOptions& options) {
  Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer.ok()) return tokenizer.status();
  std::unique_ptr<PromptFeed> feed(new PromptFeed(options, std::move(*tokenizer)));
  Result<PromptOptions> prompt_options = PromptOptions::from_config(config);
  if (!prompt_options.ok()) return prompt_options.status();
  prompt_options->tools = options.tools;
  Result<PromptBuilder> builder = PromptBuilder::create(feed->tokenizer_, *prompt_options);
  if (!builder.ok()) return builder.status();
  feed->builder_ = std::move(*builder);
  Result<Dataset> rows = Dataset::load(dataset);
  if (!rows.ok()) return rows.status();
  Result<Dataset> kept = feed->builder_->filter(std::move(*rows), &feed->dropped_);
  if (!kept.ok()) return kept.status();
  std::unique_ptr<RowOrder> order;
  if (options.adaptive || !options.python_sampler.empty()) {
    Result<std::unique_ptr<RowOrder>> made = options.adaptive
                                                 ? make_adaptive_order(*kept, *options.adaptive)
                                                 : make_python_order(*kept, options.python_sampler);
    if (!made.ok()) return made.status();
    order = std::move(*made);
  }
  Result<RowFeed> batches = RowFeed::create(std::move(*kept),
                                            {.batch_rows = options.batch_prompts,
                                             .batch_key = options.batch_key,
                                             .shuffle = options.shuffle,
                                             .shuffle_seed = options.shuffle_seed},
                                            std::move(order));
  if (!batches.ok()) return batches.status();
  feed->rows_ = std::move(*batches);
  for (std::int64_t row = 0; row < std::min(feed->rows(), kRowsCheckedMax); ++row) {
    const Result<DataRow> read = feed->dataset().read(row);
    if (!read.ok()) return read.status();
    if (const runtime::Status known = check_agent(*read, options.conversations, options.whole_rows);
        !known.ok())
      return known;
    const auto ids = feed->builder_->ids(*read);
    if (!ids.ok()) return ids.status();
    if (options.context > 0 && static_cast<std::int64_t>(ids->size()) >= options.context) {
      return runtime::invalid_argument(
          read->where + ": the prompt has " + std::to_string(ids->size()) +
          " tokens, and the model's context of " + std::to_string(options.context) +
          " has to hold the response too: lower data.max_prompt_length");
    }
    if (const runtime::Status known =
            check_vocabulary(*ids, options.vocabulary, feed->tokenizer_, read->where);
        !known.ok())
      return known;
    if (const auto teacher = feed->teacher_of(*read); !teacher.ok()) return teacher.status();
    if (!options.demonstrations) continue;
    const auto response = feed->demonstration_ids(*read);
    if (!response.ok()) return response.status();
    if (const runtime::Status fits =
            check_demonstration(*read, ids->size(), response->size(), options.context);
        !fits.ok())
      return fits;
    feed->lengths_.add(std::ssize(*ids) + std::ssize(*response));
  }
  feed->lengths_.sort();
  feed->lengths_.rows = feed->rows();
  feed->lengths_.rows_seen = std::ssize(feed->lengths_.items);
  if (!feed->lengths_.items.empty()) feed->lengths_.longest = feed->lengths_.items.front();
  return feed;
}

Result<StepPrompts> PromptFeed::make(const std::vector<std::int64_t>& rows, std::uint64_t step,
                                     std::int64_t first) const {
  StepPrompts prompts;
  prompts.rows = rows;
  prompts.shards = shard_prompts(static_cast<std::int64_t>(rows.size()),
                                 options_.mini_batch_prompts, options_.workers);
  for (const PromptShard& shard : prompts.shards) {
    PromptBatch& batch = prompts.batches.emplace_back();
    std::vector<RewardTask>& tasks = prompts.tasks.emplace_back();
    for (const std::int64_t index : shard.prompts) {
      const Result<DataRow> row = dataset().read(rows[static_cast<std::size_t>(index)]);
      if (!row.ok()) return row.status();
      const Result<std::vector<std::int32_t>> ids = builder_->ids(*row);
      if (!ids.ok()) return ids.status();
      Result<std::string> teacher = teacher_of(*row);
      if (!teacher.ok()) return teacher.status();
      batch.ids.append(*ids);
      if (options_.conversations)
        batch.contexts.push_back(conversation_context(*row, options_.whole_rows));
      batch.seeds.push_back(
          mix(options_.sampling_seed, step, static_cast<std::uint64_t>(first + index)));
      tasks.push_back({row->data_source, row->ground_truth, row->where,
                       row->extra.is_null() ? std::string() : row->extra.dump(),
                       options_.with_prompts ? row->prompt.dump() : std::string(),
                       std::move(*teacher), row->answerless.empty(), row->ground_truth_is_json});
    }
  }
  return prompts;
}

Result<StepPrompts> PromptFeed::next(std::int64_t step, std::int64_t round) {
  const Result<std::vector<std::int64_t>> rows = rows_->next();
  if (!rows.ok()) return rows.status();
  Result<StepPrompts> prompts =
      make(*rows, static_cast<std::uint64_t>(step), round * options_.batch_prompts);
  if (prompts.ok()) prompts->epoch = rows_->epoch();
  return prompts;
}

Result<StepPrompts> PromptFeed::of_rows(const std::vector<std::int64_t>& rows,
                                        std::int64_t step) const {
  Result<StepPrompts> prompts = make(rows, static_cast<std::uint64_t>(step));
  if (prompts.ok()) prompts->epoch = rows_->epoch();
  return prompts;
}

Result<std::vector<StepPrompts>> PromptFeed::all() const {
  std::vector<StepPrompts> batches;
  for (const std::vector<std::int64_t>& indices : rows_->in_order(options_.batch_prompts)) {
    Result<StepPrompts> prompts = make(indices, static_cast<std::uint64_t>(indices.front()));
    if (!prompts.ok()) return prompts.status();
    batches.push_back(std::move(*prompts));
  }
  return batches;
}

Result<std::string> PromptFeed::teacher_of(const DataRow& row) const {
  if (options_.teachers.empty()) return std::string();
  const std::string key =
      options_.teacher_column == "data_source" ? row.data_source : row.teacher.value_or("");
  if (std::find(options_.teachers.begin(), options_.teachers.end(), key) != options_.teachers.end())
    return key;
  std::string known;
  for (const std::string& teacher : options_.teachers)
    known += (known.empty() ? "" : ", ") + teacher;
  return runtime::invalid_argument(
      row.where + ": its '" + options_.teacher_column + "' (distillation.teacher_key) " +
      (key.empty() ? "is empty" : "is '" + key + "'") + ", and there are teachers for " + known +
      ": set distillation.teacher_models.NAME.key and .model_path of one for it, or leave such "
      "rows out");
}

Result<std::vector<std::int32_t>> PromptFeed::demonstration_ids(const DataRow& row) const {
  Result<std::vector<std::int32_t>> ids = builder_->response_ids(row);
  if (!ids.ok()) return ids;
  if (const runtime::Status known =
          check_vocabulary(*ids, options_.vocabulary, tokenizer_, row.where + ": the response");
      !known.ok())
    return known;
  return ids;
}

DealtRows PromptFeed::deal_demonstrations() const {
  if (options_.leaves > 0) {
    return deal_rows(std::vector<std::int64_t>(static_cast<std::size_t>(options_.batch_prompts), 1),
                     options_.workers, options_.leaves);
  }
  DealtRows dealt;
  for (PromptShard& shard :
       shard_prompts(options_.batch_prompts, options_.batch_prompts, options_.workers))
    dealt.rows.push_back(std::move(shard.prompts));
  return dealt;
}

Result<DemonstrationStep> PromptFeed::next_demonstrations() {
  const Result<std::vector<std::int64_t>> rows = rows_->next();
  if (!rows.ok()) return rows.status();
  DealtRows dealt = deal_demonstrations();
  DemonstrationStep step{.batches = {}, .leaves = std::move(dealt.leaves)};
  for (const std::vector<std::int64_t>& share : dealt.rows) {
    DemonstrationBatch& batch = step.batches.emplace_back();
    for (const std::int64_t index : share) {
      const Result<DataRow> row = dataset().read((*rows)[static_cast<std::size_t>(index)]);
      if (!row.ok()) return row.status();
      const Result<std::vector<std::int32_t>> prompt = builder_->ids(*row);
      if (!prompt.ok()) return prompt.status();
      const Result<std::vector<std::int32_t>> response = demonstration_ids(*row);
      if (!response.ok()) return response.status();
      if (const runtime::Status fits =
              check_demonstration(*row, prompt->size(), response->size(), options_.context);
          !fits.ok())
        return fits;
      batch.prompts.append(*prompt);
      batch.responses.append(*response);
    }
  }
  return step;
}

std::vector<std::string> PromptFeed::unwritten_fields() const {
  return rl::unwritten_fields(
      dataset(), [this](const DataRow& row) { return builder_->unwritten_fields(row); });
}

}  // namespace rl
