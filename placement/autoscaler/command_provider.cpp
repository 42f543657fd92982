#include "placement/autoscaler/command_provider.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/core/json.h"

namespace placement {

namespace {

using Json = nlohmann::json;
using runtime::Status;

constexpr std::size_t kIdsMax = 10'000;
constexpr std::size_t kIdBytesMax = 200;

/// For `eval "set -- $STARLING_START"` of a shell.
std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += text.empty() ? "'" : " '";
    for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

/// The folders of PATH, as execvp() takes them.
std::vector<std::string> path_folders() {
  const char* variable = std::getenv("PATH");
  const std::string path = variable ? variable : "/bin:/usr/bin";
  std::vector<std::string> folders;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    folders.push_back(end == at ? "." : path.substr(at, end - at));
    at = end + 1;
  }
  return folders;
}

/// A script's interpreter is looked for by the kernel, whose "no such file" would seem to be about
/// the script.
Status check_interpreter(const std::string& program) {
  std::ifstream file(program);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("#!")) return {};
  const std::size_t begin = line.find_first_not_of(" \t", 2);
  const std::string interpreter =
      begin == std::string::npos ? ""
                                 : line.substr(begin, line.find_first_of(" \t", begin) - begin);
  if (interpreter.ends_with('\r'))
    return runtime::invalid_argument(
        "its first line ends with a carriage return, as on Windows; write its lines with \\n "
        "alone");
  if (::access(interpreter.c_str(), X_OK) == 0) return {};
  return runtime::invalid_argument("its first line names '" + interpreter + "', which " +
                                   (errno == ENOENT ? "does not exist" : "cannot be run"));
}

Status check_program(const std::string& program) {
  struct stat info {};
  if (::stat(program.c_str(), &info) != 0)
    return runtime::invalid_argument(errno == ENOENT ? "it does not exist" : std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return runtime::invalid_argument("it is not a file");
  if (::access(program.c_str(), X_OK) != 0)
    return runtime::invalid_argument("it may not be run; `chmod +x " + program + "` allows that");
  return check_interpreter(program);
}

bool is_node_id(const Json& id) {
  if (!id.is_string()) return false;
  const auto& text = id.get_ref<const std::string&>();
  return !text.empty() && text.size() <= kIdBytesMax &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c); });
}

Status failure(const CommandOutcome& outcome, const std::string& operation) {
  if (outcome.status.ok() && outcome.exit_code == 0) return {};
  std::string text = outcome.status.ok() ? "the provider's command exited with code " +
                                               std::to_string(outcome.exit_code)
                                         : outcome.status.message();
  text = operation + ": " + text +
         (outcome.error_tail.empty() ? "" : "; it said: " + outcome.error_tail);
  if (!outcome.status.ok())
    return Status(outcome.status.code() == runtime::ErrorCode::kResourceExhausted
                      ? runtime::ErrorCode::kTaskFailed
                      : outcome.status.code(),
                  text);
  return runtime::task_failed(text);
}

}  // namespace

CommandProvider::CommandProvider(runtime::EventLoop& loop, ProviderOptions options, NodeStart start)
    : loop_(loop), options_(std::move(options)), start_(std::move(start)) {}

runtime::ProcessSpec CommandProvider::spec_of(const std::string& operation) const {
  runtime::ProcessSpec spec;
  spec.program = options_.command.front();
  spec.argv = options_.command;
  spec.argv.push_back(operation);
  spec.env = {"STARLING_ADDRESS=" + start_.address, "STARLING_CLUSTER=" + start_.cluster,
              "STARLING_TOKEN_FILE=" + start_.token_file, "STARLING_PROGRAM=" + start_.program};
  return spec;
}

