// RenderBudget: the limits of one rendering, counted as it runs. Everything throws TemplateFailure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rl/template/template.h"

namespace rl {

/// Counts nested evaluations, also when one throws; too many are Python's RecursionError.
class TemplateDepthGuard {
 public:
  TemplateDepthGuard(int& depth, int most);
  ~TemplateDepthGuard() { --depth_; }
  TemplateDepthGuard(const TemplateDepthGuard&) = delete;
  TemplateDepthGuard& operator=(const TemplateDepthGuard&) = delete;

 private:
  int& depth_;
};

class RenderBudget {
 public:
  explicit RenderBudget(const TemplateLimits& limits) : limits_(limits) {}

  /// Accounts for memory made on the way.
  void charge(std::size_t bytes);
  void charge_steps(std::int64_t steps);
  /// Accounts for looking at bytes (a nanosecond each), or at characters (tens of them).
  void charge_scan(std::size_t bytes) { charge_steps(static_cast<std::int64_t>(bytes / 32)); }
  void charge_characters(std::size_t bytes) { charge_steps(static_cast<std::int64_t>(bytes / 4)); }
  /// Throws when a result of N bytes is too long.
  void check_output(std::size_t bytes) const;

  /// Holds a level of nested evaluations, or of macro calls.
  TemplateDepthGuard nest() { return TemplateDepthGuard(frames_, kFramesMax); }
  TemplateDepthGuard nest_call() { return TemplateDepthGuard(calls_, limits_.depth_max); }

 private:
  static constexpr int kFramesMax = 1500;  // a frame is about a kilobyte of stack

  TemplateLimits limits_;
  std::int64_t steps_ = 0;
  std::size_t work_bytes_ = 0;
  int frames_ = 0;
  int calls_ = 0;
};

}  // namespace rl
