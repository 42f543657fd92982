#include "rl/run/step_profiler.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "rl/profile/recorder.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr int kClockQuestions =
    5;  // to members on other machines; the fastest answer says best how their clocks stand
constexpr std::size_t kLinesMax = 5;
constexpr std::size_t kOperationsMax = 3;

// Begins the recording of a group; returns how far its members' clocks are ahead of ours.
Result<std::vector<std::int64_t>> begin_group(const ProfiledGroup& group,
                                              const std::vector<profile::ProfileRequest>& requests,
                                              const std::string& machine) {
  std::vector<std::int64_t> ahead(group.size, 0);
  std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
  for (int question = 0; question < kClockQuestions; ++question) {
    const std::int64_t asked = profile::now_ns();
    const auto started = group.begin(requests);
    if (!started.ok()) return started.status();
    const std::int64_t took = profile::now_ns() - asked;
    bool all_here = true;
    for (std::size_t rank = 0; rank < started->size() && rank < ahead.size(); ++rank) {
      const profile::ProfileStarted& member = (*started)[rank];
      if (member.machine == machine) continue;  // processes of one machine share its steady clock
      all_here = false;
      if (took < fastest) ahead[rank] = member.now_ns - (asked + took / 2);
    }
    fastest = std::min(fastest, took);
    if (all_here) break;
  }
  return ahead;
}

std::string describe(const profile::LapUse& use) {
  std::array<char, 32> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%8.3f s %3.0f %%", use.seconds, 100.0 * use.share);
  std::string line = "  " + use.name +
                     std::string(use.name.size() < 16 ? 16 - use.name.size() : 0, ' ') +
                     numbers.data();
  for (std::size_t i = 0; i < std::min(kOperationsMax, use.operations.size()); ++i) {
    std::snprintf(numbers.data(), numbers.size(), " %.3f s", use.operations[i].second);
    line += (i == 0 ? ": " : ", ") + use.operations[i].first + numbers.data();
  }
  return line;
}

}  // namespace

void StepProfiler::before(std::int64_t step,
                          const std::function<std::vector<ProfiledGroup>()>& groups) {
  if (!options_.wants(step)) return;
  if (!groups_.empty()) {
    step_begin_ns_ = profile::now_ns();
    return;
  }
  std::vector<ProfiledGroup> wanted = groups();
  std::size_t processes = 1;
  for (const ProfiledGroup& group : wanted) processes += group.size;
  const std::int64_t share = options_.spans_max / static_cast<std::int64_t>(processes);
  ahead_ns_.clear();
  const std::string machine = profile::machine_name();
  for (const ProfiledGroup& group : wanted) {
    std::vector<profile::ProfileRequest> requests;
    for (std::size_t rank = 0; rank < group.size; ++rank)
      requests.push_back({.wanted = options_.wants(group.role, static_cast<std::int64_t>(rank)),
                          .spans_max = share});
    Result<std::vector<std::int64_t>> ahead = begin_group(group, requests, machine);
    if (!ahead.ok()) {
      LOG(warn, "step {} is not profiled: {}", step, ahead.status().message());
      return;
    }
    ahead_ns_.push_back(std::move(*ahead));
  }
  groups_ = std::move(wanted);
  first_step_ = step;
  profile::start(share);
  begin_ns_ = step_begin_ns_ = profile::now_ns();
}

void StepProfiler::after(std::int64_t step) {
  if (groups_.empty()) return;
  profile::add("step " + std::to_string(step), profile::SpanKind::kStep, step_begin_ns_,
               profile::now_ns());
  last_step_ = step;
  if (!(options_.continuous && options_.wants(step + 1))) finish();
}

Result<std::vector<profile::ProfiledProcess>> StepProfiler::collect() {
  std::vector<profile::ProfiledProcess> processes;
  processes.push_back({"controller", 0, profile::stop()});
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Result<std::vector<profile::Recording>> recordings = groups_[g].end();
    if (!recordings.ok()) return recordings.status();
    for (std::size_t rank = 0; rank < recordings->size(); ++rank) {
      if (!options_.wants(groups_[g].role, static_cast<std::int64_t>(rank))) continue;
      if (!(*recordings)[rank].consistent())
        return runtime::internal_error(groups_[g].role + " " + std::to_string(rank) +
                                       " sent a recording that does not fit together");
      processes.push_back({groups_[g].role + " " + std::to_string(rank), ahead_ns_[g][rank],
                           std::move((*recordings)[rank])});
    }
  }
  return processes;
}

void StepProfiler::finish() {
  if (groups_.empty()) return;
  const Result<std::vector<profile::ProfiledProcess>> processes = collect();
  groups_.clear();
  const std::string steps = first_step_ == last_step_ ? "step " + std::to_string(first_step_)
                                                      : "steps " + std::to_string(first_step_) +
                                                            " to " + std::to_string(last_step_);
  if (!processes.ok()) {
    LOG(warn, "no profile of {}: {}; training continues", steps, processes.status().message());
    return;
  }
  const std::string numbers = first_step_ == last_step_ ? "step_" + std::to_string(first_step_)
                                                        : "steps_" + std::to_string(first_step_) +
                                                              "-" + std::to_string(last_step_);
  std::error_code ignored;  // said by the writing below
  std::filesystem::create_directories(options_.folder, ignored);
  const std::filesystem::path file = options_.folder / (numbers + ".trace.json");
  const Status written = write_file_atomically(file, profile::chrome_trace(*processes, begin_ns_));
  if (written.ok()) {
    LOG(info, "{}: profile in {} (ui.perfetto.dev opens it); the time went to", steps,
        file.string());
  } else {
    LOG(warn, "{}: {} (global_profiler.save_path); training continues. The time went to", steps,
        written.message());
  }
  const std::vector<profile::LapUse> uses = profile::time_use(*processes);
  for (std::size_t i = 0; i < std::min(kLinesMax, uses.size()); ++i)
    LOG(info, "{}", describe(uses[i]));
  for (const profile::ProfiledProcess& process : *processes) {
    if (process.recording.cut > 0)
      LOG(warn, "{}: of {} the last {} spans were left out, since the trace would grow beyond {}",
          steps, process.name, process.recording.cut, options_.spans_max);
  }
}

}  // namespace rl
