#include "rl/rollout/partial_rollout.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

PartialSample partial_sample(Completion completion) {
  const bool finished = completion.finish_reason != FinishReason::kAborted;
  return {.ids = std::move(completion.ids),
          .logprobs = std::move(completion.logprobs),
          .weight_versions = std::move(completion.weight_versions),
          .finished = finished,
          .stopped = completion.finish_reason == FinishReason::kStop};
}

// Ends what is left when the caller goes, also with an error.
class Requests {
 public:
  explicit Requests(Engine& engine) : engine_(engine) {}
  ~Requests() {
    for (const auto& [id, row] : rows_) engine_.abort(id);
    (void)engine_.take_finished();
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  void submit(Request request, std::size_t row) {
    rows_.emplace(engine_.submit(std::move(request)), row);
  }
  void abort_all() const {
    for (const auto& [id, row] : rows_) engine_.abort(id);
  }

  // What has finished since, by row.
  Status collect(std::vector<std::vector<Completion>>& of_row) const {
    for (Completion& completion : engine_.take_finished()) {
      const auto found = rows_.find(completion.request);
      if (found == rows_.end()) continue;
      if (completion.finish_reason == FinishReason::kError)
        return completion.status.with_context("generating for prompt " +
                                              std::to_string(found->second));
      of_row[found->second].push_back(std::move(completion));
    }
    return {};
  }

 private:
  Engine& engine_;
  std::map<RequestId, std::size_t> rows_;
};

}  // namespace

Result<PartialGeneration> generate_partially(Engine& engine, const Request& like,
                                             std::span<const PartialPrompt> prompts,
                                             const PartialPlan& plan) {
  const auto total = static_cast<std::int64_t>(prompts.size());
  if (plan.prompts < 0 || plan.prompts > total) {
    return runtime::invalid_argument("partial rollouts: " + std::to_string(plan.prompts) +
                                     " prompts are wanted of " + std::to_string(total));
  }
  Requests requests(engine);
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    Request request = like;
    request.prompt_ids = prompts[row].ids;
    request.sampling.seed = prompts[row].seed;
    if (static_cast<std::int64_t>(row) >= plan.restart) request.partial = prompts[row].samples;
    requests.submit(std::move(request), row);
  }
  std::vector<std::vector<Completion>> of_row(prompts.size());
  const auto fulfilled = [&] {
    const auto done = std::count_if(of_row.begin(), of_row.end(),
                                    [](const auto& completions) { return !completions.empty(); });
    const auto awaited = of_row.begin() + std::clamp<std::int64_t>(plan.must_finish, 0, total);
    return done >= plan.prompts &&
           std::all_of(of_row.begin(), awaited,
                       [](const auto& completions) { return !completions.empty(); });
  };
  Status status = requests.collect(of_row);
  while (status.ok() && !fulfilled()) {
    status = engine.step();
    if (status.ok()) status = requests.collect(of_row);
  }
  if (!status.ok()) return status;
  PartialGeneration generated;
  std::vector<bool> taken(prompts.size());
  for (std::size_t row = 0;
       row < prompts.size() && static_cast<std::int64_t>(generated.finished.size()) < plan.prompts;
       ++row) {
    if (of_row[row].empty()) continue;
    taken[row] = true;
    generated.finished.push_back(static_cast<std::int64_t>(row));
    generated.completions.push_back(std::exchange(of_row[row], {}));
  }
  requests.abort_all();
  if (status = requests.collect(of_row); !status.ok()) return status;
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    if (taken[row]) continue;
    PartialPrompt& rest = generated.rest.emplace_back(
        PartialPrompt{.ids = prompts[row].ids, .seed = prompts[row].seed});
    for (Completion& completion : of_row[row])
      rest.samples.push_back(partial_sample(std::move(completion)));
  }
  return generated;
}

}  // namespace rl
