#include "runtime/node/worker_process.h"

#include <csignal>
#include <filesystem>
#include <utility>

#include "runtime/core/log.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kCrashLinesMax = 60;  // of stderr, in the error of a crashed actor
constexpr std::size_t kExitLinesMax = 10;   // of one that exited with an error

bool is_crash(int signal) {
  for (int crash : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    if (signal == crash) return true;
  }
  return false;
}

fs::path log_path(const WorkerEnvironment& identity) {
  return fs::path(identity.session_dir) / "logs" / ("worker-" + identity.worker.hex() + ".log");
}

}  // namespace

WorkerProcess::WorkerProcess(WorkerProcessSpec spec, Callbacks callbacks)
    : identity_(std::move(spec.identity)),
      callbacks_(std::move(callbacks)),
      program_in_use_(std::move(spec.program_in_use)),
      log_(log_path(identity_), LogFile::kBytesMax, spec.logs) {}

ProcessSpec WorkerProcess::process_spec(const WorkerProcessSpec& spec) const {
  ProcessSpec process;
  process.program = spec.program;
  process.argv = {spec.name.empty() ? spec.program : spec.name};
  process.env = {"OMP_NUM_THREADS=" + std::to_string(spec.threads),
                 "MKL_NUM_THREADS=" + std::to_string(spec.threads)};
  for (const auto& [name, value] : spec.env) process.env.push_back(name + "=" + value);
  for (std::string& line : worker_variables(identity_)) process.env.push_back(std::move(line));
  std::error_code error;
  process.working_dir =
      fs::is_directory(spec.working_dir, error) ? spec.working_dir : identity_.session_dir;
  return process;
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(EventLoop& loop, WorkerProcessSpec spec,
                                                            Callbacks callbacks) {
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(spec, std::move(callbacks)));
  // The process goes before this object does, and takes its handlers with it.
  ProcessHandlers handlers;
  handlers.on_output = [raw = worker.get()](bool is_stderr, std::string_view bytes) {
    raw->on_output(is_stderr, bytes);
  };
  handlers.on_exit = worker->callbacks_.on_exit;
  auto process = ChildProcess::start(loop, worker->process_spec(spec), std::move(handlers));
  if (!process.ok()) return process.status().with_context("starting a worker");
  worker->process_ = std::move(*process);
  LOG(debug, "worker {} started, pid {}", worker->id().short_hex(), worker->pid());
  return worker;
}

ActorAddress WorkerProcess::address() const {
  ActorAddress address;
  address.worker = identity_.worker;
  address.node = identity_.node;
  address.unix_path = identity_.socket_path();
  address.node_address = identity_.node_address;
  address.pid = pid();
  return address;
}

void WorkerProcess::disconnect(const std::string& why, std::chrono::milliseconds grace) {
  lost_ = why;
  process_->end(grace);
}

void WorkerProcess::end(const std::string& reason, std::chrono::milliseconds grace) {
  if (end_reason_.empty()) end_reason_ = reason;
  process_->end(grace);
}

void WorkerProcess::kill_late() {
  end_reason_ += "; it had not served its calls in time and was killed";
  process_->end(std::chrono::milliseconds(0));
}

void WorkerProcess::on_output(bool is_stderr, std::string_view bytes) {
  log_.append(bytes);
  if (is_stderr) error_tail_.append(bytes);
  send_lines(is_stderr, lines_[is_stderr].feed(bytes));
}

void WorkerProcess::send_lines(bool is_stderr, std::vector<std::string> lines) {
  if (lines.empty()) return;
  LogLines event;
  event.job = identity_.job;
  event.worker = identity_.worker;
  event.node = identity_.node;
  event.class_name = log_name_;
  event.pid = pid();
  event.is_stderr = is_stderr;
  event.lines = std::move(lines);
  callbacks_.on_log(std::move(event));
}

DeathCause WorkerProcess::finish(DeathCause cause) {
  for (bool is_stderr : {false, true}) send_lines(is_stderr, lines_[is_stderr].finish());
  if (is_ending()) {
    cause.text = end_reason_ + " (" + cause.text + ")";
  } else if (is_crash(cause.signal)) {
    cause.output_tail = error_tail_.last_lines(kCrashLinesMax);
  } else if (cause.exit_code > 0) {
    cause.output_tail = error_tail_.last_lines(kExitLinesMax);
  }
  if (cause.signal == SIGTERM && !lost_.empty())
    cause.text += " by its node, which had lost the connection to it: " + lost_;
  if (channel_) channel_->close(unavailable("the worker process " + cause.text));
  std::error_code ignored;
  fs::remove(identity_.socket_path(), ignored);
  return cause;
}

}  // namespace runtime
