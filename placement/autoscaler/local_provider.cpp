#include "placement/autoscaler/local_provider.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/transport/file_descriptor.h"

namespace placement {

namespace {

using runtime::FileDescriptor;
using runtime::Status;

constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr auto kTermGrace = std::chrono::seconds(5);
constexpr auto kKillGrace = std::chrono::seconds(5);

std::vector<std::string> arguments_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// The id under which a process is a node of the cluster at `address`; empty if it is none.
std::string node_id(const std::vector<std::string>& words, const std::string& address) {
  if (words.size() < 4 || words[1] != "start" || words[2] != "--address" || words[3] != address)
    return "";
  const std::string label = std::string(kAutoscalerIdLabel) + "=";
  for (std::size_t i = 4; i + 1 < words.size(); ++i) {
    if (words[i] == "--label" && words[i + 1].starts_with(label))
      return words[i + 1].substr(label.size());
  }
  return "";
}

/// This user's processes that are nodes of that cluster, with their ids.
std::vector<std::pair<pid_t, std::string>> find_nodes(const std::string& address) {
  std::vector<std::pair<pid_t, std::string>> nodes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    pid_t pid = 0;
    auto [rest, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed != std::errc() || rest != name.data() + name.size()) continue;
    struct stat owner;
    if (::stat(entry->path().c_str(), &owner) != 0 || owner.st_uid != ::geteuid())
      continue;  // any user may give a process any name
    std::string id = node_id(arguments_of(pid), address);
    if (!id.empty()) nodes.emplace_back(pid, std::move(id));
  }
  return nodes;
}

/// Not to another process that has got the number meanwhile.
void signal_node(pid_t pid, const std::string& id, const std::string& address, int number) {
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process || node_id(arguments_of(pid), address) != id) return;
  ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0);
}

}  // namespace

LocalProvider::LocalProvider(runtime::EventLoop& loop, std::chrono::milliseconds start_limit,
                             NodeStart start)
    : loop_(loop), start_limit_(start_limit), start_(std::move(start)), timer_(loop.context()) {}

LocalProvider::~LocalProvider() = default;

void LocalProvider::add(const NodeRequest& request, Done done) {
  const auto nodes = find_nodes(start_.address);
  if (std::any_of(nodes.begin(), nodes.end(),
                  [&](const auto& node) { return node.second == request.id; })) {
    return loop_.post([done = std::move(done)] { done({}); });  // asked for before a crash
  }
  runtime::ProcessSpec spec;
  spec.program = start_.program;
  spec.argv = start_arguments(start_, request);
  spec.argv.insert(spec.argv.begin(), start_.program);
  spec.env = {"STARLING_TOKEN_FILE=" + start_.token_file};
  const std::uint64_t number = next_++;
  runs_[number] = std::make_unique<CommandRun>(
      loop_, std::move(spec), start_limit_,
      [this, number, done = std::move(done)](const CommandOutcome& outcome) {
        const auto run = runs_.extract(number);  // it goes with its handler
        const std::string said = outcome.error_tail.empty() ? "" : ": " + outcome.error_tail;
        if (!outcome.status.ok())
          return done(Status(outcome.status.code(), outcome.status.message() + said));
        if (outcome.exit_code != 0)
          return done(runtime::task_failed("starling start exited with code " +
                                           std::to_string(outcome.exit_code) + said));
        done({});
      });
}

void LocalProvider::remove(const std::string& id, Done done) {
  const runtime::Deadline now = runtime::steady_now();
  removals_.push_back({id, std::move(done), now + kTermGrace, now + kTermGrace + kKillGrace});
  for (const auto& [pid, node] : find_nodes(start_.address)) {
    if (node == id) signal_node(pid, id, start_.address, SIGTERM);
  }
  if (std::exchange(is_armed_, true)) return;
  loop_.post(lifetime_.guard([this] { look_after(); }));
}

void LocalProvider::look_after() {
  const auto nodes = find_nodes(start_.address);
  const runtime::Deadline now = runtime::steady_now();
  std::vector<Removal> going = std::exchange(removals_, {});
  std::vector<std::pair<Done, Status>> over;
  for (Removal& removal : going) {
    bool is_there = false;
    for (const auto& [pid, id] : nodes) {
      if (id != removal.id) continue;
      is_there = true;
      if (now >= removal.kill_at) signal_node(pid, id, start_.address, SIGKILL);
    }
    if (!is_there)
      over.emplace_back(std::move(removal.done), Status());
    else if (now >= removal.give_up_at)
      over.emplace_back(std::move(removal.done),
                        runtime::unavailable("its process does not end, not even by SIGKILL"));
    else
      removals_.push_back(std::move(removal));
  }
  is_armed_ = !removals_.empty();
  if (is_armed_) {
    timer_.expires_after(kPoll);
    timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
      if (!ec) look_after();
    }));
  }
  for (auto& [done, status] : over) done(status);
}

void LocalProvider::list(Listed done) {
  std::set<std::string> ids;
  for (const auto& [pid, id] : find_nodes(start_.address)) ids.insert(id);
  loop_.post([ids = std::vector<std::string>(ids.begin(), ids.end()), done = std::move(done)] {
    done(ids);
  });
}

}  // namespace placement
