// starling-reward-host: the process that a user's reward library runs in. Started by ProcessPool,
// whose protocol it speaks over descriptor 3.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/reward/reward_library.h"
#include "runtime/core/json.h"

namespace {

using nlohmann::json;

constexpr int kFirstMoved = 64;

int connection = 3;  // moved up, where the library's code does not look for it

void answer(const json& message) {
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::write(connection, line.data() + sent, line.size() - sent);
    if (count <= 0) ::_exit(1);
    sent += static_cast<std::size_t>(count);
  }
}

bool read_line(std::string& line) {
  static std::string received;
  std::array<char, 16 << 10> bytes;
  while (received.find('\n') == std::string::npos) {
    const ssize_t count = ::read(connection, bytes.data(), bytes.size());
    if (count <= 0) return false;
    received.append(bytes.data(), static_cast<std::size_t>(count));
  }
  const std::size_t end = received.find('\n');
  line = received.substr(0, end);
  received.erase(0, end + 1);
  return true;
}

using Abi = decltype(&starling_reward_abi);
using Compute = decltype(&starling_compute_score);

/// The function, or null and why.
Compute load(const json& setup, std::string& problem) {
  const auto memory = setup.value("memory_bytes", std::int64_t{0});
  if (memory > 0) {
    const rlimit limit{static_cast<rlim_t>(memory), static_cast<rlim_t>(memory)};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const std::string path = setup.value("path", "");
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    problem = std::string("cannot be loaded: ") + ::dlerror();
    return nullptr;
  }
  const auto abi = reinterpret_cast<Abi>(::dlsym(library, "starling_reward_abi"));
  const auto compute = reinterpret_cast<Compute>(::dlsym(library, "starling_compute_score"));
  if (abi == nullptr || compute == nullptr) {
    problem = path + " has no function " +
              (abi == nullptr ? "starling_reward_abi" : "starling_compute_score") +
              " with C linkage (rl/reward/reward_library.h)";
    return nullptr;
  }
  // What is new in a version stands behind what the ones before it know.
  if (abi() >= 1 && abi() <= STARLING_REWARD_ABI) return compute;
  problem = path + " was compiled for version " + std::to_string(abi()) +
            " of reward_library.h, and this is version " + std::to_string(STARLING_REWARD_ABI) +
            ": compile it again";
  return nullptr;
}

std::string text(const json& request, const char* key) {
  const auto found = request.find(key);
  return found == request.end() || found->is_null() ? ""
         : found->is_string()                       ? found->get<std::string>()
                                                    : found->dump();
}

json judge(Compute compute, const json& request) {
  const std::string source = text(request, "data_source"), response = text(request, "solution_str"),
                    truth = text(request, "ground_truth"), extra = text(request, "extra_info");
  const auto given = request.find("ground_truth");
  const bool has_truth = given != request.end() && !given->is_null();
  const starling_reward_sample sample{source.c_str(), response.c_str(), truth.c_str(),
                                      extra.c_str(), has_truth ? 1 : 0};
  double score = std::nan("");
  std::array<char, 1024> message{};
  const int failed = compute(&sample, &score, message.data(), message.size());
  message.back() = 0;
  if (failed != 0)
    return {{"error", message[0] != 0
                          ? std::string(message.data())
                          : "starling_compute_score returned " + std::to_string(failed)}};
  if (!std::isfinite(score))
    return {{"invalid", "wrote " + std::to_string(score) + ", which is no finite number"}};
  return {{"score", score}};
}

/// Kills the children of this process until it has none: those of one that dies become this one's.
void end_children() {
  while (true) {
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator("/proc", error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const pid_t process = std::atoi(entry->path().filename().c_str());
      std::ifstream file(entry->path() / "stat");
      std::string stat;
      if (process <= 0 || !std::getline(file, stat)) continue;
      const std::size_t end = stat.rfind(')');  // "PID (NAME) STATE PARENT ..."
      if (end != std::string::npos && end + 4 < stat.size() &&
          std::atoi(stat.c_str() + end + 4) == ::getpid())
        ::kill(process, SIGKILL);
    }
    if (::waitpid(-1, nullptr, 0) < 0) return;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }
}

/// Goes on in a child. This process stays its parent and takes what is orphaned below; when the
/// child has ended it ends what is left, and then as the child did.
void keep() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return;
  const pid_t child = ::fork();
  if (child <= 0) return;
  for (const int number : {SIGIO, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2})
    ::signal(number, SIG_IGN);
  ::close(connection);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int descriptor : {1, 2}) ::dup2(nowhere, descriptor);
  int status = 0;
  for (pid_t ended = 0; ended != child; ended = ::waitpid(-1, &status, 0)) {
  }
  end_children();
  if (WIFSIGNALED(status)) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(WTERMSIG(status), SIG_DFL);
    ::kill(::getpid(), WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

/// Takes up descriptors 3 and 4, under other numbers, which programs that are started do not get.
/// When the process that started this one is gone, the kernel ends the group by SIGIO.
void connect() {
  constexpr int kLife = 4;
  ::fcntl(kLife, F_SETOWN, -::getpgrp());
  ::fcntl(kLife, F_SETFL, O_ASYNC);
  ::fcntl(kLife, F_DUPFD_CLOEXEC, kFirstMoved);
  connection = ::fcntl(connection, F_DUPFD_CLOEXEC, kFirstMoved);
  for (const int descriptor : {3, kLife}) ::close(descriptor);
}

}  // namespace

int main() {
  connect();
  ::setenv("STARLING_SCORER", std::to_string(::getpid()).c_str(),
           1);  // by which what the library starts is found
  std::string line;
  if (!read_line(line)) {
    std::fprintf(stderr, "starling-reward-host is started by starling, not by hand\n");
    return 2;
  }
  const json setup = runtime::parse_json(line);
  if (!setup.is_object()) return 2;
  keep();
  std::string problem;
  const Compute compute = load(setup, problem);
  if (compute == nullptr) {
    answer({{"fatal", problem}});
    return 1;
  }
  answer({{"ready", true}});
  while (read_line(line)) {
    const json request = runtime::parse_json(line);
    if (!request.is_object()) return 2;
    json message = judge(compute, request);
    message["id"] = request.value("id", json());
    std::fflush(nullptr);
    answer(message);
  }
  return 0;
}
