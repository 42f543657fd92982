#include "rl/app/interrupt_watch.h"

#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// What a signal handler may touch.
std::atomic<const std::string*> present_notice{nullptr};
std::atomic<int> direct{0};     // signals that came here by themselves
std::atomic<int> passed_on{0};  // by who started this process
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const std::string*>::is_always_lock_free);

int interrupts() { return std::max(direct.load(), passed_on.load()); }

void note(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const int before = interrupts();
  // These come more than once by themselves (with every line that is not read; from the shell and
  // from the kernel). They are no wish of a user to end at once.
  const bool repeats = signal == SIGPIPE || signal == SIGHUP;
  if (repeats)
    direct = std::max(direct.load(), 1);
  else
    ++(info->si_code == SI_QUEUE ? passed_on : direct);
  if (interrupts() > 1 && !repeats) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // which takes effect when this returns
  } else if (const std::string* notice = present_notice; before == 0 && notice != nullptr) {
    (void)!::write(STDERR_FILENO, notice->data(), notice->size());
  }
  errno = error;
}

}  // namespace

InterruptWatch::InterruptWatch(bool saves)
    : saves_(saves),
      notice_(std::string("\ninterrupted: stopping after this step") +
              (saves ? " with a checkpoint" : ", without a checkpoint (trainer.save_freq=0)") +
              "; a second signal ends the run at once\n") {
  CHECK(present_notice.load() == nullptr);
  present_notice = &notice_;
  direct = passed_on = 0;
  struct sigaction action = {};
  action.sa_sigaction = note;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) ::sigaddset(&action.sa_mask, signal);
  for (const int signal : kSignals) {
    struct sigaction present = {};
    if (signal == SIGHUP && ::sigaction(signal, nullptr, &present) == 0 &&
        present.sa_handler == SIG_IGN)
      continue;  // of nohup
    ::sigaction(signal, &action, nullptr);
    taken_.push_back(signal);
  }
}

InterruptWatch::~InterruptWatch() {
  for (const int signal : taken_)
    ::signal(signal, signal == SIGPIPE || signal == SIGHUP
                         ? SIG_IGN
                         : SIG_DFL);  // what is left to say may have no reader, and the cluster has
                                      // to be stopped
  present_notice = nullptr;
}

bool InterruptWatch::interrupted() const { return interrupts() > 0; }

runtime::Status InterruptWatch::cut(std::int64_t step, std::int64_t steps,
                                    ResumeMode resume) const {
  std::string told =
      "interrupted after step " + std::to_string(step) + " of " + std::to_string(steps);
  if (saves_)
    told += resume == ResumeMode::kAuto
                ? "; the same command continues from there"
                : "; the same command with trainer.resume_mode=auto continues from there";
  return runtime::cancelled(std::move(told));
}

void pass_on_signal(pid_t process, int signal) {
  const int error = errno;
  (void)::sigqueue(process, signal, {});
  errno = error;
}

}  // namespace rl
