#include "runtime/process/child_setup.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace runtime {

namespace {

constexpr int kStandardLast = 2;  // stdin, stdout and stderr

}  // namespace

sigset_t no_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  return none;
}

PreparedChild::PreparedChild(const ChildSetup& setup, const sigset_t& mask)
    : group_(setup.group),
      death_signal_(setup.death_signal),
      parent_(::getpid()),
      descriptors_(setup.descriptors),
      closes_others_(setup.closes_others),
      mask_(setup.signal_mask.value_or(mask)),
      ignored_signals_(setup.ignored_signals),
      resets_signals_(setup.resets_signals) {
  for (const MappedDescriptor& mapped : descriptors_) {
    if (mapped.theirs > kStandardLast) kept_.push_back(mapped.theirs);
  }
  std::sort(kept_.begin(), kept_.end());
}

void PreparedChild::join_group() const {
  if (group_ == ProcessGroup::kOwn) ::setpgid(0, 0);
  if (group_ == ProcessGroup::kSession) ::setsid();
}

void PreparedChild::ask_for_death_signal() const {
  if (death_signal_ == 0) return;
  ::prctl(PR_SET_PDEATHSIG, death_signal_);
  if (::getppid() != parent_) ::_exit(126);  // it died before the line above
}

void PreparedChild::set_signals(bool for_program) const {
  struct sigaction by_default = {}, ignore = {}, present = {};
  by_default.sa_handler = SIG_DFL;
  ignore.sa_handler = SIG_IGN;
  for (int number = 1; for_program && number < NSIG; ++number) {
    if (::sigaction(number, nullptr, &present) != 0) continue;
    if (present.sa_handler == SIG_IGN ? resets_signals_ : present.sa_handler != SIG_DFL)
      ::sigaction(number, &by_default, nullptr);
  }
  for (const int number : ignored_signals_) ::sigaction(number, &ignore, nullptr);
}

void PreparedChild::set_mask() const { ::sigprocmask(SIG_SETMASK, &mask_, nullptr); }

bool PreparedChild::map_descriptors(int& reserved) {
  const int last = kept_.empty() ? kStandardLast : kept_.back();
  // None may be overwritten by another that is mapped before it.
  const auto move_up = [last](int& descriptor) {
    if (descriptor < 0 || descriptor > last) return true;
    descriptor = ::fcntl(descriptor, F_DUPFD_CLOEXEC, last + 1);
    return descriptor >= 0;
  };
  for (MappedDescriptor& mapped : descriptors_) {
    if (!move_up(mapped.ours)) return false;
  }
  if (!move_up(reserved)) return false;
  for (const MappedDescriptor& mapped : descriptors_) {
    if (::dup2(mapped.ours, mapped.theirs) < 0) return false;
  }
  return true;
}

void PreparedChild::close_others(bool at_exec) const {
  if (!closes_others_) return;
  const unsigned flags = at_exec ? CLOSE_RANGE_CLOEXEC : 0u;
  unsigned first = kStandardLast + 1;
  for (const int kept : kept_) {
    const auto number = static_cast<unsigned>(kept);
    if (number > first) ::syscall(SYS_close_range, first, number - 1, flags);
    first = number + 1;
  }
  ::syscall(SYS_close_range, first, ~0u, flags);
}

}  // namespace runtime
