#include "rl/run/stage_options.h"

#include <utility>

#include "rl/actor/worker_slots.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Steps, or after_each_epoch.
Result<StageInterval> read_interval(const Config& config, const char* key) {
  const nlohmann::ordered_json* value = config.find(key);
  if (value != nullptr && *value == kEachEpoch)
    return StageInterval{.steps = -1, .each_epoch = true};
  const Result<std::int64_t> steps = config.get_int(key);
  if (!steps.ok()) return steps.status();
  return StageInterval{.steps = *steps, .each_epoch = false};
}

}  // namespace

Result<StageOptions> StageOptions::from_config(const Config& config) {
  ConfigReader read(config);
  StageOptions options;
  options.batch_rows = read.get_int("data.train_batch_size");
  options.tokens_max = read.get_int("data.max_length");
  const std::string truncation = read.get_string("data.truncation");
  const bool by_tokens = read.get_bool("data.use_dynamic_bsz");
  const std::int64_t pass_rows = read.get_int("data.micro_batch_size_per_gpu");
  const std::int64_t pass_tokens = read.get_int("data.max_token_len_per_gpu");
  options.validate_first = read.get_bool("trainer.val_before_train");
  options.async_save = read.get_bool("trainer.async_save");
  options.checkpoints_kept = read.find_int("trainer.max_ckpt_to_keep").value_or(0);
  options.folder = read.get_string("trainer.default_local_dir");
  options.loggers = read.get_strings("trainer.logger");
  options.project = read.get_string("trainer.project_name");
  options.experiment = read.get_string("trainer.experiment_name");
  options.log_interval = read.get_int("trainer.log_interval");
  options.gradient_leaves = read.find_int("trainer.gradient_leaves").value_or(0);
  const std::int64_t seed = read.find_int("trainer.seed").value_or(0);
  options.shuffle_seed = static_cast<std::uint64_t>(read.find_int("data.seed").value_or(seed));
  options.shuffle = read.get_bool("data.shuffle");
  if (!read.status().ok()) return read.status();
  const Result<SlotOptions> slots = SlotOptions::from_config(config);
  if (!slots.ok()) return slots.status();
  if (options.folder.empty())
    return config.out_of_range("trainer.default_local_dir", "a folder for the run");
  if (!by_tokens && pass_rows < 1)
    return config.out_of_range("data.micro_batch_size_per_gpu",
                               "at least 1 with data.use_dynamic_bsz=false");
  options.micro_batch = by_tokens ? MicroBatchLimits{.samples_max = 0, .tokens_max = pass_tokens}
                                  : MicroBatchLimits{.samples_max = pass_rows, .tokens_max = 0};
  const Result<Truncation> cut = parse_truncation(truncation);
  if (!cut.ok()) return cut.status();
  options.truncation = *cut;

  const Result<StageInterval> validation = read_interval(config, "trainer.test_freq");
  if (!validation.ok()) return validation.status();
  options.validation = *validation;
  const Result<SaveTimes> save = SaveTimes::from_config(config);
  if (!save.ok()) return save.status();
  options.save = *save;
  if (const Status goals = read_goals(config, options.save_best, options.early_stop); !goals.ok())
    return goals;
  const Result<LossAlarmOptions> alarms = LossAlarmOptions::from_config(config);
  if (!alarms.ok()) return alarms.status();
  options.alarms = *alarms;
  const Result<RunLength> length = RunLength::from_config(config);
  if (!length.ok()) return length.status();
  options.length = *length;
  const Result<ResumeOptions> resume = ResumeOptions::from_config(config);
  if (!resume.ok()) return resume.status();
  options.resume = *resume;
  Result<StageWorkerOptions> worker = StageWorkerOptions::from_config(config, slots->device);
  if (!worker.ok()) return worker.status();
  static_cast<StageWorkerOptions&>(options) = std::move(*worker);
  return options;
}

Status StageOptions::check_validation(const Config& config, bool validates) const {
  for (const auto& [key, metric] :
       {std::pair("trainer.save_best", &save_best.goal.metric),
        std::pair("trainer.early_stop.metric", &early_stop.goal.metric)}) {
    if (is_of_validation(*metric) && !validates)
      return config.out_of_range(
          key, "a metric of training steps where there is nothing to validate on (data.val_files)");
  }
  return {};
}

}  // namespace rl
