#include "rl/report/run_log.h"
#include "runtime/core/json.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace rl {
namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

constexpr const char* kMetricsFile = "metrics.jsonl";

// Calls `read` with each object of a file of JSON lines; an unfinished last line is none.
template <class Read>
Status for_each_line(const std::filesystem::path& file, Read read) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return runtime::errno_status(errno, "reading " + file.string());
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const json object = runtime::parse_json(line);
    if (object.is_discarded() && in.eof()) break;
    const std::string where = file.string() + ":" + std::to_string(number);
    if (!object.is_object()) return runtime::invalid_argument(where + ": not a JSON object");
    try {
      read(object);
    } catch (const json::exception& error) {
      return runtime::invalid_argument(where + ": not what a run writes there: " + error.what());
    }
  }
  return {};
}

// What is not finite was written as null.
double number_or_nan(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

StepRecord read_record(const json& object) {
  StepRecord record{.step = object.at("step").get<std::int64_t>(),
                    .total = object.value("total", std::int64_t{0}),
                    .epoch = object.value("epoch", std::int64_t{0}),
                    .metrics = {},
                    .phase = object.value("phase", "")};
  const json data = object.value("data", json::object());
  for (const auto& [name, value] : data.items()) record.metrics[name] = number_or_nan(value);
  return record;
}

std::vector<double> numbers(const json& object, const char* key) {
  std::vector<double> values;
  for (const json& value : object.value(key, json::array())) values.push_back(number_or_nan(value));
  return values;
}

RolloutSample read_sample(const json& object) {
  const auto text = [&](const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? ""
           : found->is_string()                      ? found->get<std::string>()
                                                     : found->dump();
  };
  RolloutSample sample{.input = text("input"),
                       .output = text("output"),
                       .expected = text("gts"),
                       .score = number_or_nan(object.at("score")),
                       .tokens = object.value("tokens", std::vector<std::string>()),
                       .logprobs = numbers(object, "logprobs"),
                       .advantages = numbers(object, "advantages"),
                       .mask = numbers(object, "response_mask")};
  if (sample.logprobs.size() != sample.tokens.size()) sample.logprobs.clear();
  if (sample.advantages.size() != sample.tokens.size()) sample.advantages.clear();
  if (sample.mask.size() != sample.tokens.size()) sample.mask.clear();
  return sample;
}

// 12 for "12.jsonl".
std::optional<std::int64_t> step_of(const std::filesystem::path& file) {
  const std::string stem = file.stem().string();
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), step);
  if (file.extension() != ".jsonl" || error != std::errc() || end != stem.data() + stem.size())
    return std::nullopt;
  return step;
}

Result<std::vector<StepSamples>> read_rollouts(const std::filesystem::path& folder) {
  std::vector<StepSamples> rollouts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::optional<std::int64_t> step = step_of(entry.path());
    if (!step) continue;
    StepSamples samples{.step = *step, .samples = {}};
    const Status status = for_each_line(
        entry.path(), [&](const json& object) { samples.samples.push_back(read_sample(object)); });
    if (!status.ok()) return status;
    rollouts.push_back(std::move(samples));
  }
  std::sort(rollouts.begin(), rollouts.end(),
            [](const StepSamples& a, const StepSamples& b) { return a.step < b.step; });
  return rollouts;
}

}  // namespace

Result<RunLog> read_run(const std::filesystem::path& run, const std::filesystem::path& rollouts) {
  std::error_code error;
  if (!std::filesystem::is_directory(run, error))
    return runtime::not_found(
        run.string() + ": no such folder; it is what the run had as trainer.default_local_dir");
  if (!std::filesystem::exists(run / kMetricsFile, error))
    return runtime::not_found(
        run.string() +
        ": no metrics.jsonl there; a run writes it with trainer.logger=[console,file]");
  RunLog log;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(run, error);
  log.name = (error ? run : whole).filename().string();
  const Status status = for_each_line(
      run / kMetricsFile, [&](const json& object) { log.records.push_back(read_record(object)); });
  if (!status.ok()) return status;
  if (log.records.empty())
    return runtime::not_found((run / kMetricsFile).string() + ": no step is in it yet");
  std::ifstream config(run / "config.yaml");
  std::stringstream text;
  text << config.rdbuf();
  log.config = text.str();
  Result<std::vector<StepSamples>> samples = read_rollouts(rollouts);
  if (!samples.ok()) return samples.status();
  log.rollouts = std::move(*samples);
  return log;
}

}  // namespace rl
