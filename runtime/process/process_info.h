// The kernel's information about processes and threads.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>
#include <vector>

namespace runtime {

struct ProcessInfo {
  std::string name;
  std::string state;  // "running", "sleeping", "waiting for a disk", "stopped", "traced", "ended"
  double cpu_seconds = 0;
  std::uint32_t threads = 0;
  std::uint64_t resident_bytes = 0;
  bool operator==(const ProcessInfo&) const = default;
};

/// Of /proc/PID/stat or /proc/PID/task/TID/stat; an empty state when it is malformed.
ProcessInfo parse_process_stat(const std::string& stat);
/// An empty state when there is none.
ProcessInfo process_info(pid_t pid);
ProcessInfo thread_info(pid_t pid, pid_t tid);
/// The kernel function that a thread waits in; empty: it does not wait, or the kernel does not say.
std::string wait_channel(pid_t pid, pid_t tid);
std::vector<pid_t> threads_of(pid_t pid);
/// What these processes have started and what that has started, as far as their parents live. Cost:
/// a file for each process of the machine.
std::vector<pid_t> processes_below(std::vector<pid_t> pids);
/// Descriptors that it has open.
std::size_t open_files(pid_t pid);

/// Busy seconds of all of the machine's CPUs since it started.
double machine_busy_seconds();

}  // namespace runtime
