#include "placement/app/doctor.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "placement/app/cli_start.h"
#include "runtime/core/version.h"
#include "runtime/node/memory_guard.h"
#include "runtime/process/file_util.h"
#include "runtime/process/gpus.h"
#include "runtime/process/machine.h"
#include "runtime/process/session.h"
#include "runtime/transport/endpoint.h"
#include "runtime/transport/file_descriptor.h"

namespace placement {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kGib = 1ull << 30;
constexpr std::uint64_t kOpenFilesWanted = 65'536;
constexpr std::uint64_t kOpenFilesNeeded = 4'096;
constexpr double kClockSkewNotable = 0.5;
constexpr double kClockSkewMax = 5;

std::string gib(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB",
                static_cast<double>(bytes) / static_cast<double>(kGib));
  return text;
}

std::string decimal(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::uint64_t limit_of(decltype(RLIMIT_NOFILE) what, bool hard = false) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0) return 0;
  const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
  return value == RLIM_INFINITY ? UINT64_MAX : value;
}

/// Calls a function of a library that may not be there; 0 then.
int ask_library(const char* library, const char* function) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
  auto* version = reinterpret_cast<int (*)(int*)>(::dlsym(handle, function));
  int value = 0;
  if (!version || version(&value) != 0) value = 0;
  ::dlclose(handle);
  return value;
}

/// The version that the kernel's driver says of itself: "... NVRM version: NVIDIA UNIX ... Kernel
/// Module  580.95.05  ..."
std::string driver_version() {
  const std::string text = runtime::read_file("/proc/driver/nvidia/version", 64 << 10).value_or("");
  std::size_t at = text.find("Module");
  if (at == std::string::npos) return text.substr(0, text.find('\n'));
  at = text.find_first_of("0123456789", at);
  return at == std::string::npos ? "" : text.substr(at, text.find_first_of(" \n", at) - at);
}

std::string program_version(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path() / name;
  return fs::exists(program, error) ? std::string(runtime::kRelease) : "";
}

std::string port_user() {
  auto address = runtime::Endpoint::tcp("127.0.0.1", static_cast<std::uint16_t>(kDefaultPort));
  runtime::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    return "";
  for (const runtime::SessionInfo& session : runtime::running_sessions()) {
    auto other = runtime::Endpoint::parse(session.address);
    if (other.ok() && other->port == address.port) return "";
  }
  return "another program listens at port " + std::to_string(kDefaultPort);
}

}  // namespace

const char* to_string(Finding::State state) {
  switch (state) {
    case Finding::State::kGood: return "ok";
    case Finding::State::kNote: return "note";
    case Finding::State::kWarning: return "warning";
    case Finding::State::kFailure: return "failure";
  }
  return "?";
}

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.cpus = runtime::machine_cpus();
  facts.cpus_online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const runtime::MemoryUse memory = runtime::memory_use();
  facts.memory_bytes = memory.limit_bytes;
  facts.memory_available_bytes =
      memory.limit_bytes - std::min(memory.limit_bytes, memory.used_bytes);
  struct statvfs disk {};
  if (::statvfs("/dev/shm", &disk) == 0)
    facts.shm_bytes = static_cast<std::uint64_t>(disk.f_blocks) * disk.f_frsize;
  facts.open_files = limit_of(RLIMIT_NOFILE);
  facts.open_files_hard = limit_of(RLIMIT_NOFILE, true);
  facts.processes = limit_of(RLIMIT_NPROC);
  if (facts.processes == UINT64_MAX) facts.processes = 0;
  facts.locked_bytes = limit_of(RLIMIT_MEMLOCK);
  facts.session_root = runtime::session_root().string();
  fs::path existing = facts.session_root;
  std::error_code error;
  while (!existing.empty() && !fs::exists(existing, error) && existing != existing.parent_path())
    existing = existing.parent_path();
  if (::statvfs(existing.c_str(), &disk) == 0)
    facts.session_free_bytes = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  utsname system{};
  if (::uname(&system) == 0) facts.kernel = system.release;
  facts.glibc = ::gnu_get_libc_version();
  timex clock{};
  facts.clock_synchronised = ::adjtimex(&clock) >= 0 && (clock.status & STA_UNSYNC) == 0;
  facts.gpus = runtime::machine_gpus();
  facts.driver = driver_version();
  facts.cuda = ask_library("libcuda.so.1", "cuDriverGetVersion");
  facts.nccl = ask_library("libnccl.so.2", "ncclGetVersion");
  facts.starling = runtime::kRelease;
  facts.rl = program_version("starling-rl");
  facts.port_user = port_user();
  return facts;
}

