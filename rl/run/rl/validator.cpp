#include "rl/run/rl/validator.h"

#include "rl/batch/worker_lists.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// One worker's answers to prompts of the validation data.
void add_answers(const std::vector<RewardTask>& tasks, const RewardReport& report,
                 std::vector<ValidatedPrompt>& validated) {
  if (tasks.empty()) return;
  const std::size_t samples_per_prompt = report.scores.size() / tasks.size();
  for (std::size_t i = 0; i < report.scores.size(); ++i) {
    if (i % samples_per_prompt == 0)
      validated.push_back({tasks[i / samples_per_prompt].data_source, {}});
    if (report.left_out[i] != 0) continue;
    std::map<std::string, std::vector<double>>& to = validated.back().values;
    to["reward"].push_back(report.scores[i]);
    for (const auto& [name, values] : report.extra) to[name].push_back(values[i]);
    // As verl's dapo manager has it: how right an answer is, whatever its length took off.
    if (!report.unpenalized.empty() && !report.extra.contains("acc"))
      to["acc"].push_back(report.unpenalized[i]);
  }
}

}  // namespace

Result<Metrics> Validator::validate(std::int64_t step) {
  const Result<std::vector<StepPrompts>> rounds = rounds_();
  if (!rounds.ok()) return rounds.status();
  Seen seen;
  for (const StepPrompts& prompts : *rounds) {
    const Status validated =
        validate_round(prompts, step, /*append=*/&prompts != &rounds->front(), seen);
    if (!validated.ok()) return validated;
  }
  if (first_samples_.empty()) first_samples_ = seen.texts;
  last_samples_ = std::move(seen.texts);
  Metrics metrics = validation_metrics(seen.prompts);
  add_distribution(metrics, "val-aux/num_turns", seen.turns);
  return metrics;
}

Status Validator::validate_round(const StepPrompts& prompts, std::int64_t step, bool append,
                                 Seen& seen) {
  const auto generated = policy_.generate(prompts, /*validation=*/true);
  if (!generated.ok()) return generated.status();
  for (const Generated& part : *generated)
    seen.turns.insert(seen.turns.end(), part.summary.turns.begin(), part.summary.turns.end());
  DumpedBatch batch{
      .batches = select(*generated, &Generated::batch), .tasks = prompts.tasks, .scores = {}};
  const auto reports = reward_.score(batch.batches, prompts.tasks);
  if (!reports.ok()) return reports.status();
  batch.scores = select(*reports, &RewardReport::scores);
  for (std::size_t worker = 0; worker < reports->size(); ++worker)
    add_answers(prompts.tasks[worker], (*reports)[worker], seen.prompts);
  if (dump_.is_wanted()) {
    batch.extras = join<std::map<std::string, double>>(extras_of(*reports));
    dump_.write(step, append, batch);
  }
  return keep_texts(batch, seen.texts);
}

Status Validator::keep_texts(const DumpedBatch& batch, std::vector<SampleText>& texts) {
  const std::int64_t missing = shown_samples_ - static_cast<std::int64_t>(texts.size());
  if (missing <= 0) return {};
  const auto shown = reward_.texts(batch.batches, batch.tasks, batch.scores, missing);
  if (!shown.ok()) return shown.status();
  for (SampleText& text : join<SampleText>(*shown)) {
    if (static_cast<std::int64_t>(texts.size()) < shown_samples_) texts.push_back(std::move(text));
  }
  return {};
}

}  // namespace rl
