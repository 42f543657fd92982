// On-policy distillation: teachers, which are references with models of their own, score what the
// policy drew.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "rl/model/model_config.h"
#include "rl/train/teacher_vocabulary.h"
#include "rl/train/teachers.h"
#include "rl/train/toy_model.h"
#include "rl/train/worker_lists.h"
#include "rl/trainer.h"
#include "rl/worker/policy_options.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::split;
using runtime::Status;

}  // namespace

// What makes a teacher unfit is found before workers start.
Status Trainer::find_teachers(const PolicyOptions& policy) {
  const Result<std::vector<NamedTeacher>> named = teachers_from_config(config_);
  if (!named.ok()) return named.status();
  const Result<ModelConfig> student = ModelConfig::load(model_);
  if (!student.ok()) return student.status();
  const std::int64_t longest = std::min(policy.positions_max, student->max_position_embeddings);
  for (const NamedTeacher& one : *named) {
    Result<std::filesystem::path> model = resolve_model(config_, one.model_key, options_.seed);
    if (!model.ok()) return model.status();
    if (const Status same = check_same_vocabulary(model_, *model); !same.ok())
      return same.with_context(one.model_key);
    const Result<ModelConfig> teacher = ModelConfig::load(*model);
    if (!teacher.ok()) return teacher.status().with_context(one.model_key);
    if (teacher->max_position_embeddings < longest) {
      return runtime::invalid_argument(
          one.model_key + ": " + model->string() + " reads at most " +
          std::to_string(teacher->max_position_embeddings) + " tokens, and samples have up to " +
          std::to_string(longest) + ": lower data.max_prompt_length or data.max_response_length");
    }
    teachers_.push_back({.named = one, .model = std::move(*model), .group = {}});
  }
  return {};
}

Status Trainer::start_teachers() {
  // Log-probabilities are of a teacher's own distribution, as verl's teachers give them, whatever
  // the temperature that samples are drawn at.
  nlohmann::ordered_json config = config_.to_json();
  config["actor_rollout_ref"]["rollout"]["temperature"] = 1.0;
  const std::string text = config_.with_tree(std::move(config)).serialize();
  for (Teacher& teacher : teachers_) {
    WorkerSpec teacher_spec = spec(teacher.role(), teacher.model);
    teacher_spec.config = text;
    auto group =
        WorkerGroup<ReferenceActor>::spawn(runtime_, slots_, /*reserves=*/false, teacher_spec);
    if (!group.ok()) return group.status();
    teacher.group = std::move(*group);
  }
  return {};
}

// By worker and sample, a 1 where another teacher than this one is asked.
std::vector<std::vector<std::uint8_t>> Trainer::of_other_teachers(const StepSamples& samples,
                                                                  const Teacher& teacher) {
  std::vector<std::vector<std::uint8_t>> marks(samples.tasks.size());
  for (std::size_t worker = 0; worker < marks.size(); ++worker) {
    for (std::size_t prompt = 0; prompt < samples.tasks[worker].size(); ++prompt) {
      marks[worker].insert(marks[worker].end(),
                           static_cast<std::size_t>(samples.samples_of[worker][prompt]),
                           samples.tasks[worker][prompt].teacher == teacher.named.rows ? 0 : 1);
    }
  }
  return marks;
}

// Of several each adds to what those before it said what it says of the samples of its own rows.
Status Trainer::teach(StepSamples& samples, StepTimer& timer) {
  if (teachers_.size() == 1) {
    auto taught = teachers_.front().group.fetch(&ReferenceActor::score, split(samples.batches));
    if (!taught.ok()) return taught.status().with_context("the teacher's log-probabilities");
    samples.taught = std::move(*taught);
  } else {
    // Samples of a checkpoint are for the teachers of the run that drew them.
    for (const RewardTask& task : join<RewardTask>(samples.tasks)) {
      const bool known =
          std::any_of(teachers_.begin(), teachers_.end(),
                      [&](const Teacher& teacher) { return teacher.named.rows == task.teacher; });
      if (!known)
        return runtime::invalid_argument(
            task.where + ": its samples were drawn for a teacher of '" + task.teacher +
            "', and there is none any more: keep the keys of distillation.teacher_models, or begin "
            "anew (trainer.resume_mode=disable)");
    }
    std::vector<runtime::ObjectRef<std::vector<float>>> logprobs = no_logprobs_;
    std::vector<std::vector<double>> penalties(policy_.size());
    for (const Teacher& teacher : teachers_) {
      auto taught = teacher.group.fetch(&ReferenceActor::score_some, split(samples.batches),
                                        split(of_other_teachers(samples, teacher)), split(logprobs),
                                        split(penalties));
      if (!taught.ok())
        return taught.status().with_context("the log-probabilities of teacher " +
                                            teacher.named.name);
      samples.taught = std::move(*taught);
      logprobs = select(samples.taught, &Referenced::logprobs);
      penalties = select(samples.taught, &Referenced::kl_penalties);
    }
  }
  timer.lap("teacher");
  return {};
}

}  // namespace rl
