#include "rl/data/python_child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/core/environment.h"

extern char** environ;

namespace rl {
namespace {

using runtime::Result;

}  // namespace

const char* const kPythonPrelude = R"python(
import importlib, importlib.util, inspect, json, os, sys, traceback

told = os.fdopen(3, "w", encoding="utf-8", newline="\n")
os.dup2(2, 1)
sys.dont_write_bytecode = True


def fall_silent():
    """A copy that the user's code forks, and that may come back here: its parent reads the requests and answers them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 3)
    os.close(nowhere)


os.register_at_fork(after_in_child=fall_silent)


class Section(dict):
    """A section of the configuration, where a class expects OmegaConf's."""
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @classmethod
    def of(cls, value):
        if isinstance(value, dict):
            return cls({key: cls.of(item) for key, item in value.items()})
        return [cls.of(item) for item in value] if isinstance(value, list) else value


def config_of(tree):
    try:
        from omegaconf import OmegaConf
        return OmegaConf.create(tree)
    except ImportError:
        return Section.of(tree)


def plain(value):
    """What JSON has a form for; None for anything else."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if type(value).__module__.startswith("torch"):
        return None
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist())
    return None


def load_class(path, name):
    if path.startswith("pkg://"):
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(path[len("pkg://"):])
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        spec = importlib.util.spec_from_file_location("custom_module", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["custom_module"] = module
        spec.loader.exec_module(module)
    made = getattr(module, name, None)
    if not inspect.isclass(made):
        classes = [name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__]
        raise LookupError(f"{path} has no class '{name}'" + (f"; it has {', '.join(classes)}" if classes else ""))
    return made


def reasons(error):
    """Of what this program raises itself the words alone."""
    frames = traceback.extract_tb(error.__traceback__)
    own = isinstance(error, (LookupError, TypeError)) and all(frame.filename == "<string>" for frame in frames)
    return str(error) if own else "".join(traceback.format_exception(*sys.exc_info()))[-4000:]
)python";

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
