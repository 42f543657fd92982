// Placement groups created, ready and removed, on a head and eight nodes that are separate
// processes on this machine.
//   bench_placement [--seconds S] [--nodes N] [--json]
// One at a time, and with 64 under way at once (PlacementGroupApi::create). Each is recorded
// in the head's journal, prepared on its nodes and committed. A figure says what one group costs:
// with one bundle, and with one on each node (STRICT_SPREAD).
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/options.h"
#include "bench/support/take.h"
#include "bench/support/timing.h"
#include "runtime/control/local_cluster.h"
#include "runtime/runtime.h"

namespace {

using namespace bench;
using runtime::GroupSpec;
using runtime::GroupStrategy;
using runtime::Runtime;

constexpr std::size_t kUnderWay = 64;

struct Options {
  double seconds = 2;
  std::size_t nodes = 8;
  bool json = false;
};

/// `starling ARGUMENTS --block`, with its output in a file; ends with this.
class Starling {
 public:
  Starling(std::vector<std::string> arguments, std::string output) : output_(std::move(output)) {
    arguments.insert(arguments.begin(), take(runtime::find_starling_program()).string());
    arguments.insert(arguments.end(), {"--object-store-memory", "67108864", "--block"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!::freopen(output_.c_str(), "w", stdout)) ::_exit(127);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Starling(const Starling&) = delete;
  Starling& operator=(const Starling&) = delete;
  ~Starling() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  /// The last line of its output, once that is an address.
  std::string address() const {
    for (int i = 0; i < 1000; ++i) {
      std::ifstream file(output_);
      std::string last;
      for (std::string line; std::getline(file, line);) last = line;
      if (last.starts_with("127.0.0.1:")) return last;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    fail("starling start did not say its address within 10 s");
  }

 private:
  std::string output_;
  pid_t pid_ = 0;
};

GroupSpec group(GroupStrategy strategy, std::size_t bundles) {
  GroupSpec spec;
  spec.strategy = strategy;
  spec.bundles.assign(bundles, {{"CPU", 0.01}});
  return spec;
}

/// Groups per second, one at a time, and how long each took.
nlohmann::ordered_json sequential(Runtime& rt, const GroupSpec& spec, double seconds) {
  std::vector<float> taken_us;
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    const auto before = Clock::now();
    const runtime::GroupState state = take(rt.groups().create(spec).get());
    if (runtime::Status status = rt.get(rt.groups().remove(state.spec.group)); !status.ok())
      fail(status.to_string());
    taken_us.push_back(static_cast<float>(seconds_since(before) * 1e6));
  }
  return {{"groups_per_s", static_cast<double>(taken_us.size()) / seconds_since(start)},
          {"p50_us", percentile(taken_us, 0.5)},
          {"p99_us", percentile(taken_us, 0.99)}};
}

/// The same with many under way: each is removed as soon as it is there.
nlohmann::ordered_json pipelined(Runtime& rt, const GroupSpec& spec, double seconds) {
  std::deque<runtime::PendingGroup> pending;
  std::deque<runtime::ObjectRef<void>> removals;
  std::size_t count = 0;
  const auto finish_one = [&] {
    const runtime::GroupState state = take(pending.front().get());
    pending.pop_front();
    removals.push_back(rt.groups().remove(state.spec.group));
    if (removals.size() < kUnderWay) return;
    if (runtime::Status status = rt.get(removals.front()); !status.ok()) fail(status.to_string());
    removals.pop_front();
    ++count;
  };
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    pending.push_back(rt.groups().create(spec));
    if (pending.size() >= kUnderWay) finish_one();
  }
  while (!pending.empty()) finish_one();
  for (; !removals.empty(); removals.pop_front(), ++count) {
    if (runtime::Status status = rt.get(removals.front()); !status.ok()) fail(status.to_string());
  }
  return {{"groups_per_s", static_cast<double>(count) / seconds_since(start)},
          {"under_way", kUnderWay}};
}

runtime::Status measure(Runtime& rt, const Options& options) {
  nlohmann::ordered_json figures{{"nodes", options.nodes}};
  for (int round = 0; round < 20; ++round)
    (void)sequential(rt, group(GroupStrategy::kPack, 1), 0.01);  // connections, caches
  const GroupSpec one = group(GroupStrategy::kPack, 1),
                  each = group(GroupStrategy::kStrictSpread, options.nodes);
  figures["one_bundle"] = {{"sequential", sequential(rt, one, options.seconds)},
                           {"pipelined", pipelined(rt, one, options.seconds)}};
  figures["a_bundle_on_each_node"] = {{"sequential", sequential(rt, each, options.seconds)},
                                      {"pipelined", pipelined(rt, each, options.seconds)}};
  figures["machine"] = machine();
  figures["commit"] = commit();
  if (options.json) {
    std::printf("%s\n", figures.dump().c_str());
    return {};
  }
  for (const char* shape : {"one_bundle", "a_bundle_on_each_node"}) {
    std::printf(
        "%-22s  one at a time %7.0f groups/s (p50 %.0f us, p99 %.0f us)   %zu under way %7.0f "
        "groups/s\n",
        shape, figures[shape]["sequential"]["groups_per_s"].get<double>(),
        figures[shape]["sequential"]["p50_us"].get<double>(),
        figures[shape]["sequential"]["p99_us"].get<double>(), kUnderWay,
        figures[shape]["pipelined"]["groups_per_s"].get<double>());
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  read_options(
      argc, argv,
      {{"--json", &options.json}, {"--seconds", &options.seconds}, {"--nodes", &options.nodes}});
  if (options.nodes < 1 || options.seconds <= 0) fail("expected at least one node, and some time");
  const std::string folder = "/tmp/starling-bench-" + std::to_string(::getpid()) + "p";
  std::filesystem::create_directories(folder);
  ::unsetenv("STARLING_ADDRESS");
  ::setenv("STARLING_SESSION_ROOT", (folder + "/s").c_str(), 1);
  int code = 1;
  {
    // The head's node is one of them.
    std::vector<std::unique_ptr<Starling>> nodes;
    nodes.push_back(std::make_unique<Starling>(
        std::vector<std::string>{"start", "--head", "--port", "0", "--num-cpus", "8", "--journal",
                                 folder + "/journal"},
        folder + "/head"));
    const std::string head = nodes.front()->address();
    for (std::size_t i = 1; i < options.nodes; ++i) {
      nodes.push_back(std::make_unique<Starling>(
          std::vector<std::string>{"start", "--address", head, "--num-cpus", "8"},
          folder + "/node" + std::to_string(i)));
      (void)nodes.back()->address();
    }
    runtime::RuntimeOptions runtime_options;
    runtime_options.address = head;
    char* none[] = {argv[0], nullptr};
    Runtime rt(1, none, runtime_options);
    code = rt.run([&](Runtime& driver) { return measure(driver, options); });
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
