#include "rl/checkpoint/checkpoint_saver.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "rl/checkpoint/idle_thread.h"
#include "rl/metrics/step_metrics.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

/// By a thread that gives way; where none can be made, by the thread that waits for it.
template <class Work>
auto begin_aside(Work work) {
  return std::async(std::launch::async | std::launch::deferred,
                    [work = std::move(work), asked_by = std::this_thread::get_id()]() mutable {
                      if (std::this_thread::get_id() != asked_by) give_way();
                      return work();
                    });
}

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

// By value: what they own is freed after the last file, not when the result is read.
Result<fs::path> write_checkpoint(CheckpointWriter writer, CheckpointSaver::WriteFiles write) {
  const Result<std::vector<fs::path>> files = write(writer);
  if (!files.ok()) return files.status();
  return writer.commit(*files);
}

}  // namespace

void CheckpointSaver::observe(bool losing) {
  losing_ = losing;
  if (!losing) followed_ = true;
  poll();
  if (!saving_.valid()) prune();
}

void CheckpointSaver::prune() {
  if (losing_ || !followed_ || !std::exchange(unpruned_, false)) return;
  pruning_ = begin_aside([root = options_.folder, kept = options_.kept] {
    const Status pruned = prune_checkpoints(root, kept);
    if (!pruned.ok()) LOG(warn, "{}", pruned.message());
  });
}

void CheckpointSaver::save(std::int64_t step, bool best, bool wait, const CopyState& copy) {
  StepTimer timer;
  const Status begun = begin(step, best, copy);
  if (!begun.ok()) note_failure(begun);
  if (wait) finish();
  timer.lap("save_checkpoint");
  seconds_ = timer.seconds("save_checkpoint");
}

Result<fs::path> CheckpointSaver::save_now(std::int64_t step, const CopyState& copy) {
  const Status begun = begin(step, /*best=*/false, copy);
  if (!begun.ok()) return begun;
  Result<fs::path> saved = take();
  end();
  return saved;
}

void CheckpointSaver::keep(std::int64_t step, const CopyState& copy) {
  finish();
  if (latest_ && checkpoint_step(*latest_) == step) return;
  const Result<fs::path> saved = save_now(step, copy);
  if (saved.ok())
    LOG(info, "step {} is kept in {}", step, saved->string());
  else
    LOG(error, "step {} cannot be kept: {}", step, saved.status().message());
}

// What became of the checkpoint that was being written.
Result<fs::path> CheckpointSaver::take() {
  Result<fs::path> saved = saving_.get();
  if (!saved.ok()) return saved;
  best_before_.reset();
  latest_ = *saved;
  failure_ = Status();
  unpruned_ = true;
  return saved;
}

Status CheckpointSaver::begin(std::int64_t step, bool best, const CopyState& copy) {
  end();
  const std::string name = "checkpoint of step " + std::to_string(step);
  Result<CheckpointWriter> writer = CheckpointWriter::begin(options_.folder, step);
  if (!writer.ok()) return writer.status().with_context(name);
  Result<WriteFiles> write = copy();
  if (!write.ok()) return write.status().with_context(name);
  followed_ = false;
  saving_ = begin_aside([writer = std::move(*writer), write = std::move(*write),
                         root = options_.folder, step, best, name]() mutable -> Result<fs::path> {
    Result<fs::path> folder = write_checkpoint(std::move(writer), std::move(write));
    if (!folder.ok()) return folder.status().with_context(name);
    const Status marked = best ? mark_best_checkpoint(root, step) : Status();
    if (!marked.ok()) return marked.with_context(name);
    return folder;
  });
  return {};
}

void CheckpointSaver::poll() {
  if (saving_.valid() && saving_.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
    finish();
}

void CheckpointSaver::finish() {
  if (!saving_.valid()) return;
  if (const Result<fs::path> saved = take(); !saved.ok()) note_failure(saved.status());
}

void CheckpointSaver::end() {
  finish();
  prune();
  if (pruning_.valid()) pruning_.wait();
}

void CheckpointSaver::note_failure(const Status& failure) {
  LOG(error, "{}; training continues", failure.message());
  failure_ = failure;
  if (best_before_)
    best_ = *std::exchange(best_before_, {});  // another one may become the best that is kept
}

void CheckpointSaver::check_goal(std::int64_t step, const Metrics& metrics, bool validated) {
  const Goal& goal = options_.best.goal;
  if (goal.metric.empty() || metric_missed_ || metrics.contains(goal.metric) ||
      (is_of_validation(goal.metric) && !validated))
    return;
  metric_missed_ = true;
  LOG(warn,
      "step {}: trainer.save_best={}: there is no such metric, so that no checkpoint is the best; "
      "metrics.jsonl (trainer.logger=[file]) has their names",
      step, goal.metric);
}

bool CheckpointSaver::is_best(std::int64_t step, const Metrics& metrics) {
  const Goal& goal = options_.best.goal;
  const auto found = metrics.find(goal.metric);
  if (goal.metric.empty() || found == metrics.end()) return false;
  finish();  // which may have been the best
  const Best before = best_;
  if (!best_.metric.observe(found->second, goal.larger_is_better)) return false;
  best_.step = step;
  best_before_ = before;
  return true;
}

void CheckpointSaver::tell(Metrics& metrics) {
  if (seconds_ > 0) metrics["timing_s/save_checkpoint"] = std::exchange(seconds_, 0.0);
}

nlohmann::ordered_json CheckpointSaver::best_state() const {
  nlohmann::ordered_json state = best_.metric.to_json(options_.best.goal);
  if (best_.step > 0) state["step"] = best_.step;
  return state;
}

void CheckpointSaver::resume(const fs::path& folder, const nlohmann::ordered_json& state) {
  finish();
  latest_ = folder;
  unpruned_ = true;  // an earlier process left the one before it
  best_ = {.metric = BestSoFar::from_json(state, "best", options_.best.goal)};
  if (options_.best.goal.metric.empty() || !best_.metric.value)
    return;  // of another metric: what is the best by that stays until one is by this
  const nlohmann::ordered_json& best = state.at("best");
  if (!best.contains("step") || !best.at("step").is_number_integer()) return;
  best_.step = best.at("step").get<std::int64_t>();
  const fs::path& root = options_.folder;
  std::error_code ignored;
  if (best_checkpoint_step(root) == best_.step ||
      !fs::exists(checkpoint_path(root, best_.step), ignored))
    return;
  if (const Status marked = mark_best_checkpoint(root, best_.step); !marked.ok())
    LOG(warn, "{}", marked.message());
}

}  // namespace rl
