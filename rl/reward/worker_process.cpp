#include "rl/reward/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/json.h"
#include "runtime/core/rest_of.h"

extern char** environ;

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::size_t kLineBytesMax = 4 << 20;     // of an answer
constexpr std::size_t kOutputBytesMax = 64 << 10;  // of a line that a scorer prints
constexpr int kDeathMilliseconds = 500;
constexpr int kKillRoundsMax = 200;  // a millisecond and a look at all processes each
constexpr std::chrono::seconds kCopyTime{2};
constexpr int kFirstFree = 10;  // descriptors that the child's own don't collide with

/// Above the numbers that the child uses, closed on exec.
int moved_up(int descriptor) {
  if (descriptor < 0) return -1;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFree);
  ::close(descriptor);
  return moved;
}

struct Ends {
  int ours = -1, theirs = -1;
  bool ok() const { return ours >= 0 && theirs >= 0; }
};

Ends make_socket() {
  std::array<int, 2> pair{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return {};
  return {moved_up(pair[0]), moved_up(pair[1])};
}

Ends make_pipe(bool we_read) {
  std::array<int, 2> pair{-1, -1};
  if (::pipe2(pair.data(), O_CLOEXEC) != 0) return {};
  const int read = moved_up(pair[0]), write = moved_up(pair[1]);
  return we_read ? Ends{read, write} : Ends{write, read};
}

int spawn(const std::vector<std::string>& command, int socket, int life, int output, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, 1);
  ::posix_spawn_file_actions_adddup2(&actions, output, 2);
  ::posix_spawn_file_actions_adddup2(&actions, socket, 3);
  ::posix_spawn_file_actions_adddup2(&actions, life, 4);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 5);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(&pid, command.front().c_str(), &actions, &attributes,
                                   arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// A byte with three descriptors.
bool send_descriptors(int socket, const std::array<int, 3>& descriptors) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return runtime::rest_of(file);  // nothing of a process that has ended meanwhile
}

// Whether a process began with the environment of `scorer`, which marks what it starts.
bool is_marked(const std::filesystem::path& process, pid_t scorer) {
  const std::string mark = std::string("STARLING_SCORER=") + std::to_string(scorer) + '\0';
  const std::string environment = contents(process / "environ");
  const std::size_t at = environment.find(mark);
  return at != std::string::npos && (at == 0 || environment[at - 1] == '\0');
}

