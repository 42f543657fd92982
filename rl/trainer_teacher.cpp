// On-policy distillation: a teacher, which is a reference with a model of its own, scores what the policy drew.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "rl/model/model_config.h"
#include "rl/train/teacher_vocabulary.h"
#include "rl/train/toy_model.h"
#include "rl/trainer.h"
#include "rl/worker/policy_options.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::split;
using runtime::Status;

constexpr const char* kTeacherPath = "distillation.teacher_models.teacher_model.model_path";

}  // namespace

// What makes a teacher unfit is found before workers start.
Status Trainer::find_teacher(const PolicyOptions& policy) {
  Result<std::filesystem::path> teacher = resolve_model(config_, kTeacherPath, options_.seed);
  if (!teacher.ok()) return teacher.status();
  if (const Status same = check_same_vocabulary(model_, *teacher); !same.ok()) return same.with_context(kTeacherPath);
  const Result<ModelConfig> student_config = ModelConfig::load(model_);
  if (!student_config.ok()) return student_config.status();
  const Result<ModelConfig> teacher_config = ModelConfig::load(*teacher);
  if (!teacher_config.ok()) return teacher_config.status().with_context(kTeacherPath);
  const std::int64_t longest = std::min(policy.positions_max, student_config->max_position_embeddings);
  if (teacher_config->max_position_embeddings < longest) {
    return runtime::invalid_argument(std::string(kTeacherPath) + ": " + teacher->string() + " reads at most " + std::to_string(teacher_config->max_position_embeddings) + " tokens, and samples have up to " +
                                     std::to_string(longest) + ": lower data.max_prompt_length or data.max_response_length");
  }
  teacher_model_ = std::move(*teacher);
  return {};
}

Status Trainer::start_teacher() {
  WorkerSpec teacher_spec = spec("teacher", teacher_model_);
  // Its log-probabilities are of its own distribution, as verl's teachers give them, whatever the temperature that samples are drawn at.
  nlohmann::ordered_json config = config_.to_json();
  config["actor_rollout_ref"]["rollout"]["temperature"] = 1.0;
  teacher_spec.config = config.dump();
  auto teacher = WorkerGroup<ReferenceActor>::spawn(runtime_, slots_, /*reserves=*/false, teacher_spec);
  if (!teacher.ok()) return teacher.status();
  teacher_ = std::move(*teacher);
  return {};
}

Status Trainer::teach(StepSamples& samples, StepTimer& timer) {
  auto taught = teacher_.fetch(&ReferenceActor::score, split(samples.batches));
  if (!taught.ok()) return taught.status().with_context("the teacher's log-probabilities");
  samples.taught = std::move(*taught);
  timer.lap("teacher");
  return {};
}

}  // namespace rl
