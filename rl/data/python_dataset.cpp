#include "rl/data/python_dataset.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/core/environment.h"

extern char** environ;

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Status;

// Rows go to descriptor 3, one a line; the last line is {"end": true}, or {"error": ...}.
constexpr const char* kProgram = R"python(
import importlib.util, inspect, json, os, sys, traceback

out = os.fdopen(3, "w", encoding="utf-8", newline="\n")
os.dup2(2, 1)
sys.dont_write_bytecode = True


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


def tokenizer_of(model):
    try:
        from transformers import AutoTokenizer
        return AutoTokenizer.from_pretrained(model)
    except Exception:
        return None


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


def row_of(item, number):
    if not isinstance(item, dict):
        raise TypeError(f"row {number} is a {type(item).__name__}, not a dict")
    row = {key: plain(value) for key, value in item.items()}
    row = {key: value for key, value in row.items() if value is not None}
    if "raw_prompt" in row:
        row["prompt"] = row.pop("raw_prompt")
    return row


def main():
    setup = json.loads(sys.argv[1])
    path = setup["path"]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("custom_module", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["custom_module"] = module
    spec.loader.exec_module(module)
    made = getattr(module, setup["name"], None)
    if not inspect.isclass(made):
        classes = [name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == "custom_module"]
        raise LookupError(f"{path} has no class '{setup['name']}'" + (f"; it has {', '.join(classes)}" if classes else ""))
    given = {"data_files": setup["files"], "tokenizer": tokenizer_of(setup["model"]), "processor": None, "config": config_of(setup["config"]), "max_samples": setup["max_samples"]}
    taken = inspect.signature(made).parameters
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in taken.values()):
        given = {name: value for name, value in given.items() if name in taken}
    rows = made(**given)
    items = (rows[i] for i in range(len(rows))) if hasattr(rows, "__getitem__") and hasattr(rows, "__len__") else iter(rows)
    for number, item in enumerate(items, 1):
        if 0 <= setup["max_samples"] < number:
            break
        out.write(json.dumps(row_of(item, number)) + "\n")
    out.write('{"end": true}\n')


try:
    main()
except BaseException as error:
    told = str(error) if isinstance(error, (LookupError, TypeError)) and error.__traceback__.tb_next.tb_next is None else "".join(traceback.format_exception(*sys.exc_info()))[-4000:]
    out.write(json.dumps({"error": told}) + "\n")
out.flush()
)python";

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

struct FreeLine {
  char* text = nullptr;
  std::size_t size = 0;
  ~FreeLine() { std::free(text); }
};

// The child, which is waited for in any case.
class Child {
 public:
  static runtime::Result<Child> start(const std::string& interpreter, const std::string& setup) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return runtime::errno_status(errno, "a pipe to " + interpreter);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    std::string program = interpreter, option = "-c", code = kProgram, argument = setup;
    char* argv[] = {program.data(), option.data(), code.data(), argument.data(), nullptr};
    pid_t pid = -1;
    const int failed = ::posix_spawnp(&pid, interpreter.c_str(), &actions, nullptr, argv, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed != 0) {
      ::close(ends[0]);
      return runtime::unavailable("data.custom_cls.path needs a Python interpreter, and " + interpreter + " cannot be started (" + std::generic_category().message(failed) + "): install python3, or set STARLING_PYTHON");
    }
    return Child(pid, ends[0]);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), rows_(std::move(other.rows_)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    rows_.reset();  // a child that still writes ends by it
    int status = 0;
    while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
  }

  /// The next line; nothing at the end.
  std::optional<std::string_view> line() {
    const ssize_t length = ::getline(&line_.text, &line_.size, rows_.get());
    if (length <= 0) return std::nullopt;
    return std::string_view(line_.text, static_cast<std::size_t>(length));
  }

 private:
  Child(pid_t pid, int rows) : pid_(pid), rows_(::fdopen(rows, "r")) {}

  pid_t pid_;
  std::unique_ptr<std::FILE, CloseFile> rows_;
  FreeLine line_;
};

}  // namespace

Status read_python_rows(const PythonDataset& dataset, const std::vector<std::string>& files, std::int64_t rows_max, const std::function<Status(RawRow)>& take) {
  constexpr const char* kKey = "data.custom_cls";
  std::error_code error;
  if (!std::filesystem::is_regular_file(dataset.path, error)) return runtime::not_found(std::string(kKey) + ".path: there is no file " + dataset.path);
  const std::string who = dataset.path + ": " + dataset.name;
  const char* named = runtime::environment_variable("STARLING_PYTHON");
  const ordered_json setup{{"path", dataset.path}, {"name", dataset.name}, {"model", dataset.model}, {"files", files}, {"config", dataset.config}, {"max_samples", rows_max}};
  runtime::Result<Child> child = Child::start(named != nullptr && *named != 0 ? named : "python3", setup.dump());
  if (!child.ok()) return child.status();
  for (std::int64_t number = 1;; ++number) {
    const std::optional<std::string_view> line = child->line();
    if (!line) return runtime::invalid_argument(who + ": the process that makes the rows ended after " + std::to_string(number - 1) + " of them (data.custom_cls); what it printed is above");
    ordered_json row = ordered_json::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) return runtime::invalid_argument(who + ": row " + std::to_string(number) + " is no JSON object");
    if (row.size() == 1 && row.contains("end")) return {};
    if (row.size() == 1 && row.contains("error") && row["error"].is_string()) return runtime::invalid_argument(who + " (data.custom_cls): " + row["error"].get<std::string>());
    if (const Status taken = take({std::move(row), who + " row " + std::to_string(number)}); !taken.ok()) return taken;
  }
}

}  // namespace rl
