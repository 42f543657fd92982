#include "runtime/process/descendants.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "runtime/core/rest_of.h"

namespace runtime {

namespace {

constexpr int kKillRoundsMax = 200;  // a millisecond and a look at all processes each

std::string process_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return rest_of(file);  // nothing of a process that has ended meanwhile
}

/// Whether a process began with this line in its environment.
bool is_marked(const std::filesystem::path& process, const std::string& line) {
  const std::string mark = line + '\0';
  const std::string environment = process_file(process / "environ");
  const std::size_t at = environment.find(mark);
  return at != std::string::npos && (at == 0 || environment[at - 1] == '\0');
}

struct Descendant {
  pid_t process = 0;
  bool ended = false;  // it waits to be reaped
};

// Whether a process whose state is Z has no thread left: the first one may end before others.
bool has_no_threads(const std::filesystem::path& process) {
  std::error_code error;
  std::size_t threads = 0;
  for (auto entry = std::filesystem::directory_iterator(process / "task", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    ++threads;
  return threads <= 1;
}

// Processes that `root` started, and those that they did: by the chain of parents, or where that is
// broken by the mark.
std::vector<Descendant> descendants_of(pid_t root, const std::string& mark) {
  std::multimap<pid_t, Descendant> children;
  std::vector<Descendant> found;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator("/proc", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto process = static_cast<pid_t>(std::atoi(name.c_str()));
    if (process != root && is_marked(entry->path(), mark)) found.push_back({process});
    const std::string stat = process_file(
        entry->path() / "stat");  // "PID (NAME) STATE PARENT ...", whatever the name holds
    const std::size_t end = stat.rfind(')');
    if (end == std::string::npos || end + 4 >= stat.size()) continue;
    const bool ended = stat[end + 2] == 'Z' && has_no_threads(entry->path());
    children.emplace(static_cast<pid_t>(std::atoi(stat.c_str() + end + 4)),
                     Descendant{process, ended});
  }
  std::vector<pid_t> parents{root};
  for (const Descendant& marked : found) parents.push_back(marked.process);
  while (!parents.empty()) {
    const auto [first, last] = children.equal_range(parents.back());
    parents.pop_back();
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      parents.push_back(child->second.process);
    }
  }
  return found;
}

}  // namespace

void kill_descendants(pid_t root, const std::string& mark) {
  // What loses its parent meanwhile becomes a child of `root`, where that keeps orphans, and is
  // found by the next round.
  for (int round = 0; round < kKillRoundsMax; ++round) {
    bool any = false;
    for (const Descendant& one : descendants_of(root, mark)) {
      if (one.ended) continue;
      any = true;
      ::kill(one.process, SIGKILL);
    }
    if (!any) return;
    ::usleep(1000);
  }
}

}  // namespace runtime
