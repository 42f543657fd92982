#include "placement/autoscaler/command_run.h"

#include <utility>

namespace placement {

using runtime::Status;

namespace {
constexpr std::size_t kErrorLines = 5;
constexpr auto kEndGrace = std::chrono::seconds(2);
}  // namespace

CommandRun::CommandRun(runtime::EventLoop& loop, runtime::ProcessSpec spec,
                       std::chrono::milliseconds limit, std::function<void(CommandOutcome)> done)
    : program_(spec.program), limit_(limit), done_(std::move(done)), timer_(loop.context()) {
  runtime::ProcessHandlers handlers;
  handlers.on_output = [this](bool is_stderr, std::string_view bytes) {
    on_output(is_stderr, bytes);
  };
  handlers.on_exit = [this](const runtime::DeathCause& cause) { end(cause); };
  auto process = runtime::ChildProcess::start(loop, spec, std::move(handlers));
  if (!process.ok()) {
    loop.post(lifetime_.guard([this, why = process.status()] {
      why_ended_ = why;
      end({});
    }));
    return;
  }
  process_ = std::move(*process);
  timer_.expires_after(limit_);
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec) return;
    why_ended_ = runtime::deadline_exceeded(program_ + " ran for more than " +
                                            std::to_string(limit_.count() / 1000.0).substr(0, 5) +
                                            " s and was ended");
    process_->end(kEndGrace);
  }));
}

CommandRun::~CommandRun() = default;

void CommandRun::on_output(bool is_stderr, std::string_view bytes) {
  if (is_stderr) return error_tail_.append(bytes);
  if (!why_ended_.ok()) return;
  output_.append(bytes.substr(0, kOutputBytesMax - output_.size()));
  if (output_.size() < kOutputBytesMax) return;
  why_ended_ = runtime::resource_exhausted(
      program_ + " has written more than 1 MiB to its stdout and was ended");
  process_->end(kEndGrace);
}

void CommandRun::end(const runtime::DeathCause& cause) {
  timer_.cancel();
  CommandOutcome outcome;
  outcome.status = why_ended_;
  outcome.exit_code = cause.exit_code;
  outcome.output = std::move(output_);
  outcome.error_tail = error_tail_.last_lines(kErrorLines);
  if (outcome.status.ok() && cause.exit_code < 0)
    outcome.status = runtime::task_failed(program_ + " was " + cause.text);
  const auto done = std::exchange(done_, nullptr);
  done(std::move(outcome));
}

}  // namespace placement
