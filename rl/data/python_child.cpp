#include "rl/data/python_child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "rl/data/python_programs.h"
#include "runtime/core/environment.h"

extern char** environ;

namespace rl {

using runtime::Result;

Result<PythonChild> PythonChild::start(const std::string& program,
                                       const nlohmann::ordered_json& setup,
                                       const std::string& key) {
  const char* named = runtime::environment_variable("STARLING_PYTHON");
  std::string interpreter = named != nullptr && *named != 0 ? named : "python3";
  // Requests go over a socket, so that a child that is gone is an error rather than a signal.
  int requests[2], answers[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, requests) != 0)
    return runtime::errno_status(errno, "a socket to " + interpreter);
  if (::pipe2(answers, O_CLOEXEC) != 0) {
    const int error = errno;
    ::close(requests[0]);
    ::close(requests[1]);
    return runtime::errno_status(error, "a pipe to " + interpreter);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, requests[1], 0);
  ::posix_spawn_file_actions_adddup2(&actions, answers[1], 3);
  std::string option = "-c", code = kPythonPrelude + program,
              argument =
                  setup.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  char* argv[] = {interpreter.data(), option.data(), code.data(), argument.data(), nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, interpreter.c_str(), &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(requests[1]);
  ::close(answers[1]);
  if (failed != 0) {
    ::close(requests[0]);
    ::close(answers[0]);
    return runtime::unavailable(key + " needs a Python interpreter, and " + interpreter +
                                " cannot be started (" + std::generic_category().message(failed) +
                                "): install python3, or set STARLING_PYTHON");
  }
  return PythonChild(pid, requests[0], answers[0]);
}

PythonChild::PythonChild(pid_t pid, int requests, int answers)
    : pid_(pid), requests_(::fdopen(requests, "w")), answers_(::fdopen(answers, "r")) {}

PythonChild::PythonChild(PythonChild&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      requests_(std::move(other.requests_)),
      answers_(std::move(other.answers_)),
      line_(std::exchange(other.line_, nullptr)),
      line_size_(std::exchange(other.line_size_, 0)) {}

PythonChild::~PythonChild() {
  requests_.reset();
  answers_.reset();
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  std::free(line_);
}

bool PythonChild::send(std::string_view line) {
  std::string rest(line);
  rest += '\n';
  for (std::string_view left = rest; !left.empty();) {
    const ssize_t sent = ::send(::fileno(requests_.get()), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<std::string_view> PythonChild::line() {
  const ssize_t length = ::getline(&line_, &line_size_, answers_.get());
  if (length <= 0) return std::nullopt;
  return std::string_view(line_, static_cast<std::size_t>(length));
}

}  // namespace rl
