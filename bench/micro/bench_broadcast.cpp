// One object to many nodes at once: how much its own node sends, and how long it takes.
//   bench_broadcast [--json]
// Every node is a separate process on this machine. So the time is that of all these copies through
// one memory, and what the source sends is what counts.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
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

constexpr std::size_t kFloats = (std::size_t{256} << 20) / sizeof(float);
constexpr std::size_t kMebibyte = 1 << 20;
const std::string kStoreBytes = std::to_string(std::size_t{600} << 20);

struct Reader {
  float last(runtime::ArrayView<float> values) { return values[values.size() - 1]; }
};

/// A node next to the driver's; ends with this.
class NodeProcess {
 public:
  explicit NodeProcess(const std::string& head) {
    const std::string program = take(runtime::find_starling_program()).string();
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execl(program.c_str(), program.c_str(), "start", "--address", head.c_str(), "--num-cpus", "1",
            "--object-store-memory", kStoreBytes.c_str(), "--block", nullptr);
    ::_exit(127);
  }
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;
  ~NodeProcess() {
    ::kill(pid_, SIGKILL);  // SIGTERM would drain it, for half a minute
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

std::vector<runtime::NodeInfo> nodes_of(runtime::Runtime& rt) {
  return take(rt.cluster().state()).nodes;
}

std::uint64_t sent_by(runtime::Runtime& rt, runtime::NodeId node) {
  for (const runtime::StoreInfo& store : take(rt.objects().list()).stores) {
    if (store.node == node) return store.sent_bytes;
  }
  return 0;
}

/// Sends a fresh object to that many nodes; a pair of MiB that its own node sent, and seconds.
std::pair<double, double> broadcast(runtime::Runtime& rt,
                                    const std::vector<runtime::ActorHandle<Reader>>& readers,
                                    std::size_t count) {
  auto ref = take(rt.put(std::vector<float>(kFloats, 2.0F)));
  const std::uint64_t before = sent_by(rt, rt.cluster().node_id());
  const auto start = Clock::now();
  std::vector<runtime::ObjectRef<float>> reads;
  for (std::size_t i = 0; i < count; ++i) reads.push_back(readers[i].call(&Reader::last, ref));
  for (const auto& read : reads) {
    if (take(rt.get(read, std::chrono::minutes(2))) != 2.0F) std::_Exit(1);
  }
  const double seconds = seconds_since(start);
  return {static_cast<double>(sent_by(rt, rt.cluster().node_id()) - before) / kMebibyte, seconds};
}

int measure(runtime::Runtime& rt, bool as_json) {
  constexpr std::size_t kNodesMax = 8;
  std::vector<std::unique_ptr<NodeProcess>> nodes;
  const std::string head = nodes_of(rt).front().address;
  for (std::size_t i = 0; i < kNodesMax; ++i) nodes.push_back(std::make_unique<NodeProcess>(head));
  while (nodes_of(rt).size() < 1 + kNodesMax)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::vector<runtime::ActorHandle<Reader>> readers;
  for (const runtime::NodeInfo& node : nodes_of(rt)) {
    if (node.node == rt.cluster().node_id()) continue;
    runtime::ActorOptions options{.node = node.node};
    options.call_timeout = std::chrono::minutes(2);
    readers.push_back(take(rt.spawn<Reader>(options)));
  }
  nlohmann::ordered_json figures = {{"machine", machine()}, {"commit", commit()}};
  for (std::size_t count : {1, 2, 4, 8}) {
    auto [sent, seconds] = broadcast(rt, readers, count);
    figures["broadcast_source_mib_" + std::to_string(count)] = sent;
    figures["broadcast_s_" + std::to_string(count)] = seconds;
    if (!as_json)
      std::printf("256 MiB to %zu nodes: the source sent %.0f MiB, in %.2f s\n", count, sent,
                  seconds);
  }
  if (as_json) std::printf("%s\n", figures.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  runtime::RuntimeOptions options;
  options.start_arguments = {"--num-cpus", "1", "--object-store-memory", kStoreBytes};
  const std::string sessions = "/tmp/starling-bench-" + std::to_string(::getpid()) + "b";
  runtime::Runtime rt(argc, argv, options);
  rt.register_actor<Reader>("Reader", &Reader::last);
  if (!rt.is_worker()) {
    ::unsetenv("STARLING_ADDRESS");  // its own cluster, in its own folder
    ::setenv("STARLING_SESSION_ROOT", sessions.c_str(), 1);
  }
  bool as_json = false;
  if (!rt.is_worker()) bench::read_options(argc, argv, {{"--json", &as_json}});
  const int code = rt.run([&](runtime::Runtime& driver) { return measure(driver, as_json); });
  std::error_code ignored;
  if (code == 0 && !rt.is_worker()) std::filesystem::remove_all(sessions, ignored);
  return code;
}
