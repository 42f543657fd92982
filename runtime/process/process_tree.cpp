#include "runtime/process/process_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

namespace runtime {

namespace {

constexpr std::size_t kProcessesMax = 1 << 22;  // Linux has no more
constexpr std::size_t kProcessesMin = 1 << 12;

// Looks for new ones before those that are there are killed in any case. One that waits in the
// kernel stops late, but starts nothing before.
constexpr int kStopLooksMax = 100;
constexpr int kPatientLooks = 5;
constexpr int kStopPauseMs = 1;
constexpr int kTreePauseMs = 5;
constexpr std::int64_t kStuckMs = 2000;

std::int64_t tree_now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

template <class Number>
Number parsed_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : Number{};
}

/// The number that a process's folder has as its name; 0: it is another's.
pid_t process_of(const char* name) { return parsed_number<pid_t>(name); }

/// A number for which processes these are, with one more.
std::uint64_t with_pid(std::uint64_t number, pid_t pid) {
  return number * 1'000'003 + static_cast<std::uint64_t>(pid);
}

struct ProcessStat {
  char state = 0;  // 0: it is gone
  pid_t parent = 0;
  int threads = 0;
};

/// Of /proc/PID/stat: "PID (NAME) STATE PARENT ...", where NAME may be anything.
ProcessStat parsed_process_stat(std::string_view text) {
  ProcessStat stat;
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos) return stat;
  text.remove_prefix(name_end + 1);
  for (int field = 2; !text.empty() && field <= 20; ++field) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (field == 3) stat.state = word.empty() ? '\0' : word[0];
    if (field == 4) stat.parent = parsed_number<pid_t>(word);
    if (field == 20) stat.threads = parsed_number<int>(word);
    text.remove_prefix(space == text.npos ? text.size() : space + 1);
  }
  return stat;
}

ProcessStat process_stat_of(const char* name) {
  std::array<char, 64> path{};
  ::strcpy(path.data(), "/proc/");
  ::strncat(path.data(), name, 20);
  ::strcat(path.data(), "/stat");
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 1024> text;
  const ssize_t got = ::read(file, text.data(), text.size());
  ::close(file);
  return got <= 0 ? ProcessStat()
                  : parsed_process_stat({text.data(), static_cast<std::size_t>(got)});
}

/// Calls `visit` with the name of each entry of /proc.
template <class Visit>
void for_each_entry(Visit visit) {
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(8) std::array<char, 8192> block;
  for (long got; (got = ::syscall(SYS_getdents64, folder, block.data(), block.size())) > 0;) {
    for (long at = 0; at < got;) {
      // A linux_dirent64: two numbers of eight bytes, the entry's length, its kind, its name.
      std::uint16_t length = 0;
      std::memcpy(&length, block.data() + at + 16, sizeof length);
      visit(block.data() + at + 19);
      at += length;
    }
  }
  ::close(folder);
}

}  // namespace

bool is_own_proc() {
  std::array<char, 32> text;
  const ssize_t got = ::readlink("/proc/self", text.data(), text.size());
  return got > 0 &&
         parsed_number<pid_t>({text.data(), static_cast<std::size_t>(got)}) == ::getpid();
}

ProcessTree::ProcessTree(pid_t root) : root_(root), since_ms_(tree_now_ms()) {
  if (!is_own_proc()) return;
  for (room_ = kProcessesMax; room_ >= kProcessesMin; room_ /= 2) {
    void* pages = ::mmap(nullptr, room_ * sizeof(Process), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) continue;
    processes_ = static_cast<Process*>(pages);
    return;
  }
  room_ = 0;
}

ProcessTree::~ProcessTree() {
  if (processes_ != nullptr) ::munmap(processes_, room_ * sizeof(Process));
}

const ProcessTree::Process* ProcessTree::find(pid_t pid) const {
  const Process* const begin = processes_;
  const Process* const end = begin + count_;
  const Process* found = std::lower_bound(
      begin, end, pid, [](const Process& process, pid_t than) { return process.pid < than; });
  return found != end && found->pid == pid ? found : nullptr;
}

// A process is listed some time before it is read: one that ended in between may have started
// another that is not in the list.
bool ProcessTree::look() {
  count_ = 0;
  bool is_complete = true;
  for_each_entry([&](const char* name) {
    const pid_t pid = process_of(name);
    if (pid <= 0 || count_ == room_) return;
    if (count_ > 0 && pid <= processes_[count_ - 1].pid) return;  // they come in this order
    const ProcessStat stat = process_stat_of(name);
    // The first thread may end before others.
    const bool has_ended = stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1);
    if (stat.state != 0)
      processes_[count_++] = Process{pid, stat.parent, stat.state, has_ended, false};
    else
      is_complete = false;
  });
  mark_below();
  return drop_others() && is_complete;
}

// Most parents have lower numbers than their children: a pass or two.
void ProcessTree::mark_below() {
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < count_; ++i) {
      Process& process = processes_[i];
      if (process.is_below || process.pid == root_) continue;
      const Process* parent = find(process.parent);
      process.is_below = process.parent == root_ || (parent != nullptr && parent->is_below);
      any |= process.is_below;
    }
  }
}

bool ProcessTree::drop_others() {
  std::size_t kept = 0;
  std::uint64_t ended = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const Process& process = processes_[i];
    if (!process.is_below) continue;
    if (process.has_ended)
      ended = with_pid(ended, process.pid);
    else
      processes_[kept++] = process;
  }
  count_ = kept;
  const bool is_new = ended != 0 && ended != ended_;
  ended_ = ended;
  return !is_new;
}

bool ProcessTree::stop_all(bool is_patient) {
  bool all = look();
  for (std::size_t i = 0; i < count_; ++i) {
    const Process& process = processes_[i];
    if (process.state == 'T' || process.state == 't') continue;
    const bool sent = ::kill(process.pid, SIGSTOP) == 0;
    // What may not be signalled is not waited for, nor for long what cannot stop.
    all &= !sent || (!is_patient && (process.state == 'D' || process.state == 'Z'));
  }
  return all;
}

bool ProcessTree::kill_round() {
  if (processes_ == nullptr) return false;
  for (int looks = 0; !stop_all(looks < kPatientLooks) && looks < kStopLooksMax; ++looks)
    ::poll(nullptr, 0, kStopPauseMs);
  std::uint64_t seen = 1;
  for (std::size_t i = 0; i < count_; ++i) {
    ::kill(processes_[i].pid, SIGKILL);
    seen = with_pid(seen, processes_[i].pid);
  }
  if (seen != seen_) {
    seen_ = seen;
    since_ms_ = tree_now_ms();
  }
  return count_ > 0;
}

bool ProcessTree::is_stuck() const { return tree_now_ms() - since_ms_ > kStuckMs; }

bool ProcessTree::kill_all() {
  while (kill_round()) {
    if (is_stuck()) return false;
    ::poll(nullptr, 0, kTreePauseMs);
  }
  return true;
}

}  // namespace runtime
