#include "rl/run/rl/score_reader.h"

#include "rl/batch/worker_lists.h"

namespace rl {

using runtime::Status;

Status GreedyBaseline::compare(const std::vector<PromptBatch>& prompts, StepBatch& batch,
                               StepTimer& timer) {
  const auto greedy = policy_.generate_greedy(prompts);
  if (!greedy.ok()) return greedy.status();
  timer.lap("gen_max");  // verl's name for it
  const auto reports = reward_.score(select(*greedy, &Generated::batch), batch.tasks());
  if (!reports.ok()) return reports.status();
  for (std::size_t worker = 0; worker < batch.shares.size(); ++worker) {
    const RewardReport& report = (*reports)[worker];
    std::vector<SampleGroup>& groups = batch.shares[worker].groups;
    for (std::size_t prompt = 0; prompt < groups.size(); ++prompt) {
      for (Sample& sample : groups[prompt].samples) {
        sample.baseline = report.scores[prompt];
        if (report.left_out[prompt] != 0) sample.is_scored = false;
      }
    }
  }
  return {};
}

Status ScoreComponents::read(StepBatch& batch) {
  for (WorkerShare& share : batch.shares) {
    for (const std::string& key : keys_) {
      for (SampleGroup& group : share.groups) {
        for (Sample& sample : group.samples) {
          if (const Status status = read_sample(key, sample); !status.ok()) return status;
        }
      }
    }
  }
  return {};
}

Status ScoreComponents::read_sample(const std::string& key, Sample& sample) const {
  const auto found = sample.extras.find(key);
  if (!sample.is_scored) {
    sample.components.push_back(0.0);
  } else if (found != sample.extras.end()) {
    sample.components.push_back(found->second);
  } else if (score_stands_in_) {
    sample.components.push_back(sample.score);
  } else {
    std::string given;
    for (const auto& [name, value] : sample.extras) given += (given.empty() ? "" : ", ") + name;
    return runtime::invalid_argument(
        config_key_ + ": the reward gave no number '" + key + "' for a sample; it gives " +
        (given.empty() ? "a score alone: return a dictionary with one" : given));
  }
  return {};
}

}  // namespace rl
