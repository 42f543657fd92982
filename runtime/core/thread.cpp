#include "runtime/core/thread.h"

#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/core/cgroup.h"
#include "runtime/core/simulation.h"

namespace runtime {

namespace {

/// Of this process's cgroup or the nearest above it that has a limit, in version 1 or 2; empty:
/// there is none.
std::string cgroup_pids_max() {
  for (const CgroupFolder& group : cgroup_folders("pids")) {
    std::string limit;
    if (std::ifstream(group.path / "pids.max") >> limit && limit != "max")
      return limit + " in " + group.path.string();
  }
  return "";
}

}  // namespace

Status thread_limit_status(int error) {
  if (error != EAGAIN) return errno_status(error, "making a thread");
  rlimit processes{};
  ::getrlimit(RLIMIT_NPROC, &processes);
  const std::string of_user = processes.rlim_cur == RLIM_INFINITY
                                  ? "unlimited"
                                  : std::to_string(processes.rlim_cur) + " per user";
  const std::string of_group = cgroup_pids_max();
  return resource_exhausted(
      "no thread can be made: the limit of processes and threads is reached (ulimit -u: " +
      of_user + "; the cgroup's pids.max: " + (of_group.empty() ? "none" : of_group) +
      "): raise the limit that is too small, or run fewer threads");
}

Result<Thread> Thread::start(std::function<void()> body) {
  Simulation* simulated = simulation();
  if (!simulated) return start_real(std::move(body));
  Thread thread;
  thread.simulated_ = simulated->start_thread(std::move(body));
  return thread;
}

Result<Thread> Thread::start_real(std::function<void()> body) {
  Thread thread;
  try {
    thread.thread_ = std::thread(std::move(body));
  } catch (const std::system_error& failure) {
    return thread_limit_status(failure.code().value());
  }
  return thread;
}

void Thread::join() {
  if (simulated_ != 0)
    simulation()->join_thread(std::exchange(simulated_, 0));
  else
    thread_.join();
}

HelperThreads::HelperThreads(std::size_t count, const std::function<void()>& body) {
  for (std::size_t i = 0; i < count; ++i) {
    auto thread = Thread::start_real(body);
    if (!thread.ok()) break;
    threads_.push_back(*std::move(thread));
  }
}

void HelperThreads::join() {
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace runtime