void CommandProvider::add(const NodeRequest& request, Done done) {
  runtime::ProcessSpec spec = spec_of("add");
  const std::string capacity(to_string(request.capacity));
  std::vector<std::string> start = start_arguments(start_, request);
  start.push_back("--block");
  const Json input{{"id", request.id},          {"type", request.type.name},
                   {"capacity", capacity},      {"resources", request.type.resources.to_map()},
                   {"labels", request.labels},  {"address", start_.address},
                   {"cluster", start_.cluster}, {"start", start}};
  spec.input = input.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  spec.env.insert(spec.env.end(),
                  {"STARLING_NODE_ID=" + request.id, "STARLING_NODE_TYPE=" + request.type.name,
                   "STARLING_CAPACITY=" + capacity, "STARLING_START=" + quoted(start)});
  run(std::move(spec), [id = request.id, done = std::move(done)](const CommandOutcome& outcome) {
    const Status status = failure(outcome, "add " + id);
    const bool is_short = outcome.status.ok() && outcome.exit_code == kExitNoCapacity;
    done(is_short ? runtime::resource_exhausted(status.message() + " (no capacity)") : status);
  });
}

void CommandProvider::remove(const std::string& id, Done done) {
  runtime::ProcessSpec spec = spec_of("remove");
  spec.input = Json{{"id", id}, {"cluster", start_.cluster}}.dump(-1, ' ', false,
                                                                  Json::error_handler_t::replace) +
               "\n";
  spec.env.push_back("STARLING_NODE_ID=" + id);
  run(std::move(spec), [id, done = std::move(done)](const CommandOutcome& outcome) {
    done(failure(outcome, "remove " + id));
  });
}

void CommandProvider::list(Listed done) {
  run(spec_of("list"), [done = std::move(done)](const CommandOutcome& outcome) {
    if (outcome.status.ok() && outcome.exit_code == kExitUnsupported)
      return done(runtime::unimplemented("the provider's command does not list nodes"));
    if (Status status = failure(outcome, "list"); !status.ok()) return done(status);
    done(parse_node_list(outcome.output));
  });
}

std::string CommandProvider::removal_by_hand(const std::string& id) const {
  std::vector<std::string> words = options_.command;
  words.push_back("remove");
  // Listed by the provider, it may be anything.
  const bool is_word = std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  return "STARLING_NODE_ID=" + (is_word ? id : quoted({id})) +
         " STARLING_CLUSTER=" + start_.cluster + " " + quoted(words);
}

void CommandProvider::abandon() {
  waiting_.clear();
  runs_.clear();
}

void CommandProvider::run(runtime::ProcessSpec spec, std::function<void(CommandOutcome)> done) {
  waiting_.push_back({std::move(spec), std::move(done)});
  start_next();
}

void CommandProvider::start_next() {
  while (!waiting_.empty() && runs_.size() < options_.parallel) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const std::uint64_t number = next_++;
    auto ended = [this, number, done = std::move(next.done)](const CommandOutcome& outcome) {
      const auto run = runs_.extract(number);  // it may go with its handler
      start_next();
      done(outcome);
    };
    runs_[number] = std::make_unique<CommandRun>(loop_, std::move(next.spec), options_.timeout,
                                                 std::move(ended));
  }
}

Status check_command(const ProviderOptions& options) {
  if (options.kind != ProviderOptions::Kind::kCommand) return {};
  const std::string& program = options.command.front();
  const std::string name = "provider.command: '" + program + "'";
  if (program.find('/') != std::string::npos) return check_program(program).with_context(name);
  std::string folders;
  for (const std::string& folder : path_folders()) {
    folders += (folders.empty() ? "" : ", ") + folder;
    const std::string candidate = folder + "/" + program;
    // Those that may not be run are passed over.
    if (::access(candidate.c_str(), X_OK) != 0 || !check_program(candidate).ok()) continue;
    return {};
  }
  return runtime::invalid_argument(name + " is in no folder of PATH (" + folders +
                                   "), or may not be run there; a path with a slash is looked for "
                                   "from the configuration's folder");
}

runtime::Result<std::vector<std::string>> parse_node_list(const std::string& output) {
  const auto malformed = [](const std::string& what) {
    return runtime::invalid_argument("list: " + what + "; expected a JSON array of node ids");
  };
  Json json = runtime::parse_json(output);
  if (json.is_object() && json.contains("nodes")) json = Json(json["nodes"]);
  if (!json.is_array()) return malformed("the provider's command has printed something else");
  if (json.size() > kIdsMax) return malformed("more than 10000 nodes");
  std::vector<std::string> ids;
  for (const Json& id : json) {
    if (!is_node_id(id)) return malformed("an entry is no id");
    ids.push_back(id.get<std::string>());
  }
  return ids;
}

}  // namespace placement
