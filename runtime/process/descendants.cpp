#include "runtime/process/descendants.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "runtime/core/rest_of.h"
#include "runtime/process/process_info.h"

namespace runtime {

namespace {

constexpr int kKillRoundsMax = 200;  // a millisecond and a few looks at all processes each
constexpr int kStopRoundsMax = 50;   // a look each, until no new process appears
constexpr int kExecLooks = 20;
constexpr useconds_t kExecPauseUs = 100;

std::string process_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return rest_of(file);  // nothing of a process that has ended meanwhile
}

// Not that of the kernel, or of one that has ended.
bool has_memory(const std::filesystem::path& process) {
  const std::string pages = process_file(process / "statm");
  return !pages.empty() && pages[0] != '0';
}

// A process that is replacing its program (execve) has none for a moment.
std::string environment_of(const std::filesystem::path& process) {
  std::string environment = process_file(process / "environ");
  for (int look = 0; look < kExecLooks && environment.empty() && has_memory(process); ++look) {
    ::usleep(kExecPauseUs);
    environment = process_file(process / "environ");
  }
  return environment;
}

/// Whether a process began with this line in its environment.
bool is_marked(const std::filesystem::path& process, const std::string& line) {
  const std::string mark = line + '\0';
  const std::string environment = environment_of(process);
  const std::size_t at = environment.find(mark);
  return at != std::string::npos && (at == 0 || environment[at - 1] == '\0');
}

// Whether it waits to be reaped, with no thread left: the first one may end before others.
bool has_ended(pid_t process) {
  return process_info(process).state == "ended" && threads_of(process).size() <= 1;
}

// Processes that `root` started, and those that they did: by the chain of parents, or where that is
// broken by the mark.
std::vector<pid_t> descendants_of(pid_t root, const std::string& mark) {
  std::vector<pid_t> marked;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator("/proc", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const auto process = static_cast<pid_t>(std::atoi(entry->path().filename().c_str()));
    if (process > 0 && process != root && is_marked(entry->path(), mark)) marked.push_back(process);
  }
  std::vector<pid_t> roots = marked;
  roots.push_back(root);
  std::vector<pid_t> found = processes_below(std::move(roots));
  found.insert(found.end(), marked.begin(), marked.end());
  return found;
}

/// Those that have not ended, all of them stopped: none starts others.
std::set<pid_t> stopped_descendants_of(pid_t root, const std::string& mark) {
  std::set<pid_t> stopped;
  for (int round = 0; round < kStopRoundsMax; ++round) {
    std::set<pid_t> found;
    for (const pid_t process : descendants_of(root, mark)) {
      if (!has_ended(process)) found.insert(process);
    }
    if (std::includes(stopped.begin(), stopped.end(), found.begin(), found.end())) return found;
    for (const pid_t process : found) ::kill(process, SIGSTOP);
    stopped = std::move(found);
  }
  return stopped;
}

}  // namespace

void kill_descendants(pid_t root, const std::string& mark) {
  // What loses its parent meanwhile becomes a child of `root`, where that keeps orphans, and is
  // found by the next round.
  for (int round = 0; round < kKillRoundsMax; ++round) {
    const std::set<pid_t> left = stopped_descendants_of(root, mark);
    if (left.empty()) return;
    for (const pid_t process : left) ::kill(process, SIGKILL);
    ::usleep(1000);
  }
}

}  // namespace runtime
