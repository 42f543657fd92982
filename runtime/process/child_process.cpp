#include "runtime/process/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>

#include "runtime/core/thread.h"
#include "runtime/core/timer.h"
#include "runtime/process/pipe.h"
#include "runtime/process/process_info.h"
#include "runtime/process/simulated_processes.h"
#include "runtime/process/spawn.h"
#include "runtime/transport/file_descriptor.h"

extern char** environ;

namespace runtime {

namespace {

// How long after the end of a process its pipes may still be held open by others before they are
// given up.
constexpr auto kDrainMax = std::chrono::milliseconds(200);

// The first: between two times that supervisors are made to go on, in case their program has
// stopped them. The second: between two looks whether the last of them has ended.
constexpr std::chrono::milliseconds kResumePause{500};
constexpr std::chrono::milliseconds kLastSupervisorLook{20};
// How long those that are to kill everything have for it.
constexpr std::chrono::seconds kKillPatience{4};

/// A file in memory, so that no thread has to feed a pipe.
Result<FileDescriptor> open_input(const std::string& bytes) {
  if (bytes.empty()) {
    FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return errno_status(errno, "/dev/null");
    return null;
  }
  FileDescriptor file(::memfd_create("stdin", MFD_CLOEXEC));
  if (!file) return errno_status(errno, "making its stdin");
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put =
        ::pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return errno_status(errno, "filling its stdin");
    done += static_cast<std::size_t>(put);
  }
  return file;
}

/// This process's environment, or that of a user who has just logged in, with `additions` over it.
std::vector<std::string> merged_environment(const std::vector<std::string>& additions,
                                            const std::optional<JobUser>& user) {
  std::map<std::string, std::string> variables;
  auto add = [&](const std::string& line) {
    std::size_t equals = line.find('=');
    if (equals != std::string::npos && equals > 0) variables[line.substr(0, equals)] = line;
  };
  if (user) {
    for (const char* line :
         {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=", "USER=", "LOGNAME=", "SHELL="})
      add(line);
    variables["HOME"] += user->home;
    variables["USER"] += user->name;
    variables["LOGNAME"] += user->name;
    variables["SHELL"] += user->shell;
  } else {
    for (char** line = environ; line && *line; ++line) add(*line);
  }
  for (const std::string& line : additions) add(line);
  std::vector<std::string> merged;
  for (auto& [name, line] : variables) merged.push_back(std::move(line));
  return merged;
}

/// Shared by the handlers in flight; ends when the process is reaped and its pipes are at their
/// end.
struct ChildState : std::enable_shared_from_this<ChildState> {
  struct Stream {
    Stream(asio::io_context& context, FileDescriptor fd) : pipe(context, fd.release()) {}
    asio::posix::stream_descriptor pipe;
    std::array<char, 16384> block;
    bool open = true;
    bool reading = false;
  };

  ChildState(EventLoop& event_loop, SpawnedProcess spawned, FileDescriptor pidfd,
             FileDescriptor out, FileDescriptor err, ProcessHandlers process_handlers)
      : loop(event_loop),
        pid(spawned.program()),
        process(std::move(spawned)),
        exit_watch(loop.context(), pidfd.release()),
        timer(loop.context()),
        look(loop.context()),
        streams{Stream(loop.context(), std::move(out)), Stream(loop.context(), std::move(err))},
        handlers(std::move(process_handlers)) {}

  void watch() {
    for (int i = 0; i < 2; ++i) read(i);
    exit_watch.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](boost::system::error_code ec) {
                            if (!ec) self->reap();
                          });
    if (process.is_supervised()) look_again(kResumePause);
  }

  void end(std::chrono::milliseconds grace) {
    if (grace.count() <= 0) return kill_now();
    process.order(SupervisorOrder::kWait);
    process.signal_group(SIGTERM);
    if (process.is_supervised()) {
      for (const pid_t started : processes_below({process.pid()}))
        if (::getpgid(started) != pid) ::kill(started, SIGTERM);
    }
    timer.expires_after(grace);
    timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (!ec && !self->ended) self->kill_now();
    });
  }

  void kill_now() {
    process.signal_group(SIGKILL);
    process.order(SupervisorOrder::kKill);
    kill_below_at = std::min(kill_below_at, deadline_after(kKillPatience));
  }

  /// After its supervisors, which the program can stop, and kill.
  void look_again(std::chrono::milliseconds pause) {
    look.expires_after(pause);
    look.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (ec || self->ended) return;
      self->process.resume_supervisors();
      if (self->kill_below_at <= steady_now()) self->kill_below();
      if (self->process.ended()) return self->reap();
      self->look_again(kResumePause);
    });
  }

  /// Takes a moment, hence the thread.
  void kill_below() {
    kill_below_at = Deadline::max();
    auto thread = Thread::start_real([self = shared_from_this()]() mutable {
      self->process.kill_below();
      EventLoop& done = self->loop;
      done.post([self = std::move(self)] {
        self->end_killer();
        self->kill_below_at = deadline_after(kKillPatience);
      });
    });
    if (thread.ok())
      killer = *std::move(thread);
    else
      process.kill_below();
  }

  void end_killer() {
    if (killer.joinable()) killer.join();
  }

  void read(int index) {
    Stream& stream = streams[index];
    if (paused || stream.reading || !stream.open) return;
    stream.reading = true;
    stream.pipe.async_read_some(
        asio::buffer(stream.block),
        [self = shared_from_this(), index](boost::system::error_code ec, std::size_t bytes) {
          self->on_read(index, ec, bytes);
        });
  }

  void on_read(int index, boost::system::error_code ec, std::size_t bytes) {
    Stream& stream = streams[index];
    stream.reading = false;
    if (abandoned) return;
    if (bytes > 0 && handlers.on_output)
      handlers.on_output(index == 1, std::string_view(stream.block.data(), bytes));
    if (ec) {
      stream.open = false;
      maybe_finish();
    } else {
      read(index);
    }
  }

  void reap() {
    if (ended) return;
    if (process.has_supervisor()) {  // its keeper was killed, and it kills what is left
      kill_below_at = std::min(kill_below_at, deadline_after(kKillPatience));
      return look_again(kLastSupervisorLook);
    }
    end_killer();
    // What it left behind in its group; before it is reaped, while the number is surely its own.
    // A supervisor has ended all of it, unless it was killed itself.
    const std::optional<DeathCause> end = process.ended();
    if (!process.is_supervised() || !end || end->signal != 0) process.signal_group(SIGKILL);
    cause = process.reap();
    ended = true;
    if (abandoned) return;
    // What is left fits the pipes; a reader that is slow, or hangs, must not keep the end from
    // being known.
    paused = false;
    for (int i = 0; i < 2; ++i) read(i);
    arm_drain();
    maybe_finish();
  }

  void arm_drain() {
    timer.expires_after(kDrainMax);
    timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (ec) return;
      for (Stream& stream : self->streams) stream.open = false;
      self->maybe_finish();
    });
  }

  void maybe_finish() {
    if (!ended || finished || abandoned || streams[0].open || streams[1].open) return;
    finished = true;
    close_all();
    auto on_exit = std::move(handlers.on_exit);
    handlers = {};
    if (on_exit) on_exit(std::move(cause));
  }

  void close_all() {
    boost::system::error_code ignored;
    timer.cancel();
    look.cancel();
    for (Stream& stream : streams) stream.pipe.close(ignored);
    exit_watch.close(ignored);
  }

  EventLoop& loop;
  const pid_t pid;  // the program's
  SpawnedProcess process;
  asio::posix::stream_descriptor exit_watch;
  Timer timer;  // first the grace of end(), then the draining
  Timer look;   // after supervisors
  Deadline kill_below_at = Deadline::max();
  Thread killer;
  std::array<Stream, 2> streams;
  ProcessHandlers handlers;
  DeathCause cause;
  bool ended = false;      // reaped: the pid must not be used any more
  bool finished = false;   // on_exit ran
  bool abandoned = false;  // the owner is gone
  bool paused = false;
};

