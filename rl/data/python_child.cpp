#include "rl/data/python_child.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>

#include "rl/data/python_programs.h"
#include "runtime/core/environment.h"
#include "runtime/process/pipe.h"
#include "runtime/process/spawn.h"

namespace rl {

using runtime::Result;

Result<PythonChild> PythonChild::start(const std::string& program,
                                       const nlohmann::ordered_json& setup,
                                       const std::string& key) {
  const char* named = runtime::environment_variable("STARLING_PYTHON");
  std::string interpreter = named != nullptr && *named != 0 ? named : "python3";
  // Requests go over a socket, so that a child that is gone is an error rather than a signal.
  Result<runtime::SocketPair> requests = runtime::make_socket_pair();
  if (!requests.ok()) return requests.status().with_context("starting " + interpreter);
  Result<runtime::Pipe> answers = runtime::make_pipe();
  if (!answers.ok()) return answers.status().with_context("starting " + interpreter);
  runtime::SpawnSpec spec;
  spec.program = interpreter;
  spec.argv = {interpreter, "-c", kPythonPrelude + program,
               setup.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
  spec.setup.descriptors = {{requests->theirs.get(), 0}, {answers->write.get(), 3}};
  Result<runtime::SpawnedProcess> process = runtime::spawn_process(spec);
  if (!process.ok())
    return runtime::unavailable(key + " needs a Python interpreter: " + process.status().message() +
                                "; install python3, or set STARLING_PYTHON");
  return PythonChild(*std::move(process), std::move(requests->ours), std::move(answers->read));
}

PythonChild::PythonChild(runtime::SpawnedProcess process, runtime::FileDescriptor requests,
                         runtime::FileDescriptor answers)
    : process_(std::move(process)),
      requests_(std::move(requests)),
      answers_(::fdopen(answers.release(), "r")) {}

PythonChild::PythonChild(PythonChild&& other) noexcept
    : process_(std::move(other.process_)),
      requests_(std::move(other.requests_)),
      answers_(std::move(other.answers_)),
      line_(std::exchange(other.line_, nullptr)),
      line_size_(std::exchange(other.line_size_, 0)) {}

PythonChild::~PythonChild() {
  requests_.reset();
  answers_.reset();
  if (process_) process_.reap();
  std::free(line_);
}

bool PythonChild::send(std::string_view line) {
  std::string rest(line);
  rest += '\n';
  for (std::string_view left = rest; !left.empty();) {
    const ssize_t sent = ::send(requests_.get(), left.data(), left.size(), MSG_NOSIGNAL);
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
