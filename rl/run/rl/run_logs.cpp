#include "rl/run/rl/run_logs.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "rl/metrics/metric_log.h"
#include "rl/run/rl/rollout_dump.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

Status make_writable(const fs::path& folder, const char* key) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK) != 0) error.assign(errno, std::generic_category());
  return error ? runtime::errno_status(error.value(),
                                       "writing to " + folder.string() + " (" + key + ")")
               : Status();
}

Result<std::vector<FolderLock>> lock_sample_folders(const TrainerOptions& options,
                                                    std::int64_t steps_done, bool validates) {
  std::vector<FolderLock> locks;
  fs::path samples;  // of the rollouts
  for (const auto& [key, folder] :
       {std::pair("trainer.rollout_data_dir", options.rollout_folder),
        std::pair("trainer.validation_data_dir",
                  validates ? options.validation_folder : fs::path())}) {
    if (folder.empty()) continue;
    if (const Status writable = make_writable(folder, key); !writable.ok()) return writable;
    std::error_code error;
    if (!samples.empty() && fs::equivalent(folder, samples, error)) {
      return runtime::invalid_argument(
          "trainer.rollout_data_dir and trainer.validation_data_dir are one folder, " +
          folder.string() +
          ", where the samples of a validation would replace those of its step: name two");
    }
    samples = folder;
    if (steps_done == 0 && has_dumps(folder))
      LOG(warn, "{} has samples of an earlier run: this one's replace those of the same steps ({})",
          folder.string(), key);
    if (fs::equivalent(folder, options.folder, error)) continue;  // this run's already
    Result<FolderLock> lock = FolderLock::acquire(folder, key);
    if (!lock.ok()) return lock.status();
    locks.push_back(std::move(*lock));
  }
  return locks;
}

}  // namespace

Result<RunLogs> RunLogs::open(const Config& config, const TrainerOptions& options,
                              std::int64_t steps_done, bool validates) {
  const Status written = write_file_atomically(options.folder / "config.yaml", config.to_yaml());
  if (!written.ok()) return written;
  Result<std::vector<FolderLock>> locks = lock_sample_folders(options, steps_done, validates);
  if (!locks.ok()) return locks.status();
  const ConsoleOptions console = ConsoleOptions::of_stdout(options.log_interval);
  Result<MetricLogger> log = open_metric_log({.loggers = options.loggers,
                                              .folder = options.folder,
                                              .last_step = steps_done,
                                              .project = options.project,
                                              .experiment = options.experiment,
                                              .config = config.to_json(),
                                              .console = console,
                                              .tensorboard_folder = options.tensorboard_folder});
  if (!log.ok()) return log.status();
  return RunLogs{std::move(*log), std::move(*locks)};
}

}  // namespace rl
