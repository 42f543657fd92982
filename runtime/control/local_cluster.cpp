#include "runtime/control/local_cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>

#include "runtime/core/thread.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/file_util.h"
#include "runtime/process/pipe.h"
#include "runtime/process/session.h"
#include "runtime/process/session_folder.h"
#include "runtime/process/spawn.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kOutputBytesMax = 64 << 10;

/// What the node announces last: a line that is nothing but HOST:PORT.
std::string find_address(const std::string& output) {
  std::istringstream lines(output);
  std::string address;
  for (std::string line; std::getline(lines, line);) {
    bool whole = !line.empty() && line.find(' ') == std::string::npos;
    if (lines.eof()) whole = false;  // the line's end has not come yet
    auto endpoint = whole ? Endpoint::parse(line) : Result<Endpoint>(not_found("no address"));
    if (endpoint.ok() && endpoint->port != 0) address = line;
  }
  return address;
}

}  // namespace

Result<fs::path> find_starling_program() {
  if (const char* named = std::getenv("STARLING_PROGRAM")) return fs::path(named);
  std::error_code error;
  fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> places{here / "starling", here / ".." / "bin" / "starling"};
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    places.push_back(fs::path(folder) / "starling");
  for (const fs::path& place : places) {
    if (::access(place.c_str(), X_OK) == 0 && fs::is_regular_file(place, error)) return place;
  }
  return not_found(
      "no cluster runs, and to start one the program `starling` is needed: it is neither in " +
      here.string() + " nor in PATH");
}

/// The child, and a thread that started it and waits for it. The kernel ends the child when that
/// thread goes, so it stays till the end.
struct LocalCluster::Child {
  std::vector<std::string> argv;
  fs::path root;
  FileLock root_lock;     // while this process lives, no other takes the root for left behind
  FileDescriptor output;  // the child's stdout, to read

  std::mutex mutex;
  std::condition_variable changed;
  SpawnedProcess process;         // until it has ended
  std::optional<Status> started;  // how that went, once it is known
  Thread keeper;

  ~Child() {
    {
      std::unique_lock lock(mutex);
      process.signal(SIGTERM);
      if (!changed.wait_for(lock, std::chrono::seconds(10), [&] { return !process; }))
        process.signal(SIGKILL);
    }
    if (keeper.joinable()) keeper.join();
  }

  Status start() {
    Result<Pipe> pipe = make_pipe();
    if (!pipe.ok()) return pipe.status();
    output = std::move(pipe->read);
    auto write_end = std::make_shared<FileDescriptor>(std::move(pipe->write));
    auto thread = Thread::start_real([this, write_end] { keep(std::move(*write_end)); });
    if (!thread.ok()) return thread.status();
    keeper = *std::move(thread);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return started.has_value(); });
    return *started;
  }

  /// This process's environment, without what it was to join, or where.
  std::vector<std::string> environment() const {
    std::vector<std::string> variables;
    for (char** entry = environ; *entry; ++entry) {
      std::string_view variable(*entry);
      if (!variable.starts_with("STARLING_SESSION_ROOT=") &&
          !variable.starts_with("STARLING_ADDRESS="))
        variables.emplace_back(variable);
    }
    variables.push_back("STARLING_SESSION_ROOT=" + root.string());
    return variables;
  }

  void keep(FileDescriptor write_end) {
    const FileDescriptor log(
        ::open((root / "start.log").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    SpawnSpec spec;
    std::error_code unknown;
    const fs::path program = fs::absolute(argv[0], unknown);  // never one of PATH
    spec.program = unknown ? argv[0] : program.string();
    spec.argv = argv;
    spec.environment = environment();
    spec.setup.group = ProcessGroup::kOwn;  // Ctrl-C is the driver's to handle
    spec.setup.death_signal = SIGTERM;
    spec.setup.signal_mask = no_signals();
    spec.setup.descriptors = {{write_end.get(), STDOUT_FILENO}};
    if (log) spec.setup.descriptors.push_back({log.get(), STDERR_FILENO});
    Result<SpawnedProcess> child = spawn_process(spec);
    write_end.reset();
    {
      std::lock_guard lock(mutex);
      started = child.status();
      if (child.ok()) process = *std::move(child);
      changed.notify_all();
    }
    if (!started->ok()) return;
    process.await_end();
    std::lock_guard lock(mutex);
    process.reap();
    changed.notify_all();
  }

  /// Reads until the address has come. Empty: the child ended, or the time is up.
  std::string read_address(Deadline deadline) {
    std::string text;
    for (;;) {
      if (std::string address = find_address(text); !address.empty()) return address;
      auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd waiting{.fd = output.get(), .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || text.size() > kOutputBytesMax) return "";
      if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
      char buffer[4096];
      ssize_t count = ::read(output.get(), buffer, sizeof buffer);
      if (count <= 0) return "";
      text.append(buffer, static_cast<std::size_t>(count));
    }
  }
};

LocalCluster::LocalCluster(std::unique_ptr<Child> child, std::string address, fs::path root)
    : child_(std::move(child)), address_(std::move(address)), root_(std::move(root)) {}

LocalCluster::~LocalCluster() {
  child_.reset();
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

Result<std::unique_ptr<LocalCluster>> LocalCluster::start(const std::vector<std::string>& arguments,
                                                          std::chrono::milliseconds timeout) {
  Result<fs::path> program = find_starling_program();
  if (!program.ok()) return program.status();
  remove_dead_local_roots();
  auto child = std::make_unique<Child>();
  auto root_made = make_local_root(::getpid());
  if (!root_made.ok()) return root_made.status();
  child->root = root_made->path;
  child->root_lock = std::move(root_made->lock);
  child->argv = {program->string(), "start", "--head", "--private", "--port", "0"};
  child->argv.insert(child->argv.end(), arguments.begin(), arguments.end());
  Status why = child->start();
  fs::path root = child->root;
  std::string address;
  if (why.ok()) address = child->read_address(deadline_after(timeout));
  if (why.ok() && address.empty()) {
    auto log = read_file(root / "start.log", kOutputBytesMax);
    std::error_code ignored;
    std::string said = log.ok() ? *log : "";
    if (said.empty())
      said = fs::space(root, ignored).available == 0 ? "no space left in " + root.string()
                                                     : "it wrote nothing";
    why = unavailable("`" + program->string() + " start --head` did not come up: " + said);
  }
  if (!why.ok()) {
    child.reset();
    std::error_code ignored;
    fs::remove_all(root, ignored);
    return why;
  }
  ::setenv("STARLING_SESSION_ROOT", root.c_str(), 1);
  return std::unique_ptr<LocalCluster>(
      new LocalCluster(std::move(child), std::move(address), std::move(root)));
}

}  // namespace runtime
