#include "rl/train/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/core/log.h"

namespace rl {
namespace {

// What a person looks at first, in reading order.
constexpr const char* kConsoleMetrics[] = {
    "sft/loss",           "critic/score/mean",   "actor/pg_loss",   "actor/kl_loss",         "actor/ppo_kl",      "actor/pg_clipfrac",
    "critic/vf_loss",     "critic/vf_explained_var",
    "actor/entropy",      "actor/grad_norm",     "actor/lr",        "response_length/mean",  "response_length/clip_ratio",
    "timing_s/gen",       "timing_s/reward",     "timing_s/ref",    "timing_s/update_actor", "timing_s/sft",      "timing_s/save_checkpoint",
    "timing_s/step",      "perf/throughput",
};

std::string number(double value) {
  char text[48];
  const double size = std::abs(value);
  const bool tiny = size != 0.0 && size < 1e-3;
  std::snprintf(text, sizeof text, tiny || size >= 1e7 ? "%.3e" : size >= 100 ? "%.1f" : "%.4f", value);
  return text;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds) + 0.5);
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

// The lines that stay: complete, readable, and of a step up to `last_step`.
std::string kept_lines(const std::filesystem::path& path, std::int64_t last_step) {
  std::ifstream in(path, std::ios::binary);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) break;  // no line end: the write was cut short
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    // A phase before the first step is behind any checkpoint.
    const bool done = json.contains("phase") ? last_step > 0 : json["step"].get<std::int64_t>() <= last_step;
    if (done) kept += line + "\n";
  }
  return kept;
}

}  // namespace

void add_distribution(Metrics& metrics, const std::string& name, const std::vector<double>& values) {
  if (values.empty()) return;
  metrics[name + "/mean"] = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  metrics[name + "/max"] = *std::max_element(values.begin(), values.end());
  metrics[name + "/min"] = *std::min_element(values.begin(), values.end());
}

ConsoleSink::ConsoleSink(std::FILE* out, const ConsoleOptions& options)
    : out_(out), options_(options), begin_(std::chrono::steady_clock::now()) {}

ConsoleSink::~ConsoleSink() {
  if (options_.bar && first_step_) std::fputs("\n", out_);
}

std::string ConsoleSink::line(const StepRecord& record) {
  std::string text = (record.phase.empty() ? "" : record.phase + " ") + "step:" + std::to_string(record.step) + "/" + std::to_string(record.total) + " - epoch:" + std::to_string(record.epoch);
  for (const char* name : kConsoleMetrics) {
    const auto found = record.metrics.find(name);
    if (found != record.metrics.end()) text += " - " + found->first + ":" + number(found->second);
  }
  for (const auto& [name, value] : record.metrics) {
    if (name.starts_with("val")) text += " - " + name + ":" + number(value);
  }
  return text;
}

std::string ConsoleSink::bar(std::int64_t step, std::int64_t total, double seconds_per_step, std::int64_t width) {
  const double done = total > 0 ? std::clamp(static_cast<double>(step) / static_cast<double>(total), 0.0, 1.0) : 0.0;
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "] %3.0f%%  step %lld/%lld  %.3g s/step  ETA ", done * 100, static_cast<long long>(step),
                static_cast<long long>(total), seconds_per_step);
  const std::string tail = numbers + clock_text(seconds_per_step * static_cast<double>(std::max<std::int64_t>(0, total - step)));
  const std::int64_t cells = std::clamp<std::int64_t>(width - static_cast<std::int64_t>(tail.size()) - 1, 4, 50);
  const auto filled = static_cast<std::int64_t>(done * static_cast<double>(cells));
  return "[" + std::string(static_cast<std::size_t>(filled), '#') + std::string(static_cast<std::size_t>(cells - filled), '.') + tail;
}

runtime::Status ConsoleSink::write(const StepRecord& record) {
  const auto now = std::chrono::steady_clock::now();
  const bool first = !first_step_ || record.phase != phase_;
  if (first) {
    first_step_ = record.step;
    phase_ = record.phase;
    begin_ = now;
  }
  const bool due = first || record.step == record.total || options_.interval <= 1 || record.step % options_.interval == 0;
  std::string text = options_.bar ? "\r\x1b[K" : "";
  if (due) text += line(record) + "\n";
  if (options_.bar) {
    // The clock starts with the first record, so that one step lies between each two.
    const double steps = static_cast<double>(std::max<std::int64_t>(1, record.step - *first_step_));
    text += bar(record.step, record.total, std::chrono::duration<double>(now - begin_).count() / steps, options_.width);
  }
  if (!due && !options_.bar) return {};
  if (std::fputs(text.c_str(), out_) < 0 || std::fflush(out_) != 0) return runtime::errno_status(errno, "writing to the console");
  return {};
}

runtime::Result<std::unique_ptr<JsonLinesSink>> JsonLinesSink::open(const std::filesystem::path& file, std::int64_t last_step) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) return runtime::errno_status(error.value(), "making the folder of " + file.string());
  const std::string kept = kept_lines(file, last_step);
  const std::filesystem::path fresh = file.string() + ".tmp";
  std::FILE* out = std::fopen(fresh.c_str(), "wb");
  if (out == nullptr) return runtime::errno_status(errno, "writing " + fresh.string());
  const bool written = std::fwrite(kept.data(), 1, kept.size(), out) == kept.size() && std::fflush(out) == 0;
  if (!written || std::rename(fresh.c_str(), file.c_str()) != 0) {
    const int reason = errno;
    std::fclose(out);
    std::remove(fresh.c_str());
    return runtime::errno_status(reason, "writing " + file.string());
  }
  return std::unique_ptr<JsonLinesSink>(new JsonLinesSink(out, file));
}

JsonLinesSink::~JsonLinesSink() { std::fclose(file_); }

runtime::Status JsonLinesSink::write(const StepRecord& record) {
  nlohmann::ordered_json data = nlohmann::ordered_json::object();
  for (const auto& [name, value] : record.metrics) data[name] = value;  // nlohmann writes what is not finite as null
  nlohmann::ordered_json json = {{"step", record.step}, {"total", record.total}, {"epoch", record.epoch}, {"data", std::move(data)}};
  if (!record.phase.empty()) json["phase"] = record.phase;
  const std::string line = json.dump() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0) {
    return runtime::errno_status(errno, "writing " + path_.string());
  }
  return {};
}

void MetricLogger::write(const StepRecord& record) {
  std::erase_if(sinks_, [&](const std::unique_ptr<MetricSink>& sink) {
    const runtime::Status written = sink->write(record);
    if (!written.ok()) LOG(warn, "metrics: {}; this log ends here, training goes on", written.message());
    return !written.ok();
  });
}

}  // namespace rl