namespace {

class Findings {
 public:
  /// The cure is left out where nothing is wrong.
  void add(const char* check, Finding::State state, std::string what, std::string cure = "") {
    findings_.push_back(
        {check, state, std::move(what), state == Finding::State::kGood ? "" : std::move(cure)});
  }
  std::vector<Finding> take() { return std::move(findings_); }

 private:
  std::vector<Finding> findings_;
};

void judge_gpus(const MachineFacts& facts, Findings& findings) {
  const bool serves = facts.cuda > 0;
  findings.add(
      "CUDA driver",
      !serves || facts.gpus == 0 ? Finding::State::kFailure
      : facts.cuda < 13'000      ? Finding::State::kWarning
                                 : Finding::State::kGood,
      std::to_string(facts.gpus) + " GPUs, driver " +
          (facts.driver.empty() ? "unknown" : facts.driver) +
          (serves ? ", CUDA " + std::to_string(facts.cuda / 1000) + "." +
                        std::to_string(facts.cuda % 1000 / 10)
                  : ", libcuda.so.1 does not answer"),
      !serves ? "install the driver's libraries (libcuda1), or run the container with --gpus all"
      : facts.gpus == 0 ? "the driver shows no device: nvidia-smi says why"
                        : "this release is built for CUDA 13: install driver 580 or newer");
  findings.add(
      "NCCL", facts.nccl == 0 ? Finding::State::kNote : Finding::State::kGood,
      facts.nccl == 0
          ? "libnccl.so.2 is not on the library path"
          : "NCCL " + std::to_string(facts.nccl / 10'000) + "." +
                std::to_string(facts.nccl / 100 % 100) + "." + std::to_string(facts.nccl % 100),
      "the wheels fetched by `make deps GPU=1` bring one; for others: apt-get install libnccl2");
}

void judge_limits(const MachineFacts& facts, Findings& findings) {
  findings.add(
      "cores", facts.cpus < facts.cpus_online ? Finding::State::kNote : Finding::State::kGood,
      std::to_string(facts.cpus) + " of " + std::to_string(facts.cpus_online) + " CPUs may be used",
      "the affinity or the cgroup's quota keeps the others away: start without taskset, or raise "
      "the container's --cpus");
  findings.add(
      "memory",
      facts.memory_available_bytes < kGib ? Finding::State::kWarning : Finding::State::kGood,
      gib(facts.memory_available_bytes) + " of " + gib(facts.memory_bytes) + " are free",
      "end what else runs here, raise the container's --memory, or give the object store less "
      "(starling start --object-store-memory)");
  findings.add(
      "shared memory", facts.shm_bytes < kGib ? Finding::State::kWarning : Finding::State::kGood,
      facts.shm_bytes == 0 ? "there is no /dev/shm" : "/dev/shm takes " + gib(facts.shm_bytes),
      "NCCL and data loaders need it (Starling's own store does not): docker run --shm-size=8g, or "
      "mount -o remount,size=8G /dev/shm");
  findings.add(
      "open files",
      facts.open_files < kOpenFilesNeeded   ? Finding::State::kFailure
      : facts.open_files < kOpenFilesWanted ? Finding::State::kWarning
                                            : Finding::State::kGood,
      facts.open_files == UINT64_MAX ? "no limit" : std::to_string(facts.open_files) + " at most",
      facts.open_files_hard >= kOpenFilesWanted
          ? "a node has one for every connection: ulimit -n " + std::to_string(kOpenFilesWanted)
          : "a node has one for every connection: raise nofile in /etc/security/limits.conf, or "
            "docker run --ulimit nofile=" +
                std::to_string(kOpenFilesWanted));
  findings.add("processes",
               facts.processes != 0 && facts.processes < 4096 ? Finding::State::kWarning
                                                              : Finding::State::kGood,
               facts.processes == 0 ? "no limit" : std::to_string(facts.processes) + " at most",
               "each actor is a process with a few threads: ulimit -u unlimited");
  if (facts.gpus > 0) {
    findings.add(
        "locked memory",
        facts.locked_bytes < kGib ? Finding::State::kWarning : Finding::State::kGood,
        facts.locked_bytes == UINT64_MAX ? "no limit" : gib(facts.locked_bytes) + " at most",
        "RDMA and pinned buffers need more: ulimit -l unlimited, or docker run --ulimit "
        "memlock=-1");
  }
  findings.add(
      "session folder",
      facts.session_free_bytes < kGib ? Finding::State::kWarning : Finding::State::kGood,
      facts.session_root + " has " + gib(facts.session_free_bytes) + " free",
      "logs, the head's journal and spilled objects go there: make room, point XDG_RUNTIME_DIR "
      "elsewhere, or use --journal and --spill-dir");
  findings.add("port", facts.port_user.empty() ? Finding::State::kGood : Finding::State::kWarning,
               facts.port_user.empty() ? "the head's default port is free, or a node's of yours"
                                       : facts.port_user,
               "start the head with another --port");
  findings.add(
      "clock", facts.clock_synchronised ? Finding::State::kGood : Finding::State::kNote,
      facts.clock_synchronised ? "kept in step by the system" : "not kept in step with others",
      "install chrony or enable systemd-timesyncd, so that logs and timelines of several machines "
      "agree");
}

}  // namespace

std::vector<Finding> judge(const MachineFacts& facts) {
  Findings findings;
  judge_limits(facts, findings);
  int major = 0, minor = 0;
  (void)std::sscanf(facts.kernel.c_str(), "%d.%d", &major, &minor);
  const bool old_kernel = major < 5 || (major == 5 && minor < 11);
  findings.add("kernel", old_kernel ? Finding::State::kFailure : Finding::State::kGood,
               "Linux " + facts.kernel, "Starling needs Linux 5.11 or newer (close_range, pidfd)");
  findings.add("libraries", Finding::State::kGood,
               "starling " + facts.starling + ", glibc " + facts.glibc +
                   (facts.rl.empty() ? ", no starling-rl next to it" : ", starling-rl next to it"));
  if (facts.gpus == 0 && facts.driver.empty())
    findings.add("CUDA driver", Finding::State::kGood, "no NVIDIA GPU here");
  else
    judge_gpus(facts, findings);
  return findings.take();
}

std::vector<Finding> judge_pairs(const std::vector<PairSpeed>& pairs) {
  std::vector<Finding> findings;
  std::vector<double> speeds;
  for (const PairSpeed& pair : pairs) {
    if (pair.error.empty() && !pair.skipped) speeds.push_back(pair.bytes_per_s);
  }
  std::sort(speeds.begin(), speeds.end());
  const double median = speeds.empty() ? 0 : speeds[speeds.size() / 2];
  for (const PairSpeed& pair : pairs) {
    const std::string name = pair.from + " -> " + pair.to;
    if (!pair.error.empty()) {
      findings.push_back(
          {"connection", Finding::State::kFailure, name + ": " + pair.error,
           "see that the port of " + pair.to + " is open to " + pair.from +
               " (nothing else is needed), and that --advertise names an address that " +
               pair.from + " reaches"});
      continue;
    }
    if (pair.skipped) {
      findings.push_back(
          {"connection", Finding::State::kNote,
           name +
               ": answers; how fast it is was not measured, since the pairs before it took so long",
           "starling doctor --cluster --bytes 1MiB takes less"});
      continue;
    }
    const bool slow = pairs.size() > 2 && pair.bytes_per_s < median / 2;
    findings.push_back(
        {"connection", slow ? Finding::State::kWarning : Finding::State::kGood,
         name + ": " + decimal(pair.bytes_per_s / 1e6, 0) + " MB/s, round trip " +
             decimal(pair.round_trip_s * 1e6, 0) + " µs" +
             (slow ? ", less than half of the others' " + decimal(median / 1e6, 0) + " MB/s" : ""),
         slow ? "look at the link between the two: its speed (ethtool), its errors (ip -s link), "
                "what else uses it"
              : ""});
  }
  return findings;
}

std::vector<Finding> judge_clocks(
    const std::vector<std::pair<std::string, double>>& seconds_behind) {
  std::vector<Finding> findings;
  for (const auto& [address, behind] : seconds_behind) {
    const double skew = std::fabs(behind);
    const Finding::State state = skew > kClockSkewMax       ? Finding::State::kFailure
                                 : skew > kClockSkewNotable ? Finding::State::kWarning
                                                            : Finding::State::kGood;
    findings.push_back(
        {"clock of " + address, state,
         decimal(skew, 3) + " s " + (behind > 0 ? "behind" : "ahead of") + " this machine's",
         state == Finding::State::kGood
             ? ""
             : "set it right: chronyc makestep, or systemctl restart systemd-timesyncd. Leases do "
               "not depend on it; logs and certificates do"});
  }
  return findings;
}

}  // namespace placement
