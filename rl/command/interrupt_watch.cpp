#include "rl/command/interrupt_watch.h"

#include <csignal>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

// What a signal handler may touch.
std::atomic<const std::string*> present_notice{nullptr};
std::atomic<bool> noted{false};

void default_again() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

void note(int) {
  const int error = errno;
  default_again();
  noted = true;
  if (const std::string* notice = present_notice) (void)!::write(STDERR_FILENO, notice->data(), notice->size());
  errno = error;
}

}  // namespace

InterruptWatch::InterruptWatch(bool saves)
    : saves_(saves),
      notice_(std::string("\ninterrupted: stopping after this step") + (saves ? " with a checkpoint" : ", without a checkpoint (trainer.save_freq)") + "; once more ends at once\n") {
  CHECK(present_notice.load() == nullptr);
  present_notice = &notice_;
  noted = false;
  ::signal(SIGINT, note);
  ::signal(SIGTERM, note);
}

InterruptWatch::~InterruptWatch() {
  default_again();
  present_notice = nullptr;
}

bool InterruptWatch::interrupted() const { return noted; }

runtime::Status InterruptWatch::cut(std::int64_t step, std::int64_t steps, ResumeMode resume) const {
  std::string told = "interrupted after step " + std::to_string(step) + " of " + std::to_string(steps);
  if (saves_) told += resume == ResumeMode::kAuto ? "; the same command goes on from there" : "; the same command with trainer.resume_mode=auto goes on from there";
  return runtime::cancelled(std::move(told));
}

}  // namespace rl
