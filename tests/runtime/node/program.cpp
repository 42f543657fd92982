#include "tests/runtime/node/program.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/control/actor_directory.h"
#include "runtime/control/cluster_client.h"
#include "runtime/job/program_files.h"
#include "runtime/process/file_util.h"
#include "runtime/process/session.h"
#include "runtime/store/object_wire.h"
#include "tests/support/eventually.h"

namespace runtime {

namespace {

constexpr auto kTimeout = std::chrono::seconds(10);

/// A drained node leaves once all processes have said that its objects are not needed there:
/// this process refers to none.
void answer_evacuation(const std::shared_ptr<Channel>& node, const Message& message) {
  auto request = message.kind == FrameKind::kObject ? object_wire::decode_request(message.meta)
                                                    : Result<object_wire::Request>(not_found(""));
  if (!request.ok() || !std::holds_alternative<object_wire::Evacuate>(*request)) return;
  (void)node->send(reply_to(message, object_wire::encode_reply(object_wire::Evacuated{0})));
}

void build(const ActorSpec& spec, NodeClient::Done answer) {
  if (spec.class_name == "Throws") return answer(task_failed("Throws: boom"));
  if (spec.class_name == "Chatty") {
    std::string line(1024, 'x');
    line.back() = '\n';
    for (int i = 0; i < 20'000; ++i) std::fwrite(line.data(), 1, line.size(), stdout);
    std::printf("the end\n");
    std::fflush(stdout);
    return answer({});
  }
  if (spec.class_name == "Crashes") {
    std::fprintf(stderr, "backtrace: in Crashes()\n");
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer has its own handler
    ::raise(SIGSEGV);
  }
  if (spec.class_name == "Exits") ::_exit(5);
  if (spec.class_name == "Sleeps") return;
  if (spec.class_name == "Stubborn") ::signal(SIGTERM, SIG_IGN);
  if (spec.class_name == "Where") {
    auto data = read_file("sub/data", 100);
    std::printf("runs in %s: %d entries, %s", std::filesystem::current_path().c_str(),
                static_cast<int>(std::distance(std::filesystem::directory_iterator("."), {})),
                data.ok() ? data->c_str() : "no data\n");
  }
  std::printf("echo built\n");
  std::fflush(stdout);
  const char* threads = std::getenv("OMP_NUM_THREADS");
  const char* extra = std::getenv("EXTRA");
  std::fprintf(stderr, "threads %s extra %s\n", threads ? threads : "-", extra ? extra : "-");
  answer({});
}

}  // namespace

int serve_as_worker() {
  EventLoop loop;
  Event over(loop);
  auto client = NodeClient::connect_worker(loop, deadline_after(kTimeout));
  if (!client.ok()) {
    std::fprintf(stderr, "worker: %s\n", client.status().message().c_str());
    return 1;
  }
  (*client)->set_on_shutdown([&](Status) { over.set(); });
  (*client)->set_on_message([](const std::shared_ptr<Channel>& node, const Message& message) {
    answer_evacuation(node, message);
  });
  (*client)->set_on_create_actor([](ActorSpec spec, std::uint64_t, NodeClient::Done answer) {
    build(spec, std::move(answer));
  });
  loop.run_until(over, Deadline::max());
  loop.stop();
  return 0;
}

Result<std::unique_ptr<TestDriver>> TestDriver::connect(const std::string& address,
                                                        std::uint32_t warm_workers) {
  auto cluster = find_cluster(address);
  if (!cluster.ok()) return cluster.status();
  auto driver = std::make_unique<TestDriver>();
  auto client =
      NodeClient::connect(driver->loop_, *cluster, Role::kDriver, deadline_after(kTimeout));
  if (!client.ok()) return client.status();
  driver->client_ = std::move(*client);
  driver->client_->set_on_message([](const std::shared_ptr<Channel>& node, const Message& message) {
    answer_evacuation(node, message);
  });
  driver->client_->set_on_log([raw = driver.get()](LogLines lines) {
    std::lock_guard lock(raw->mutex_);
    for (const std::string& line : lines.lines) raw->logged_ += lines.prefix() + line + "\n";
  });
  auto info = describe_this_program();
  if (!info.ok()) return info.status();
  info->warm_workers = warm_workers;
  Deadline deadline = deadline_after(kTimeout);
  auto job = wait_for<JobId>(driver->loop_, deadline, [&](auto done) {
    driver->client_->register_driver(*info, deadline, done);
  });
  if (!job.ok()) return job.status();
  return driver;
}

TestDriver::~TestDriver() { client_.reset(); }

Result<ActorAddress> TestDriver::create(ActorSpec spec, std::chrono::milliseconds timeout) {
  Deadline deadline = deadline_after(timeout);
  return wait_for<ActorAddress>(loop_, deadline, [&](auto done) {
    ActorDirectory(*client_).create(std::move(spec), deadline, done);
  });
}

Result<ActorAddress> TestDriver::create(const std::string& class_name, ResourceMap resources,
                                        std::string name) {
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = class_name;
  spec.name = std::move(name);
  spec.resources = std::move(resources);
  return create(std::move(spec));
}

Result<ActorState> TestDriver::state(ActorId actor) {
  Deadline deadline = deadline_after(kTimeout);
  return wait_for<ActorState>(loop_, deadline, [&](auto done) {
    ActorDirectory(*client_).state(actor, 0, deadline, done);
  });
}

Status TestDriver::kill(ActorId actor) {
  Deadline deadline = deadline_after(kTimeout);
  return wait_done(loop_, deadline,
                   [&](auto done) { ActorDirectory(*client_).kill(actor, false, deadline, done); });
}

Result<ClusterState> TestDriver::cluster() {
  Deadline deadline = deadline_after(kTimeout);
  return wait_for<ClusterState>(loop_, deadline,
                                [&](auto done) { ClusterClient(*client_).state(deadline, done); });
}

std::string TestDriver::logged() {
  std::lock_guard lock(mutex_);
  return logged_;
}

/// Actors on all nodes say where they are.
static int show_folders(TestDriver& driver) {
  auto state = driver.cluster();
  if (!state.ok()) return 97;
  for (const NodeInfo& node : state->nodes) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Where";
    spec.node = node.node;
    if (auto made = driver.create(spec); !made.ok()) {
      std::fprintf(stderr, "driver: %s\n", made.status().message().c_str());
      return 96;
    }
  }
  const auto count = [&] {
    const std::string text = driver.logged();
    std::size_t lines = 0;
    for (std::size_t at = text.find("runs in "); at != std::string::npos;
         at = text.find("runs in ", at + 1))
      ++lines;
    return lines;
  };
  (void)support::eventually([&] { return count() >= state->nodes.size(); });
  std::printf("%s", driver.logged().c_str());
  driver.client().driver_done(0);
  return 0;
}

int run_as_driver(int argc, char** argv) {
  auto driver = TestDriver::connect("");
  if (!driver.ok()) {
    std::fprintf(stderr, "driver: %s\n", driver.status().message().c_str());
    return 99;
  }
  auto first = (*driver)->create("Echo");
  auto second = (*driver)->create("Stubborn");
  if (!first.ok() || !second.ok()) {
    std::fprintf(stderr, "driver: %s%s\n", first.status().message().c_str(),
                 second.status().message().c_str());
    return 98;
  }
  std::printf("ready %d %d\n", first->pid, second->pid);
  std::fflush(stdout);
  if (argc > 0 && std::strcmp(argv[0], "folders") == 0) return show_folders(**driver);
  if (argc > 0 && std::strcmp(argv[0], "hold") == 0) {
    while (true) ::pause();
  }
  const int code = argc > 1 ? std::atoi(argv[1]) : 0;
  (*driver)->client().driver_done(code);
  return code;
}

}  // namespace runtime
