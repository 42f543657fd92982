// The cost of objects against plain memory: puts and gets through a node's store, against memcpy in
// the same run.
//   bench_object [--json] [--seconds S]
// The node runs in another process. `get` reads what that third process has put, so that nothing
// was mapped or touched here before.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "bench/support/figures.h"
#include "bench/support/options.h"
#include "bench/support/take.h"
#include "bench/support/timing.h"
#include "runtime/store/object_client.h"
#include "runtime/store/object_store.h"
#include "runtime/transport/listener.h"

namespace {

using namespace runtime;
using namespace bench;

constexpr std::size_t kLargeBytes = 100'000'000;
constexpr std::size_t kViewBytes = 256 << 20;

Credentials credentials_of(Role role) {
  Credentials credentials;
  credentials.token = "bench";
  credentials.role = role;
  return credentials;
}

/// The node: a store behind a Unix socket, until it is killed.
void serve(const std::string& path, int ready) {
  EventLoop loop;
  ObjectStoreOptions options;
  options.credentials = credentials_of(Role::kNode);
  options.credentials.node = NodeId::random();
  auto store = take(ObjectStore::create(loop, options));
  ListenerCallbacks callbacks;
  callbacks.on_channel = [&](std::shared_ptr<Channel> channel) {
    channel->set_handler([&](const std::shared_ptr<Channel>& from, Message message) {
      store->handle(from, message);
    });
    channel->set_on_close([&store, channel](Status) { store->detach(*channel); });
  };
  auto listener = take(Listener::listen(loop, *Endpoint::unix_socket(path), options.credentials,
                                        std::move(callbacks)));
  if (::write(ready, "r", 1) != 1) fail("pipe");
  Event never(loop);
  loop.run_until(never, Deadline::max());
}

struct Process {
  explicit Process(const std::string& path)
      : channel(take(connect(loop, *Endpoint::unix_socket(path), credentials_of(Role::kDriver)))),
        objects(channel) {}
  ~Process() { channel->close(cancelled("done")); }
  EventLoop loop;
  std::shared_ptr<Channel> channel;
  ObjectClient objects;
};

/// Puts one object and keeps it: its location goes through the pipe.
void hold_object(const std::string& path, int out) {
  Process process(path);
  auto object = take(process.objects.create(kViewBytes));
  std::memset(object.data().data(), 7, kViewBytes);
  ObjectLocation location = process.objects.seal(std::move(object));
  std::uint64_t numbers[] = {location.extent, location.offset, location.size};
  if (::write(out, location.id.bytes.data(), 16) != 16 ||
      ::write(out, location.node.bytes.data(), 16) != 16 ||
      ::write(out, numbers, sizeof numbers) != sizeof numbers) {
    fail("pipe");
  }
  ::pause();
}

double private_mib() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (file && std::fgets(line, sizeof line, file)) std::sscanf(line, "RssAnon: %ld", &kib);
  if (file) std::fclose(file);
  return static_cast<double>(kib) / 1024;
}

struct Options {
  bool json = false;
  double seconds = 1.0;
};

/// Runs `body` in a child that ends with this process.
template <class Body>
pid_t fork_child(Body&& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  ::_exit(0);
}

/// Where the holder's object is, as the holder says.
ObjectLocation read_location(int in) {
  ObjectLocation location;
  std::uint64_t numbers[3];
  if (::read(in, location.id.bytes.data(), 16) != 16 ||
      ::read(in, location.node.bytes.data(), 16) != 16 ||
      ::read(in, numbers, sizeof numbers) != sizeof numbers) {
    fail("the holder did not start");
  }
  location.extent = numbers[0];
  location.offset = numbers[1];
  location.size = numbers[2];
  return location;
}

struct Figures {
  double put_small = 0, put_large = 0, copy = 0;  // seconds each
  double view_ms = 0, grown = 0;
};

void measure_puts(const std::string& path, double seconds, Figures& figures) {
  Process process(path);
  std::vector<std::byte> data(kLargeBytes, std::byte{3}), target(kLargeBytes, std::byte{1});
  figures.copy =
      time_per_call(seconds, 1, [&] { std::memcpy(target.data(), data.data(), kLargeBytes); });
  figures.put_large =
      time_per_call(seconds, 1, [&] { process.objects.free(take(process.objects.put(data))); });
  std::uint64_t value = 0;
  figures.put_small = time_per_call(seconds, 1000, [&] {
    ++value;
    process.objects.free(take(process.objects.put(std::as_bytes(std::span(&value, 1)))));
  });
}

void measure_view(const std::string& path, const ObjectLocation& far, Figures& figures) {
  Process process(path);
  take(process.objects.put({}));  // opens the segment
  double before = private_mib();
  auto start = Clock::now();
  BytesView view = take(process.objects.get(far, deadline_after(std::chrono::seconds(30))));
  figures.view_ms = seconds_since(start) * 1e3;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < view.size(); i += 64)
    sum += static_cast<std::uint64_t>(view.bytes()[i]);
  if (sum != kViewBytes / 64 * 7) fail("the object's bytes are wrong");
  figures.grown = private_mib() - before;
}

void print(const Figures& measured, bool json) {
  const nlohmann::ordered_json figures = {
      {"put_small_per_s", 1 / measured.put_small},
      {"put_100mb_gbps", kLargeBytes / measured.put_large / 1e9},
      {"memcpy_gbps", kLargeBytes / measured.copy / 1e9},
      {"view_256mib_ms", measured.view_ms},
      {"get_rss_growth_mib", measured.grown},
  };
  print_figures(figures, json);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  read_options(argc, argv, {{"--json", &options.json}, {"--seconds", &options.seconds}});
  char folder[] = "/tmp/starling-bench-XXXXXX";
  if (::mkdtemp(folder) == nullptr) fail("mkdtemp");
  const std::string path = std::string(folder) + "/s";
  int ready[2], located[2];
  if (::pipe(ready) != 0 || ::pipe(located) != 0) fail("pipe");
  const pid_t node = fork_child([&] { serve(path, ready[1]); });
  char byte;
  if (::read(ready[0], &byte, 1) != 1) fail("the node did not start");
  const pid_t holder = fork_child([&] { hold_object(path, located[1]); });
  const ObjectLocation far = read_location(located[0]);
  Figures figures;
  measure_puts(path, options.seconds, figures);
  measure_view(path, far, figures);
  ::kill(holder, SIGKILL);
  ::kill(node, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  ::waitpid(node, nullptr, 0);
  ::unlink(path.c_str());
  ::rmdir(folder);
  print(figures, options.json);
}
