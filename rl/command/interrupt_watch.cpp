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

InterruptWatch::InterruptWatch(std::string notice) : notice_(std::move(notice)) {
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

}  // namespace rl
