#include "rl/command/kept.h"

#include <string>
#include <vector>

#include "rl/train/checkpoint.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

constexpr const char* kNoMetrics =
    "none kept: trainer.logger names no file (console,file is the default)";

}  // namespace

void tell_kept(const SaveTimes& save, const SaveBestOptions& best,
               const std::filesystem::path& folder, const MetricLogger& metrics) {
  const std::string text = save.text(folder, best.goal.metric);
  if (save.never())
    LOG(warn, "checkpoints: {}", text);
  else
    LOG(info, "checkpoints: {}", text);
  if (metrics.places().empty()) LOG(warn, "metrics: {}", kNoMetrics);
}

void print_metric_places(std::ostream& out, const MetricLogger& metrics) {
  const std::vector<std::string> places = metrics.places();
  for (const std::string& place : places) out << "metrics:    " << place << "\n";
  if (places.empty()) out << "metrics:    " << kNoMetrics << "\n";
}

void print_checkpoint(std::ostream& out, const std::optional<std::filesystem::path>& latest,
                      std::int64_t steps, const SaveTimes& save) {
  if (!latest) {
    if (save.never()) out << "checkpoint: " << save.text({}, "") << "\n";
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