struct Descendant {
  pid_t process = 0;
  bool ended = false;  // it waits to be buried
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
std::vector<Descendant> descendants_of(pid_t root) {
  std::multimap<pid_t, Descendant> children;
  std::vector<Descendant> found;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator("/proc", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto process = static_cast<pid_t>(std::atoi(name.c_str()));
    if (process != root && is_marked(entry->path(), root)) found.push_back({process});
    const std::string stat =
        contents(entry->path() / "stat");  // "PID (NAME) STATE PARENT ...", whatever the name holds
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

// In rounds: what loses its parent meanwhile becomes a child of `root`, where that keeps orphans,
// and is found by the next.
void kill_descendants_of(pid_t root) {
  for (int round = 0; round < kKillRoundsMax; ++round) {
    bool any = false;
    for (const Descendant& one : descendants_of(root)) {
      if (one.ended) continue;
      any = true;
      ::kill(one.process, SIGKILL);
    }
    if (!any) return;
    ::usleep(1000);
  }
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(
    const std::vector<std::string>& command) {
  std::unique_ptr<WorkerProcess> process(new WorkerProcess);
  Ends socket = make_socket(), life = make_pipe(/*we_read=*/false),
       output = make_pipe(/*we_read=*/true);
  process->socket_ = socket.ours;
  process->life_ = life.ours;
  process->output_ = output.ours;
  int error = socket.ok() && life.ok() && output.ok() ? 0 : EMFILE;
  if (error == 0) error = spawn(command, socket.theirs, life.theirs, output.theirs, process->pid_);
  for (int* theirs : {&socket.theirs, &life.theirs, &output.theirs}) close_if_open(*theirs);
  if (error != 0) {
    process->pid_ = -1;
    return runtime::errno_status(error, "starting " + command.front());
  }
  ::fcntl(process->socket_, F_SETFL, O_NONBLOCK);
  ::fcntl(process->output_, F_SETFL, O_NONBLOCK);
  process->death_ = static_cast<int>(::syscall(SYS_pidfd_open, process->pid_, 0));
  return process;
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::copy() {
  std::unique_ptr<WorkerProcess> process(new WorkerProcess);
  Ends socket = make_socket(), life = make_pipe(/*we_read=*/false),
       output = make_pipe(/*we_read=*/true);
  process->socket_ = socket.ours;
  process->life_ = life.ours;
  process->output_ = output.ours;
  const bool sent = socket.ok() && life.ok() && output.ok() &&
                    send_descriptors(socket_, {socket.theirs, life.theirs, output.theirs});
  for (int* theirs : {&socket.theirs, &life.theirs, &output.theirs}) close_if_open(*theirs);
  if (!sent) return runtime::unavailable("a process that makes copies takes no more");
  std::optional<std::string> line = next_line();
  for (const auto end = std::chrono::steady_clock::now() + kCopyTime;
       !line && std::chrono::steady_clock::now() < end; line = next_line()) {
    pollfd answer{socket_, POLLIN, 0};
    ::poll(&answer, 1, 100);
    if (!receive()) break;
  }
  const nlohmann::json answer = runtime::parse_json(line.value_or(""));
  const std::int64_t pid =
      answer.is_object() && answer.contains("pid") && answer["pid"].is_number_integer()
          ? answer["pid"].get<std::int64_t>()
          : 0;
  siginfo_t info{};
  if (pid <= 1 || ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return runtime::unavailable("a process that makes copies made none");
  process->pid_ = static_cast<pid_t>(pid);
  ::setpgid(process->pid_, process->pid_);  // it does so too; whoever is first
  ::fcntl(process->socket_, F_SETFL, O_NONBLOCK);
  ::fcntl(process->output_, F_SETFL, O_NONBLOCK);
  process->death_ = static_cast<int>(::syscall(SYS_pidfd_open, process->pid_, 0));
  return process;
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGSTOP);      // it starts nothing meanwhile, and stays the parent of orphans
    kill_descendants_of(pid_);  // those with a group or session of their own, too
    ::kill(-pid_, SIGKILL);     // the group: also what has lost its parent
    ::waitpid(pid_, nullptr, 0);
  }
  for (int* descriptor : {&socket_, &life_, &output_, &death_}) close_if_open(*descriptor);
}

void WorkerProcess::send_line(std::string_view line) {
  to_send_ += line;
  to_send_ += '\n';
  flush();
}

void WorkerProcess::flush() {
  while (!to_send_.empty()) {
    const ssize_t sent =
        ::send(socket_, to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) to_send_.clear();  // it is gone, which receive() finds
    if (sent <= 0) return;
    to_send_.erase(0, static_cast<std::size_t>(sent));
  }
}

bool WorkerProcess::receive() {
  std::array<char, 16 << 10> bytes;
  while (true) {
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) {
      received_.append(bytes.data(), static_cast<std::size_t>(count));
      if (received_.size() > kLineBytesMax) return false;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    return count < 0 && errno == EAGAIN;
  }
}

std::optional<std::string> WorkerProcess::next_line() {
  const std::size_t end = received_.find('\n');
  if (end == received_.npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::vector<std::string> WorkerProcess::output_lines(bool all) {
  std::array<char, 16 << 10> bytes;
  while (output_ >= 0 && printed_.size() < kOutputBytesMax) {
    const ssize_t count = ::read(output_, bytes.data(), bytes.size());
    if (count > 0) {
      printed_.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else {
      if (count == 0) close_if_open(output_);
      break;
    }
  }
  std::vector<std::string> lines;
  for (std::size_t end = printed_.find('\n'); end != printed_.npos; end = printed_.find('\n')) {
    lines.push_back(printed_.substr(0, end));
    printed_.erase(0, end + 1);
  }
  if (!printed_.empty() && (all || printed_.size() >= kOutputBytesMax))
    lines.push_back(std::exchange(printed_, {}));
  return lines;
}

// The zombie stays until the destructor, so that nobody else gets the number of its group.
bool WorkerProcess::has_died() {
  siginfo_t info{};
  if (!died_ && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_) {
    died_ = true;
    killed_ = info.si_code != CLD_EXITED;
    status_ = info.si_status;
  }
  return died_;
}

void WorkerProcess::await_death() {
  pollfd death{death_, POLLIN, 0};
  if (!has_died() && death_ >= 0) ::poll(&death, 1, kDeathMilliseconds);
  has_died();
}

std::string WorkerProcess::describe_death() const {
  if (!died_) return "closed its connection";
  if (killed_)
    return "was killed by signal " + std::to_string(status_) + " (" + ::strsignal(status_) + ")";
  return "ended with status " + std::to_string(status_);
}

}  // namespace rl
