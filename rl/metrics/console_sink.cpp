#include "rl/metrics/console_sink.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "runtime/core/printable_text.h"

namespace rl {
namespace {

// What a person looks at first, in reading order.
constexpr const char* kConsoleMetrics[] = {
    "sft/loss",
    "train/loss",
    "train/ce_loss",
    "train/kl",
    "train/grad_norm",
    "train/lr",
    "critic/score/mean",
    "actor/pg_loss",
    "actor/kl_loss",
    "actor/ppo_kl",
    "actor/pg_clipfrac",
    "critic/vf_loss",
    "critic/vf_explained_var",
    "actor/entropy",
    "actor/grad_norm",
    "actor/lr",
    "response_length/mean",
    "response_length/clip_ratio",
    "timing_s/gen",
    "timing_s/reward",
    "timing_s/ref",
    "timing_s/update_actor",
    "timing_s/sft",
    "timing_s/save_checkpoint",
    "timing_s/step",
    "perf/throughput",
};

std::string console_number(double value) {
  char text[48];
  const double size = std::abs(value);
  const bool tiny = size != 0.0 && size < 1e-3;
  std::snprintf(text, sizeof text,
                tiny || size >= 1e7 ? "%.3e"
                : size >= 100       ? "%.1f"
                                    : "%.4f",
                value);
  return text;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, seconds) + 0.5);
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

}  // namespace

ConsoleOptions ConsoleOptions::of_stdout(std::int64_t interval) {
  const char* columns = std::getenv("COLUMNS");
  const std::int64_t width = columns != nullptr ? std::atoll(columns) : 0;
  return {.interval = interval,
          .bar = ::isatty(STDOUT_FILENO) == 1,
          .width = width > 20 ? width - 1 : 100};
}

ConsoleSink::ConsoleSink(std::FILE* out, const ConsoleOptions& options)
    : out_(out), options_(options), begin_(std::chrono::steady_clock::now()) {}

ConsoleSink::~ConsoleSink() {
  if (options_.bar && first_step_) std::fputs("\n", out_);
}

std::string ConsoleSink::line(const StepRecord& record) {
  std::string text = (record.phase.empty() ? "" : record.phase + " ") +
                     "step:" + std::to_string(record.step) + "/" + std::to_string(record.total) +
                     " - epoch:" + std::to_string(record.epoch);
  for (const char* name : kConsoleMetrics) {
    const auto found = record.metrics.find(name);
    if (found != record.metrics.end())
      text += " - " + found->first + ":" + console_number(found->second);
  }
  for (const auto& [name, value] : record.metrics) {
    if (name.starts_with("val")) text += " - " + name + ":" + console_number(value);
  }
  return text;
}

std::string ConsoleSink::bar(std::int64_t step, std::int64_t total, double seconds_per_step,
                             std::int64_t width) {
  const double done =
      total > 0 ? std::clamp(static_cast<double>(step) / static_cast<double>(total), 0.0, 1.0)
                : 0.0;
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "] %3.0f%%  step %lld/%lld  %.3g s/step  ETA ", done * 100,
                static_cast<long long>(step), static_cast<long long>(total), seconds_per_step);
  const std::string tail =
      numbers +
      clock_text(seconds_per_step * static_cast<double>(std::max<std::int64_t>(0, total - step)));
  const std::int64_t cells =
      std::clamp<std::int64_t>(width - static_cast<std::int64_t>(tail.size()) - 1, 4, 50);
  const auto filled = static_cast<std::int64_t>(done * static_cast<double>(cells));
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(cells - filled), '.') + tail;
}

runtime::Status ConsoleSink::write(const StepRecord& record) {
  const auto now = std::chrono::steady_clock::now();
  const bool first = !first_step_ || record.phase != phase_;
  if (first) {
    first_step_ = record.step;
    phase_ = record.phase;
    begin_ = now;
  }
  const bool due = first || record.step == record.total || options_.interval <= 1 ||
                   record.step % options_.interval == 0;
  std::string text = options_.bar ? "\r\x1b[K" : "";
  // Names of metrics are a reward function's.
  if (due)
    text += (options_.bar ? runtime::printable_text(line(record))
                          : runtime::terminal_text(::fileno(out_), line(record))) +
            "\n";
  if (options_.bar) {
    // The clock starts with the first record, so that one step lies between each two.
    const double steps = static_cast<double>(std::max<std::int64_t>(1, record.step - *first_step_));
    text += bar(record.step, record.total,
                std::chrono::duration<double>(now - begin_).count() / steps, options_.width);
  }
  if (!due && !options_.bar) return {};
  if (std::fputs(text.c_str(), out_) < 0 || std::fflush(out_) != 0)
    return runtime::errno_status(errno, "writing to the console");
  return {};
}

}  // namespace rl
