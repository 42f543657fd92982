#include "rl/reward/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/json.h"
#include "runtime/process/descendants.h"
#include "runtime/process/pipe.h"
#include "runtime/process/spawn.h"

namespace rl {
namespace {

using runtime::FileDescriptor;
using runtime::Result;
using runtime::Status;

constexpr std::size_t kLineBytesMax = 4 << 20;     // of an answer
constexpr std::size_t kOutputBytesMax = 64 << 10;  // of a line that a scorer prints
constexpr std::chrono::milliseconds kDeathTime{500};
constexpr std::chrono::seconds kCopyTime{2};

struct EndPairs {
  WorkerEnds ours, theirs;
};

Result<EndPairs> make_ends() {
  Result<runtime::SocketPair> socket = runtime::make_socket_pair();
  Result<runtime::Pipe> life = runtime::make_pipe();
  Result<runtime::Pipe> output = runtime::make_pipe();
  for (const Status& status : {socket.status(), life.status(), output.status()}) {
    if (!status.ok()) return status;
  }
  for (const int read : {socket->ours.get(), output->read.get()})
    ::fcntl(read, F_SETFL, O_NONBLOCK);
  return EndPairs{{std::move(socket->ours), std::move(life->write), std::move(output->read)},
                  {std::move(socket->theirs), std::move(life->read), std::move(output->write)}};
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

}  // namespace

WorkerProcess::WorkerProcess(runtime::SpawnedProcess process, WorkerEnds ends)
    : process_(std::move(process)), ends_(std::move(ends)) {
  if (Result<FileDescriptor> death = process_.watch(); death.ok()) death_ = *std::move(death);
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(
    const std::vector<std::string>& command) {
  Result<EndPairs> ends = make_ends();
  if (!ends.ok()) return ends.status().with_context("starting " + command.front());
  const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  runtime::SpawnSpec spec;
  spec.program = command.front();
  spec.argv = command;
  spec.setup.group = runtime::ProcessGroup::kOwn;
  spec.setup.descriptors = {{nothing.get(), 0},
                            {ends->theirs.output.get(), 1},
                            {ends->theirs.output.get(), 2},
                            {ends->theirs.socket.get(), 3},
                            {ends->theirs.life.get(), 4}};
  spec.setup.closes_others = true;
  spec.setup.signal_mask = runtime::no_signals();
  spec.setup.resets_signals = true;
  Result<runtime::SpawnedProcess> process = runtime::spawn_process(spec);
  if (!process.ok()) return process.status();
  return std::unique_ptr<WorkerProcess>(
      new WorkerProcess(*std::move(process), std::move(ends->ours)));
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::copy() {
  Result<EndPairs> ends = make_ends();
  const bool sent = ends.ok() && send_descriptors(ends_.socket.get(), {ends->theirs.socket.get(),
                                                                       ends->theirs.life.get(),
                                                                       ends->theirs.output.get()});
  if (ends.ok()) ends->theirs = {};
  if (!sent) return runtime::unavailable("a process that makes copies takes no more");
  std::optional<std::string> line = next_line();
  for (const auto end = std::chrono::steady_clock::now() + kCopyTime;
       !line && std::chrono::steady_clock::now() < end; line = next_line()) {
    pollfd answer{ends_.socket.get(), POLLIN, 0};
    ::poll(&answer, 1, 100);
    if (!receive()) break;
  }
  const nlohmann::json answer = runtime::parse_json(line.value_or(""));
  const std::int64_t pid =
      answer.is_object() && answer.contains("pid") && answer["pid"].is_number_integer()
          ? answer["pid"].get<std::int64_t>()
          : 0;
  Result<runtime::SpawnedProcess> copied = runtime::SpawnedProcess::adopt(static_cast<pid_t>(pid));
  if (!copied.ok()) return runtime::unavailable("a process that makes copies made none");
  return std::unique_ptr<WorkerProcess>(
      new WorkerProcess(*std::move(copied), std::move(ends->ours)));
}

WorkerProcess::~WorkerProcess() {
  process_.signal(SIGSTOP);  // it starts nothing meanwhile, and stays the parent of orphans
  // Those with their own group or session, too.
  runtime::kill_descendants(process_.pid(), "STARLING_SCORER=" + std::to_string(process_.pid()));
  process_.signal_group(SIGKILL);  // also what has lost its parent
  process_.reap();
}

void WorkerProcess::send_line(std::string_view line) {
  to_send_ += line;
  to_send_ += '\n';
  flush();
}

void WorkerProcess::flush() {
  while (!to_send_.empty()) {
    const ssize_t sent =
        ::send(ends_.socket.get(), to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) to_send_.clear();  // it is gone, which receive() finds
    if (sent <= 0) return;
    to_send_.erase(0, static_cast<std::size_t>(sent));
  }
}

bool WorkerProcess::receive() {
  std::array<char, 16 << 10> bytes;
  while (true) {
    const ssize_t count = ::recv(ends_.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
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
  while (ends_.output && printed_.size() < kOutputBytesMax) {
    const ssize_t count = ::read(ends_.output.get(), bytes.data(), bytes.size());
    if (count > 0) {
      printed_.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else {
      if (count == 0) ends_.output.reset();
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

// The zombie stays until the destructor, so that no other process gets the number of its group.
bool WorkerProcess::has_died() {
  if (!cause_) cause_ = process_.ended();
  return cause_.has_value();
}

void WorkerProcess::await_death() {
  process_.await_end(runtime::deadline_after(kDeathTime));
  has_died();
}

std::string WorkerProcess::describe_death() const {
  if (!cause_) return "closed its connection";
  if (cause_->signal != 0)
    return "was killed by signal " + std::to_string(cause_->signal) + " (" +
           ::strsignal(cause_->signal) + ")";
  return "ended with status " + std::to_string(cause_->exit_code);
}

}  // namespace rl
