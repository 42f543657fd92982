#include "runtime/process/kept_process.h"

#include <algorithm>
#include <utility>

#include "runtime/core/log.h"

namespace runtime {

namespace {
// One that has lived for this long did not die of how it was started.
constexpr std::chrono::seconds kProcessCalm{10};
}  // namespace

KeptProcess::KeptProcess(EventLoop& loop, KeptProcessOptions options)
    : loop_(loop),
      options_(std::move(options)),
      program_(options_.spec.program),
      timer_(loop.context()) {}

KeptProcess::~KeptProcess() = default;

Status KeptProcess::start() {
  if (!log_) log_ = std::make_unique<LogFile>(options_.log, LogFile::kBytesMax, options_.logs);
  ProcessHandlers handlers;
  handlers.on_output = [this](bool, std::string_view bytes) { log_->append(bytes); };
  handlers.on_exit = [this](const DeathCause& cause) { on_exit(cause); };
  started_ = steady_now();  // also of a start that fails: the next one waits for longer
  ProcessSpec spec = options_.spec;
  spec.program = program_.to_execute();
  auto process = ChildProcess::start(loop_, spec, std::move(handlers));
  if (!process.ok()) return process.status().with_context("starting " + options_.name);
  process_ = std::move(*process);
  return {};
}

void KeptProcess::on_exit(const DeathCause& cause) {
  process_.reset();
  if (ending_) {
    if (ended_) std::exchange(ended_, nullptr)();
    return;
  }
  const bool is_calm = started_ + kProcessCalm <= steady_now();
  delay_ = is_calm
               ? options_.restart_delay_first
               : std::clamp(2 * delay_, options_.restart_delay_first, options_.restart_delay_max);
  LOG(warn, "{} {}; it is started again in {} ms, see {}", options_.name, cause.text,
      delay_.count(), options_.log.string());
  timer_.expires_after(delay_);
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec || ending_) return;
    if (Status status = start(); !status.ok()) {
      LOG(warn, "{}", status.message());
      DeathCause again;
      again.text = "could not be started";
      on_exit(again);
    }
  }));
}

void KeptProcess::end(std::chrono::milliseconds grace, std::function<void()> done) {
  ending_ = true;
  ended_ = std::move(done);
  if (process_) return process_->end(grace);
  loop_.post(lifetime_.guard([this] {
    if (ended_) std::exchange(ended_, nullptr)();
  }));
}

}  // namespace runtime
