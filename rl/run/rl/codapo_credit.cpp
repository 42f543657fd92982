#include "rl/run/rl/codapo_credit.h"

#include <algorithm>
#include <map>

#include "rl/algo/estimator_codapo.h"
#include "rl/run/rl/response_credit.h"

namespace rl {
namespace {

constexpr const char* kFocusKey = "focus";

}  // namespace

runtime::Status CodapoCredit::assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                                     StepTimer& timer) {
  ScoredResponses responses = scored_responses(batch);
  std::vector<std::uint8_t> right;
  batch.for_each(
      [&](Sample& sample) { right.push_back(sample.components.front() == 1.0 ? 1 : 0); });
  responses.prompt_values =
      codapo_values(batch.all<float>(&Sample::mean_logprob), right, responses.groups);
  const bool focused = !focus_.empty();
  focus_.clear();
  credit.metrics["codapo/is_focused_step"] = focused ? 1.0 : 0.0;
  if (!focused) choose_focus(batch, responses.prompt_values, credit.metrics);
  const runtime::Result<std::vector<float>> advantages =
      estimator_.advantages(responses, options_.settings);
  if (!advantages.ok()) return advantages.status();
  put_advantages(batch, *advantages);
  return {};
}

nlohmann::ordered_json CodapoCredit::save() const {
  nlohmann::ordered_json state;
  state[kFocusKey] = focus_;
  return state;
}

runtime::Status CodapoCredit::restore(const nlohmann::ordered_json& state) {
  std::vector<std::int64_t> focus;
  if (const auto found = state.find(kFocusKey); found != state.end()) {
    for (const nlohmann::ordered_json& row : *found) {
      const bool fits = row.is_number_integer() && row.get<std::int64_t>() >= 0 &&
                        row.get<std::int64_t>() < options_.data_rows;
      if (!fits)
        return runtime::invalid_argument("its \"focus\" names rows that the data does not have");
      focus.push_back(row.get<std::int64_t>());
    }
  }
  focus_ = std::move(focus);
  return {};
}

void CodapoCredit::choose_focus(const StepBatch& batch, const std::vector<double>& values,
                                Metrics& metrics) {
  const std::vector<std::int64_t> groups = batch.prompt_of_samples();
  const std::vector<std::int64_t> prompts =
      codapo_focus(values, groups, options_.top_k, options_.batch_prompts);
  // Means over prompts, each as often as it has samples: as often as the others, unless some had no
  // score.
  double sum = 0.0, selected = 0.0;
  for (const double value : values) sum += value;
  const std::size_t kinds = std::min(prompts.size(), static_cast<std::size_t>(options_.top_k));
  for (std::size_t i = 0; i < kinds; ++i)
    selected += values[static_cast<std::size_t>(
        std::find(groups.begin(), groups.end(), prompts[i]) - groups.begin())];
  metrics["codapo/value/mean"] = values.empty() ? 0.0 : sum / static_cast<double>(values.size());
  metrics["codapo/selected_value/mean"] = kinds == 0 ? 0.0 : selected / static_cast<double>(kinds);
  std::map<std::int64_t, std::int64_t> rows;  // by prompt
  for (const WorkerShare& share : batch.shares) {
    for (const SampleGroup& group : share.groups) rows[group.prompt] = group.row;
  }
  for (const std::int64_t prompt : prompts) focus_.push_back(rows.at(prompt));
}

}  // namespace rl
