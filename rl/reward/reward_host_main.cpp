// starling-reward-host: the process that a user's reward library runs in. Started by ProcessPool,
// whose protocol it speaks over descriptor 3.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/reward/reward_library.h"
#include "runtime/core/json.h"
#include "runtime/process/orphan_keeper.h"

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
    return {{"invalid", "wrote " + std::to_string(score) + ", which is not a finite number"}};
  return {{"score", score}};
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
  runtime::continue_in_child(connection);
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
