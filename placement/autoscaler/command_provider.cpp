#include "placement/autoscaler/command_provider.h"

#include <nlohmann/json.hpp>
#include <utility>

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

Status failure(const CommandOutcome& outcome, const std::string& operation) {
  if (outcome.status.ok() && outcome.exit_code == 0) return {};
  std::string text = outcome.status.ok() ? "the provider's command exited with code " + std::to_string(outcome.exit_code) : outcome.status.message();
  text = operation + ": " + text + (outcome.error_tail.empty() ? "" : "; it said: " + outcome.error_tail);
  if (!outcome.status.ok()) return Status(outcome.status.code() == runtime::ErrorCode::kResourceExhausted ? runtime::ErrorCode::kTaskFailed : outcome.status.code(), text);
  return runtime::task_failed(text);
}

}  // namespace

CommandProvider::CommandProvider(runtime::EventLoop& loop, ProviderOptions options, NodeStart start) : loop_(loop), options_(std::move(options)), start_(std::move(start)) {}

runtime::ProcessSpec CommandProvider::spec_of(const std::string& operation) const {
  runtime::ProcessSpec spec;
  spec.program = options_.command.front();
  spec.argv = options_.command;
  spec.argv.push_back(operation);
  spec.env = {"STARLING_ADDRESS=" + start_.address, "STARLING_CLUSTER=" + start_.cluster, "STARLING_TOKEN_FILE=" + start_.token_file, "STARLING_PROGRAM=" + start_.program};
  return spec;
}

void CommandProvider::add(const NodeRequest& request, Done done) {
  runtime::ProcessSpec spec = spec_of("add");
  const std::string capacity(to_string(request.capacity));
  std::vector<std::string> start = start_arguments(start_, request);
  start.push_back("--block");
  const Json input{{"id", request.id},
                   {"type", request.type.name},
                   {"capacity", capacity},
                   {"resources", request.type.resources.to_map()},
                   {"labels", request.labels},
                   {"address", start_.address},
                   {"cluster", start_.cluster},
                   {"start", start}};
  spec.input = input.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  spec.env.insert(spec.env.end(), {"STARLING_NODE_ID=" + request.id, "STARLING_NODE_TYPE=" + request.type.name, "STARLING_CAPACITY=" + capacity, "STARLING_START=" + quoted(start)});
  run(std::move(spec), [id = request.id, done = std::move(done)](const CommandOutcome& outcome) {
    const Status status = failure(outcome, "add " + id);
    const bool is_short = outcome.status.ok() && outcome.exit_code == kExitNoCapacity;
    done(is_short ? runtime::resource_exhausted(status.message() + " (no capacity)") : status);
  });
}

void CommandProvider::remove(const std::string& id, Done done) {
  runtime::ProcessSpec spec = spec_of("remove");
  spec.input = Json{{"id", id}, {"cluster", start_.cluster}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  spec.env.push_back("STARLING_NODE_ID=" + id);
  run(std::move(spec), [id, done = std::move(done)](const CommandOutcome& outcome) { done(failure(outcome, "remove " + id)); });
}

void CommandProvider::list(Listed done) {
  run(spec_of("list"), [done = std::move(done)](const CommandOutcome& outcome) {
    if (outcome.status.ok() && outcome.exit_code == kExitUnsupported) return done(runtime::unimplemented("the provider's command does not list nodes"));
    if (Status status = failure(outcome, "list"); !status.ok()) return done(status);
    done(parse_node_list(outcome.output));
  });
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
    runs_[number] = std::make_unique<CommandRun>(loop_, std::move(next.spec), options_.timeout, std::move(ended));
  }
}

runtime::Result<std::vector<std::string>> parse_node_list(const std::string& output) {
  const auto malformed = [](const std::string& what) { return runtime::invalid_argument("list: " + what + "; expected a JSON array of node ids"); };
  Json json = Json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("nodes")) json = Json(json["nodes"]);
  if (!json.is_array()) return malformed("the provider's command has printed something else");
  if (json.size() > kIdsMax) return malformed("more than 10000 nodes");
  std::vector<std::string> ids;
  for (const Json& id : json) {
    if (!id.is_string() || id.get_ref<const std::string&>().empty() || id.get_ref<const std::string&>().size() > kIdBytesMax) return malformed("an entry is no id");
    ids.push_back(id.get<std::string>());
  }
  return ids;
}

}  // namespace placement