class LoopProcess final : public ChildProcess {
 public:
  explicit LoopProcess(std::shared_ptr<ChildState> state) : state_(std::move(state)) {}
  ~LoopProcess() override;

  std::int32_t pid() const override { return state_->pid; }
  bool running() const override { return !state_->ended; }
  void signal(int number) override;
  void end(std::chrono::milliseconds grace) override;
  void pause_output(bool paused) override;

 private:
  const std::shared_ptr<ChildState> state_;
};

LoopProcess::~LoopProcess() {
  state_->abandoned = true;
  state_->handlers = {};
  if (!state_->ended) {
    state_->end_killer();
    state_->process = {};  // kills and reaps it
    state_->ended = true;
  }
  state_->close_all();
}

void LoopProcess::signal(int number) {
  if (!state_->ended) state_->process.signal_group(number);
}

void LoopProcess::end(std::chrono::milliseconds grace) {
  if (!state_->ended) state_->end(grace);
}

void LoopProcess::pause_output(bool paused) {
  if (state_->ended) return;
  state_->paused = paused;
  if (!paused) {
    for (int i = 0; i < 2; ++i) state_->read(i);
  }
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(EventLoop& loop, const ProcessSpec& spec,
                                                          ProcessHandlers handlers) {
  if (SimulatedProcesses* simulated = simulated_processes())
    return simulated->start_process(loop, spec, std::move(handlers));
  Result<Pipe> out = make_pipe();
  Result<Pipe> err = make_pipe();
  Result<FileDescriptor> input = open_input(spec.input);
  for (const Status& status : {out.status(), err.status(), input.status()}) {
    if (!status.ok()) return status.with_context("starting " + spec.program);
  }
  SpawnSpec spawn{
      .program = spec.program,
      .argv = spec.argv,
      .environment = merged_environment(spec.env, spec.user),
      .working_dir = spec.working_dir,
      .user = spec.user,
      .supervised = spec.supervised,
      .restores_descriptor_limit = true,  // Starling's own programs raise it again
      .setup = {.group = ProcessGroup::kOwn,
                .death_signal = SIGKILL,
                .descriptors = {{input->get(), 0}, {out->write.get(), 1}, {err->write.get(), 2}},
                .closes_others = true,
                .signal_mask = no_signals(),
                .ignored_signals = {},
                .resets_signals = true}};
  Result<SpawnedProcess> process = spawn_process(spawn);
  if (!process.ok()) return process.status();
  Result<FileDescriptor> pidfd = process->watch();
  if (!pidfd.ok()) return pidfd.status();
  auto state =
      std::make_shared<ChildState>(loop, *std::move(process), *std::move(pidfd),
                                   std::move(out->read), std::move(err->read), std::move(handlers));
  state->watch();
  return std::unique_ptr<ChildProcess>(std::make_unique<LoopProcess>(std::move(state)));
}

}  // namespace runtime
