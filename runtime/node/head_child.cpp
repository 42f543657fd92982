#include "runtime/node/head_child.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/process/session.h"

namespace runtime {

namespace {
constexpr std::size_t kErrorLines = 3;
constexpr std::chrono::milliseconds kEndGrace{2000};
// One that has lived for this long did not die of how it was started.
constexpr std::chrono::seconds kHeadCalm{10};

/// A file that only descriptors name, with the token in it.
Result<FileDescriptor> token_in_memory(const std::string& token) {
  FileDescriptor file(::memfd_create("token", MFD_CLOEXEC));
  if (!file || ::fchmod(file.get(), 0600) != 0)
    return errno_status(errno, "memory for the cluster's token");
  if (::write(file.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size()))
    return errno_status(errno, "memory for the cluster's token");
  return file;
}

}  // namespace

HeadChild::HeadChild(EventLoop& loop, HeadChildOptions options, std::function<void(Status)> failed)
    : loop_(loop),
      options_(std::move(options)),
      program_(options_.program),
      failed_(std::move(failed)),
      timer_(loop.context()) {}

HeadChild::~HeadChild() = default;

Status HeadChild::start() {
  if (!log_)
    log_ = std::make_unique<LogFile>(options_.session_dir / "logs" / "head.log", LogFile::kBytesMax,
                                     options_.logs);
  ProcessSpec spec;
  spec.program = program_.to_execute();
  spec.argv = {options_.program, "head",
               "--cluster",      options_.cluster.hex(),
               "--node",         options_.node.hex(),
               "--socket",       options_.socket.string(),
               "--journal",      options_.journal.string()};
  if (options_.durable) spec.argv.push_back("--durable");
  // One that began with an empty journal would end all that this cluster runs.
  if (confirmed_) spec.argv.push_back("--again");
  auto token = token_in_memory(options_.token.present());
  if (!token.ok()) return token.status();
  token_ = *std::move(token);
  // Not in the environment, which the kernel shows to all who may see this user's processes.
  spec.env = token_variables("/proc/" + std::to_string(::getpid()) + "/fd/" +
                             std::to_string(token_.get()));
  spec.working_dir = options_.session_dir.string();
  error_tail_ = {};
  ProcessHandlers handlers;
  handlers.on_output = [this](bool is_stderr, std::string_view bytes) {
    log_->append(bytes);
    if (is_stderr) error_tail_.append(bytes);
  };
  handlers.on_exit = [this](const DeathCause& cause) { on_exit(cause); };
  auto process = ChildProcess::start(loop_, spec, std::move(handlers));
  if (!process.ok()) return process.status().with_context("starting the head");
  process_ = std::move(*process);
  running_ = true;
  started_ = steady_now();
  return {};
}

void HeadChild::end(std::function<void()> done) {
  timer_.cancel();
  const bool ends_already = std::exchange(ending_, true);
  if (!running_) return done();
  on_ended_.push_back(std::move(done));
  if (!ends_already) process_->end(kEndGrace);
}

void HeadChild::on_exit(const DeathCause& cause) {
  running_ = false;
  if (ending_) {
    for (const auto& done : std::exchange(on_ended_, {})) done();
    return;
  }
  trouble_ = {};
  if (cause.exit_code == kExitUnusable) {
    const Status why = unavailable("the head cannot start: " + error_tail_.last_lines(kErrorLines));
    if (!confirmed_) return failed_(why);
    trouble_ = why;
  }
  delay_ = steady_now() - started_ >= kHeadCalm
               ? options_.restart_delay_first
               : std::clamp(2 * delay_, options_.restart_delay_first, options_.restart_delay_max);
  LOG(warn, "the head {}; it is started again in {} ms", cause.text, delay_.count());
  start_later();
}

void HeadChild::start_later() {
  timer_.expires_after(delay_);
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec || ending_) return;
    const Status started = start();
    if (started.ok()) return;  // whether it works shows later
    const Status before = std::exchange(trouble_, started);
    if (!confirmed_) return failed_(trouble_);
    if (trouble_ != before) LOG(warn, "{}; it is tried again", trouble_.message());
    delay_ = std::clamp(2 * delay_, options_.restart_delay_first, options_.restart_delay_max);
    start_later();
  }));
}

}  // namespace runtime
