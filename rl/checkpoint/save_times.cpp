#include "rl/checkpoint/save_times.h"

namespace rl {
namespace {

constexpr const char* kSaveFreq = "trainer.save_freq";

}  // namespace

runtime::Result<SaveTimes> SaveTimes::from_config(const Config& config) {
  const nlohmann::ordered_json* value = config.find(kSaveFreq);
  if (value != nullptr && *value == kEachEpoch) return SaveTimes{.steps = -1, .each_epoch = true};
  if (value != nullptr && *value == false) return SaveTimes{.steps = 0};
  const runtime::Result<std::int64_t> steps = config.get_int(kSaveFreq);
  if (!steps.ok()) return steps.status();
  if (*steps < -1)
    return runtime::invalid_argument(
        std::string(kSaveFreq) + " is " + std::to_string(*steps) + " (" + config.origin(kSaveFreq) +
        "): it is a number of steps, -1 (at the end only) or 0 (never)");
  return SaveTimes{.steps = *steps};
}

bool SaveTimes::due(std::int64_t step, bool is_last, std::int64_t steps_an_epoch) const {
  if (never()) return false;
  const std::int64_t interval = each_epoch ? steps_an_epoch : steps;
  return is_last || (interval > 0 && step % interval == 0);
}

std::string SaveTimes::text(const std::filesystem::path& folder, const std::string& best) const {
  const std::string also = best.empty() ? "" : ", and the best by " + best;
  const std::string where = ", in " + folder.string();
  if (each_epoch) return "after each epoch and at the end" + also + where;
  if (steps > 0) return "every " + std::to_string(steps) + " step(s) and at the end" + also + where;
  if (steps < 0) return "at the end only (trainer.save_freq=-1)" + also + where;
  return best.empty() ? "none: trainer.save_freq=0 keeps no weights"
                      : "the best by " + best + " only (trainer.save_freq=0)" + where;
}

}  // namespace rl
