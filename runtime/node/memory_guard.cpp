#include "runtime/node/memory_guard.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "runtime/core/cgroup.h"
#include "runtime/core/log.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kSamplePeriod{1};
// Less than this part of the memory is no help.
constexpr std::uint64_t kNotableShare = 200;

std::string gib_text(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1ull << 30));
  return text;
}

/// The number behind `key` in a file of "key value" lines.
std::uint64_t value_in(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  std::uint64_t value = 0;
  while (in >> word) {
    if (word == key && in >> value) return value;
  }
  return 0;
}

/// Takes over the use of a group when a smaller share of it is left.
void consider(const CgroupFolder& group, MemoryUse& least) {
  const fs::path& folder = group.path;
  const bool version2 = group.is_v2;
  std::uint64_t limit = 0, used = 0;
  // "max" does not parse and is none; version 1 writes a number beyond all memory.
  if (!(std::ifstream(folder / (version2 ? "memory.max" : "memory.limit_in_bytes")) >> limit) ||
      limit == 0 || limit >= 1ull << 60)
    return;
  if (!(std::ifstream(folder / (version2 ? "memory.current" : "memory.usage_in_bytes")) >> used))
    return;
  used -= std::min(
      used, value_in(folder / "memory.stat", version2 ? "inactive_file" : "total_inactive_file"));
  const MemoryUse use{used, limit, "cgroup " + group.name};
  if (use.fraction() > least.fraction()) least = use;
}

}  // namespace

MemoryUse memory_use(const fs::path& root) {
  const std::uint64_t total = value_in(root / "proc/meminfo", "MemTotal:") << 10;
  const std::uint64_t available = value_in(root / "proc/meminfo", "MemAvailable:") << 10;
  MemoryUse least{total - std::min(total, available), total, "the machine"};
  for (const CgroupFolder& group : cgroup_folders("memory", root)) consider(group, least);
  return least;
}

std::uint64_t own_memory_bytes(pid_t pid) {
  return value_in("/proc/" + std::to_string(pid) + "/status", "RssAnon:") << 10;
}

MemoryGuard::MemoryGuard(EventLoop& loop, std::string node, MemoryGuardOptions options,
                         Callbacks callbacks)
    : node_(std::move(node)),
      options_(options),
      callbacks_(std::move(callbacks)),
      timer_(loop.context()) {
  if (options_.threshold > 0) arm();
}

void MemoryGuard::arm() {
  timer_.expires_after(options_.period);
  timer_.async_wait(lifetime_.guard([this](const boost::system::error_code& ec) {
    if (ec) return;
    look(steady_now());
    arm();
  }));
}

void MemoryGuard::look(Deadline now) {
  const MemoryUse use = callbacks_.use();
  const bool is_short = use.fraction() > options_.threshold;
  if (!is_short && now < next_sample_) return;
  next_sample_ = now + kSamplePeriod;
  const std::vector<GuardedWorker> workers = callbacks_.workers();
  const GuardedWorker* worst = nullptr;
  std::uint64_t worst_growth = 0, worst_bytes = 0;
  std::map<WorkerId, std::deque<Sample>> samples;  // of those that still run
  for (const GuardedWorker& worker : workers) {
    std::deque<Sample>& own = samples[worker.id] = std::move(samples_[worker.id]);
    const std::uint64_t bytes = callbacks_.own_memory(worker.pid);
    own.push_back({now, bytes});
    while (own.size() > 2 && own[1].at <= now - options_.window) own.pop_front();
    const std::uint64_t growth = bytes - std::min(bytes, own.front().bytes);
    // When none has grown of late, the largest.
    if (worst == nullptr || growth > worst_growth ||
        (growth == worst_growth && bytes > worst_bytes)) {
      worst = &worker;
      worst_growth = growth;
      worst_bytes = bytes;
    }
  }
  samples_ = std::move(samples);
  if (!is_short) return;
  if (callbacks_.give_back && callbacks_.give_back() > use.limit_bytes / kNotableShare)
    return;  // that may do
  if (worst == nullptr || now < quiet_until_) return;
  quiet_until_ = now + options_.pause;
  char limit[16];
  std::snprintf(limit, sizeof limit, "%.4g %%", 100 * options_.threshold);
  const std::string reason =
      "stopped because node " + node_ + " was short of memory: " + gib_text(use.used_bytes) +
      " of " + gib_text(use.limit_bytes) + " of " + use.whose + " in use, more than " + limit +
      "; " + worst->name + " (pid " + std::to_string(worst->pid) + "), which had grown most, had " +
      gib_text(worst_bytes) + ", " + gib_text(worst_growth) + " more than " +
      std::to_string(
          std::chrono::duration_cast<std::chrono::seconds>(now - samples_[worst->id].front().at)
              .count()) +
      " s before";
  LOG(warn, "{}", reason);
  ++stops_;
  callbacks_.stop(worst->id, reason);
}

}  // namespace runtime
