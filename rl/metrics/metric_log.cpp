#include "rl/metrics/metric_log.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string_view>

#include "rl/metrics/csv_sink.h"
#include "rl/metrics/json_lines_sink.h"
#include "rl/metrics/prometheus_sink.h"
#include "rl/metrics/tensorboard_sink.h"
#include "rl/metrics/wandb_sink.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::array<std::string_view, 6> kPlaces = {"console",     "file",  "csv",
                                                     "tensorboard", "wandb", "prometheus"};

// A folder, and the variable or key that says so; none said: empty.
struct Place {
  std::filesystem::path folder;
  std::string named_by = {};
};

Place from_environment(const char* name, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return {otherwise};
  return {value, name};
}

Place tensorboard_place(const MetricLogOptions& options) {
  if (!options.tensorboard_folder.empty())
    return {options.tensorboard_folder, "trainer.tensorboard_dir"};
  return from_environment("TENSORBOARD_DIR", options.folder / "tensorboard");
}

bool is_disabled(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "disabled";
}

// As a sink of no particular kind.
template <class Sink>
Result<std::unique_ptr<MetricSink>> any(Result<std::unique_ptr<Sink>> opened,
                                        const std::string& named_by = {}) {
  if (!opened.ok())
    return named_by.empty() ? opened.status() : opened.status().with_context(named_by);
  return std::unique_ptr<MetricSink>(std::move(*opened));
}

// Null where there is nothing to write to.
Result<std::unique_ptr<MetricSink>> open(const std::string& name, const MetricLogOptions& options) {
  if (name == "console")
    return std::unique_ptr<MetricSink>(std::make_unique<ConsoleSink>(stdout, options.console));
  if (name == "file")
    return any(JsonLinesSink::open(options.folder / "metrics.jsonl", options.last_step));
  if (name == "csv") return any(CsvSink::open(options.folder / "metrics.csv", options.last_step));
  if (name == "prometheus")
    return std::unique_ptr<MetricSink>(std::make_unique<PrometheusSink>(
        options.folder / "metrics.prom", options.project, options.experiment));
  if (name == "tensorboard") {
    const Place place = tensorboard_place(options);
    return any(TensorBoardSink::open(place.folder, options.last_step), place.named_by);
  }
  if (name == "wandb") {
    if (is_disabled("WANDB_MODE")) return std::unique_ptr<MetricSink>();
    const Place place = from_environment("WANDB_DIR", options.folder);
    return any(WandbSink::open({.folder = place.folder,
                                .project = options.project,
                                .name = options.experiment,
                                .config = options.config,
                                .run_folder = options.folder}),
               place.named_by);
  }
  return runtime::internal_error("no place for metrics is called " + name);
}

}  // namespace

Result<MetricLogger> open_metric_log(const MetricLogOptions& options) {
  std::set<std::string> names;
  std::string others;
  for (const std::string& name : options.loggers) {
    const bool ours = std::find(kPlaces.begin(), kPlaces.end(), name) != kPlaces.end();
    if (!ours) others += (others.empty() ? "" : ", ") + name;
    names.insert(ours ? name : "file");
  }
  if (!others.empty()) {
    LOG(warn,
        "trainer.logger: {} is not written to (console, file, csv, tensorboard, wandb and "
        "prometheus are); the metrics go to {}",
        others, (options.folder / "metrics.jsonl").string());
  }
  MetricLogger logger;
  for (const std::string& name : names) {
    Result<std::unique_ptr<MetricSink>> sink = open(name, options);
    if (!sink.ok()) return sink.status();
    if (*sink != nullptr) logger.add(std::move(*sink));
  }
  return logger;
}

}  // namespace rl
