#include "rl/app/kept.h"

#include <string>
#include <vector>

#include "rl/checkpoint/changed_keys.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/checkpoint/model_identity.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

constexpr const char* kNoMetrics =
    "none kept: trainer.logger names no file (console,file is the default)";

}  // namespace

void print_kept(const SaveTimes& save, const SaveBestOptions& best,
                const std::filesystem::path& folder, const MetricLogger& metrics) {
  const std::string text = save.text(folder, best.goal.metric);
  if (save.never())
    LOG(warn, "checkpoints: {}", text);
  else
    LOG(info, "checkpoints: {}", text);
  if (metrics.places().empty()) LOG(warn, "metrics: {}", kNoMetrics);
}

runtime::Status print_resume(std::ostream& out, const ResumeOptions& resume,
                             const std::filesystem::path& folder, const Config& config,
                             const std::string& model_key, const std::filesystem::path& model,
                             bool adapter) {
  if (resume.mode == ResumeMode::kDisable) return {};
  const auto there = list_checkpoints(folder);
  if (resume.mode == ResumeMode::kAuto && there.empty()) return {};
  const std::filesystem::path checkpoint =
      resume.mode == ResumeMode::kPath ? resume.path : there.front().second;
  const auto state = read_checkpoint_json(checkpoint, kRunStateFile);
  if (!state.ok()) return resume.mode == ResumeMode::kPath ? state.status() : runtime::Status();
  runtime::Status status = check_state_owner(*state, checkpoint / kRunStateFile, config.command());
  if (!status.ok()) return status;
  const std::string name = config.get_string(model_key).value_or("");
  if (auto identity = identify_model(name, model); identity.ok()) {
    identity->adapter = adapter;
    status = check_same_model(*state, checkpoint, *identity, model_key);
    if (!status.ok()) return status;
  }
  out << "  continues from " << checkpoint.string() << "\n";
  for (const ChangedKey& key : changed_keys(checkpoint, config))
    out << "    changed: " << key.text() << "\n";
  return {};
}

void print_metric_places(std::ostream& out, const MetricLogger& metrics) {
  const std::vector<std::string> places = metrics.places();
  for (const std::string& place : places) out << "metrics:    " << place << "\n";
  if (places.empty()) out << "metrics:    " << kNoMetrics << "\n";
}

void print_checkpoint(std::ostream& out, const std::optional<std::filesystem::path>& latest,
                      std::int64_t steps, const SaveTimes& save) {
  if (!latest) {
    if (save.never())
      out << "checkpoint: " << save.text({}, "") << "\n";
    else if (steps > 0)
      out << "checkpoint: none was saved, after " << steps
          << " step(s) (trainer.save_freq=N saves every N steps)\n";
    return;
  }
  out << "checkpoint: " << latest->string();
  const std::int64_t behind = steps - checkpoint_step(*latest).value_or(steps);
  if (behind > 0)
    out << " (the " << behind << " step(s) since are not kept"
        << (save.never() ? ": trainer.save_freq=0)" : ")");
  out << "\n";
}

}  // namespace rl
