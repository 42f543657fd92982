// test_sim                              the tests
// test_sim --seed N [--trace]           one seed, and what happened in it
// test_sim --first N --count M          many
// test_sim ... --twice                  each again, which has to give the same
// test_sim --seed N --hours H           days of one cluster
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <spdlog/spdlog.h>

#include "days.h"
#include "scenario.h"

namespace {

int run_seeds(std::uint64_t first, std::uint64_t count, bool trace, bool twice) {
  std::uint64_t steps = 0;
  std::size_t calls = 0, runs = 0, succeeded = 0, failures = 0;
  std::uint64_t spills = 0;
  double seconds = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    sim::Outcome outcome = sim::run_seed(seed, trace);
    if (twice && sim::run_seed(seed, trace).hash != outcome.hash && outcome.failure.empty())
      outcome.failure = "went another way the second time";
    steps += outcome.steps;
    calls += outcome.calls;
    runs += outcome.runs;
    succeeded += outcome.succeeded;
    spills += outcome.spills;
    seconds += outcome.seconds;
    if (outcome.failure.empty()) continue;
    ++failures;
    std::printf("seed %llu: %s\nagain: test_sim --seed %llu --trace\n",
                static_cast<unsigned long long>(seed), outcome.failure.c_str(),
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }
  std::printf(
      "%llu seeds, %zu failed: %llu steps, %.0f simulated seconds, %zu calls, %zu runs, %zu "
      "succeeded, %llu moves to disk\n",
      static_cast<unsigned long long>(count), failures, static_cast<unsigned long long>(steps),
      seconds, calls, runs, succeeded, static_cast<unsigned long long>(spills));
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1, count = 0, hours = 0;
  bool trace = false, twice = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (word == "--trace")
      trace = true;
    else if (word == "--twice")
      twice = true;
    else if (word == "--seed")
      first = number(), count = 1;
    else if (word == "--first")
      first = number();
    else if (word == "--count")
      count = number();
    else if (word == "--hours")
      hours = number();
  }
  spdlog::set_level(trace ? spdlog::level::debug : spdlog::level::off);
  if (hours > 0) {
    const sim::Outcome outcome = sim::run_hours(first, static_cast<int>(hours), trace);
    std::printf("%s\n", outcome.failure.empty() ? "everything held" : outcome.failure.c_str());
    return outcome.failure.empty() ? 0 : 1;
  }
  if (count > 0) return run_seeds(first, count, trace, twice);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
