// Samples that go to other workers than drew them, so that all train about as many tokens.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "rl/train/worker_lists.h"
#include "rl/trainer.h"

namespace rl {

using runtime::Result;
using runtime::split;

namespace {

// Responses to a prompt share its tokens, which are computed once.
std::vector<std::vector<std::int64_t>> prompt_costs(
    const std::vector<RolloutSummary>& summaries,
    const std::vector<std::vector<std::int64_t>>& counts) {
  std::vector<std::vector<std::int64_t>> costs;
  for (std::size_t worker = 0; worker < summaries.size(); ++worker) {
    std::vector<std::int64_t>& of_worker = costs.emplace_back();
    std::size_t sample = 0;
    for (const std::int64_t count : counts[worker]) {
      std::int64_t tokens = count > 0 ? summaries[worker].prompt_tokens[sample] : 0;
      for (std::int64_t i = 0; i < count; ++i)
        tokens += summaries[worker].response_tokens[sample++];
      of_worker.push_back(tokens);
    }
  }
  return costs;
}

}  // namespace

// Whatever lists the samples have by now go along. What is said of them later by who saw them
// before must be moved, too: with the places that this returns, empty where all stay.
Result<PromptPlaces> Trainer::balance(StepSamples& samples) {
  samples.drawn_tokens = tokens_by_worker(samples.summaries);
  if (!options_.balances || policy_.size() < 2) return PromptPlaces();
  std::vector<std::vector<std::int64_t>> counts = samples.samples_of;
  if (counts.empty()) {
    for (const std::vector<RewardTask>& tasks : samples.tasks)
      counts.emplace_back(tasks.size(), options_.samples_per_prompt);
  }
  std::optional<BalancedShards> balanced =
      balance_shards(samples.shards, prompt_costs(samples.summaries, counts));
  if (!balanced) return PromptPlaces();
  const PromptPlaces& places = balanced->places;
  std::vector<std::vector<runtime::ObjectRef<RolloutBatch>>> batches(places.size(),
                                                                     samples.batches);
  for (std::size_t worker = 0; worker < places.size(); ++worker) {
    std::set<std::int64_t> needed;
    for (const PromptPlace& place : places[worker]) needed.insert(place.worker);
    for (std::size_t from = 0; from < batches[worker].size(); ++from) {
      if (!needed.contains(static_cast<std::int64_t>(from))) batches[worker][from] = no_samples_;
    }
  }
  const auto collected = policy_.fetch(&PolicyActor::collect, split(batches), split(places));
  if (!collected.ok()) return collected.status();
  samples.shards = std::move(balanced->shards);
  samples.batches = select(*collected, &Generated::batch);
  samples.summaries = select(*collected, &Generated::summary);
  samples.tasks = move_prompts(samples.tasks, places);
  for (auto* lists : {&samples.scores, &samples.baselines}) {
    if (!lists->empty()) *lists = move_samples(*lists, counts, places);
  }
  if (!samples.components.empty())
    samples.components = move_samples(samples.components, counts, places);
  if (!samples.extras.empty()) samples.extras = move_samples(samples.extras, counts, places);
  if (!samples.samples_of.empty()) samples.samples_of = move_prompts(samples.samples_of, places);
  return std::move(balanced->places);
}

// The reward was asked about the samples where they were drawn. What it counted stays with who
// counted it.
void Trainer::move_reports(std::vector<RewardReport>& reports, const PromptPlaces& places) const {
  if (places.empty()) return;
  std::vector<std::vector<std::int64_t>> counts;
  std::set<std::string> names;
  for (const RewardReport& report : reports) {
    counts.emplace_back(
        report.scores.size() / static_cast<std::size_t>(options_.samples_per_prompt),
        options_.samples_per_prompt);
    for (const auto& [name, values] : report.extra) names.insert(name);
  }
  const auto move = [&](auto member) {
    const auto moved = move_samples(select(reports, member), counts, places);
    for (std::size_t worker = 0; worker < reports.size(); ++worker)
      reports[worker].*member = moved[worker];
  };
  std::map<std::string, std::vector<std::vector<double>>> extra;
  for (const std::string& name : names) {
    std::vector<std::vector<double>> values;
    for (const RewardReport& report : reports) {
      const auto found = report.extra.find(name);
      values.push_back(found != report.extra.end()
                           ? found->second
                           : std::vector<double>(report.scores.size(),
                                                 std::numeric_limits<double>::quiet_NaN()));
    }
    extra[name] = move_samples(values, counts, places);
  }
  move(&RewardReport::scores);
  move(&RewardReport::left_out);
  if (std::any_of(reports.begin(), reports.end(),
                  [](const RewardReport& report) { return !report.unpenalized.empty(); }))
    move(&RewardReport::unpenalized);
  for (std::size_t worker = 0; worker < reports.size(); ++worker) {
    for (const std::string& name : names) reports[worker].extra[name] = extra[name][worker];
  }
}

}  // namespace rl
