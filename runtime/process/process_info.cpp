#include "runtime/process/process_info.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "runtime/process/file_util.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;

std::string small_file(const std::string& path) {
  return read_file(path, kFileBytesMax).value_or("");
}

const char* state_name(char state) {
  switch (state) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'I': return "sleeping";
    case 'D': return "waiting for a disk";
    case 'T': return "stopped";
    case 't': return "traced";
    case 'Z':
    case 'X': return "ended";
    default: return "unknown";
  }
}

std::string task_folder(pid_t pid, pid_t tid) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
}

}  // namespace

ProcessInfo parse_process_stat(const std::string& stat) {
  ProcessInfo info;
  // "pid (name) state ppid ...": the name may hold anything, so count from the last ')'.
  const std::size_t open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open ||
      close + 2 >= stat.size())
    return info;
  std::istringstream fields(stat.substr(close + 2));
  std::vector<std::string> field;
  for (std::string word; fields >> word;) field.push_back(word);
  if (field.size() < 22) return info;
  // Numbered as in proc(5), where the state is field 3.
  const auto number = [&](std::size_t n) {
    return std::strtoull(field[n - 3].c_str(), nullptr, 10);
  };
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  info.name = stat.substr(open + 1, close - open - 1);
  info.state = state_name(field[0][0]);
  info.cpu_seconds = static_cast<double>(number(14) + number(15)) / ticks;
  info.threads = static_cast<std::uint32_t>(number(20));
  info.resident_bytes = number(24) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return info;
}

ProcessInfo process_info(pid_t pid) {
  return parse_process_stat(small_file("/proc/" + std::to_string(pid) + "/stat"));
}
ProcessInfo thread_info(pid_t pid, pid_t tid) {
  return parse_process_stat(small_file(task_folder(pid, tid) + "/stat"));
}

std::string wait_channel(pid_t pid, pid_t tid) {
  std::string text = small_file(task_folder(pid, tid) + "/wchan");
  return text == "0" ? "" : text;
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (fs::directory_iterator task("/proc/" + std::to_string(pid) + "/task", error), end;
       !error && task != end; task.increment(error)) {
    if (const int tid = std::atoi(task->path().filename().c_str()); tid > 0) threads.push_back(tid);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

std::vector<pid_t> processes_below(std::vector<pid_t> pids) {
  std::multimap<pid_t, pid_t> children;  // by their parent
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const int child = std::atoi(entry->path().filename().c_str());
    if (child <= 0) continue;
    // "12 (name) S 1 ...": the name may have anything in it.
    const std::string stat = small_file("/proc/" + std::to_string(child) + "/stat");
    const std::size_t name_end = stat.rfind(')');
    int parent = 0;
    if (name_end != stat.npos && std::sscanf(stat.c_str() + name_end, ") %*c %d", &parent) == 1)
      children.emplace(parent, child);
  }
  std::vector<pid_t> below;
  while (!pids.empty()) {
    const auto [first, last] = children.equal_range(pids.back());
    pids.pop_back();
    for (auto child = first; child != last; ++child) {
      below.push_back(child->second);
      pids.push_back(child->second);
    }
  }
  return below;
}

std::size_t open_files(pid_t pid) {
  std::size_t count = 0;
  std::error_code error;
  for (fs::directory_iterator file("/proc/" + std::to_string(pid) + "/fd", error), end;
       !error && file != end; file.increment(error))
    ++count;
  return count;
}

double machine_busy_seconds() {
  std::istringstream fields(small_file("/proc/stat"));
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0, steal = 0;
  fields >> cpu >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq >> steal;
  return (user + nice + system + irq + soft_irq + steal) /
         static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace runtime
