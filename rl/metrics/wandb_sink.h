// Metrics as an offline run of Weights & Biases, which `wandb sync` sends to a server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "rl/metrics/log_file.h"
#include "rl/metrics/metrics.h"

namespace rl {

struct WandbOptions {
  std::filesystem::path folder;  // where `wandb/` is made
  std::string project;
  std::string name;                       // of the run, as people see it
  nlohmann::ordered_json config;          // an object
  std::filesystem::path run_folder = {};  // of the run alone, where its id is kept; empty: `folder`
};

/// Writes `folder/wandb/offline-run-<time>-<id>/run-<id>.wandb`: a log of LevelDB's form (blocks of
/// 32 KiB, a checksum on each record) that holds wandb's protocol buffers. Nothing is sent
/// anywhere. Every start of a run makes its own folder; the id, kept in
/// `run_folder/wandb/run_id`, stays, so that a resumed run continues where it was.
class WandbSink : public MetricSink {
 public:
  /// Errors: as errno says, with the path.
  static runtime::Result<std::unique_ptr<WandbSink>> open(const WandbOptions& options);
  /// Writes that the run came to its end; a killed one has no such record, and is shown as crashed.
  ~WandbSink() override;

  runtime::Status write(const StepRecord& record) override;
  std::string place() const override { return file_.path().parent_path().string(); }

 private:
  explicit WandbSink(LogFile file);
  runtime::Status append(std::string_view message);

  LogFile file_;
  std::int64_t position_ = 0;  // in the file
  std::int64_t records_ = 0;
  double begin_;
};

}  // namespace rl
