// ActorStarts: actors whose program is being looked for, or fetched, or whose process the machine
// could not start yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/job/program_files.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct ActorStartsOptions {
  /// For this long, within a start's own deadline, a process that the machine could not start is
  /// tried again. The machine lacked memory, descriptors or room for another process. The pauses
  /// between two tries follow.
  std::chrono::milliseconds patience{120'000};
  std::chrono::milliseconds pause_first{50};
  std::chrono::milliseconds pause_max{5000};
};

/// Lives on the event loop.
class ActorStarts {
 public:
  struct Start {
    Start(EventLoop& loop, JobId of, control::StartActor wanted, Deadline by,
          Deadline patience_ends, ControlAnswerer answerer);

    bool is_of(ActorId other, std::uint64_t incarnation) const {
      return actor == other && request.incarnation == incarnation;
    }

    JobId job;
    control::StartActor request;
    ActorId actor;
    Deadline deadline;
    Deadline patient_until;
    ControlAnswerer answer;  // empty once cancelled
    std::uint32_t failures = 0;
    std::string logged;  // the last failure, which the log has
    std::chrono::milliseconds pause{0};
    Timer timer;
  };
  using StartPtr = std::shared_ptr<Start>;

  struct Callbacks {
    std::function<void(const DriverInfo&, const std::string& driver_node, Deadline,
                       ProgramFiles::Found)>
        find_program;
    /// Where its worker is to start, if that folder has to be brought here first. May be empty.
    std::function<void(JobId job, const control::StartActor& start, Deadline deadline,
                       std::function<void(Result<std::string>)> found)>
        find_folder;
    /// Begins it in a process, which takes the answer over. Errors: it is not answered then, and is
    /// tried again if what the machine lacks passes (kResourceExhausted).
    std::function<Status(const StartPtr& start, const LocalProgram& program)> begin;
  };

  ActorStarts(EventLoop& loop, ActorStartsOptions options, Callbacks callbacks);
  ActorStarts(const ActorStarts&) = delete;
  ActorStarts& operator=(const ActorStarts&) = delete;

  void add(JobId job, control::StartActor request, Deadline deadline, ControlAnswerer answer);
  /// One that had begun: its process has ended for want of what may be there in a moment.
  void add_again(const StartPtr& start, ActorSpec spec, ControlAnswerer answer, const Status& why);
  /// Whether that incarnation is among them, and the answer taken care of.
  bool join(const control::StartActor& wanted, ControlAnswerer& answer);
  void cancel(ActorId actor, std::uint64_t incarnation, const std::string& reason);
  void cancel_job(JobId job);
  std::size_t size() const { return starts_.size(); }
  /// Why the actor's process could not be started so far; empty: it could, or was not tried yet.
  std::string trouble(ActorId actor) const;
  /// Nothing is tried again.
  void stop() { stopped_ = true; }

 private:
  void attempt(const StartPtr& start);
  void begin(const StartPtr& start, const Result<LocalProgram>& program);
  void fail(const StartPtr& start, const Status& why);

  EventLoop& loop_;
  const ActorStartsOptions options_;
  const Callbacks callbacks_;
  std::list<StartPtr> starts_;
  bool stopped_ = false;
  Lifetime lifetime_;
};

}  // namespace runtime
