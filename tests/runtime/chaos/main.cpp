// The test program is also the program that its workers run, and with an argument one of the
// callers.
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <deque>

#include "ledger.h"
#include "runtime/process/worker_environment.h"

namespace runtime::test {

int run_caller(int argc, char** argv) {
  Runtime rt(argc, argv);
  register_ledger(rt);
  return rt.run([](Runtime& driver) {
    const std::vector<std::string>& words = driver.arguments();  // the program, --caller, ...
    const int caller = std::stoi(words.at(3)), count = std::stoi(words.at(4));
    EntryFile acknowledged(words.at(5));
    auto ledger = driver.get_actor<Ledger>(words.at(2), "chaos");
    if (!ledger.ok()) return 1;
    constexpr std::size_t kInFlight = 200;
    std::deque<ObjectRef<int>> waiting;
    int sent = 0;
    while (sent < count || !waiting.empty()) {
      if (sent < count && waiting.size() < kInFlight) {
        waiting.push_back(ledger->call(&Ledger::record, caller, ++sent));
        continue;
      }
      const Result<int> done = driver.get(waiting.front());
      waiting.pop_front();
      if (done.ok()) {
        acknowledged.append({caller, *done});
      } else if (done.status().code() == ErrorCode::kActorDied) {
        return 3;
      } else {
        std::fprintf(stderr, "%s\n", done.status().to_string().c_str());
        return 4;
      }
    }
    return 0;
  });
}

int run_deaf_caller(int argc, char** argv) {
  Runtime rt(argc, argv);
  register_ledger(rt);
  return rt.run([](Runtime& driver) {
    const std::vector<std::string>& words = driver.arguments();
    const int count = std::stoi(words.at(3));
    const std::uint64_t bytes = std::stoull(words.at(4));
    const CallOptions options{.timeout = std::chrono::milliseconds(std::stoi(words.at(5)))};
    auto ledger = driver.get_actor<Ledger>(words.at(2), "chaos");
    if (!ledger.ok()) return 1;
    std::vector<ObjectRef<std::string>> texts;
    for (int i = 0; i < count; ++i) texts.push_back(ledger->call(options, &Ledger::text, bytes));
    std::printf("asked\n");
    std::fflush(stdout);
    ::raise(SIGSTOP);
    int late = 0;
    for (const auto& text : texts) {
      const Result<std::string> got = driver.get(text);
      if (got.status().code() == ErrorCode::kDeadlineExceeded)
        ++late;
      else if (!got.ok() || got->size() != bytes)
        return 4;
    }
    return late > 0 ? 5 : 0;
  });
}

}  // namespace runtime::test

int main(int argc, char** argv) {
  const char* role = argc > 1 ? argv[1] : "";
  if (std::strcmp(role, "--caller") == 0) return runtime::test::run_caller(argc, argv);
  if (std::strcmp(role, "--deaf") == 0) return runtime::test::run_deaf_caller(argc, argv);
  if (runtime::is_worker_process()) {
    runtime::Runtime rt(argc, argv);
    runtime::test::register_ledger(rt);
    return rt.run([](runtime::Runtime&) { return 0; });
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
