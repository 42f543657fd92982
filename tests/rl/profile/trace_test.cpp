#include "rl/profile/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rl::profile {
namespace {

struct Made {
  std::string name;
  SpanKind kind;
  std::int64_t begin_ns, end_ns;
  std::uint32_t thread = 0;
};

Recording make(const std::vector<Made>& spans, std::uint32_t threads = 1) {
  Recording recording;
  for (std::uint32_t t = 0; t < threads; ++t) recording.threads.push_back({100 + t, "pool"});
  for (const Made& span : spans) {
    recording.name.push_back(static_cast<std::uint32_t>(recording.names.size()));
    recording.names.push_back(span.name);
    recording.thread.push_back(span.thread);
    recording.kind.push_back(span.kind);
    recording.begin_ns.push_back(span.begin_ns);
    recording.end_ns.push_back(span.end_ns);
  }
  return recording;
}

TEST(Trace, IsJsonWithAProcessForEachAndTimesOfTheControllersClock) {
  std::vector<ProfiledProcess> processes{
      {"controller", 0, make({{"step 3", SpanKind::kStep, 1'000'000, 5'000'000}})},
      // This worker's clock shows 2 ms more.
      {"policy 0", 2'000'000,
       make({{"mm \"x\"", SpanKind::kKernel, 4'000'250, 4'500'000},
             {"update", SpanKind::kCall, 4'000'000, 6'000'001}})}};
  processes[1].recording.cut = 7;
  const auto trace = nlohmann::json::parse(chrome_trace(processes, 1'000'000));
  EXPECT_EQ(trace["otherData"]["spans_cut"], (nlohmann::json{{"policy 0", 7}}));
  std::vector<nlohmann::json> spans;
  std::map<int, std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
    if (event["name"] == "process_name") names[event["pid"]] = event["args"]["name"];
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{0, "controller"}, {1, "policy 0"}}));
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["ts"], 0.0);
  EXPECT_EQ(spans[0]["dur"], 4000.0);
  EXPECT_EQ(spans[1]["name"], "update") << "outer ones come first";
  EXPECT_EQ(spans[1]["ts"], 1000.0);
  EXPECT_EQ(spans[1]["dur"], 2000.001);
  EXPECT_EQ(spans[2]["name"], "mm \"x\"");
  EXPECT_EQ(spans[2]["cat"], "kernel");
  EXPECT_EQ(spans[2]["ts"], 1000.25);
  EXPECT_EQ(spans[2]["tid"], 100);
}

TEST(Trace, WithoutSpansIsStillJson) {
  EXPECT_EQ(nlohmann::json::parse(chrome_trace({}, 0))["traceEvents"].size(), 0u);
}

TEST(TimeUse, CountsWhatOperationsDidThemselvesByLap) {
  constexpr std::int64_t kMs = 1'000'000;
  const std::vector<ProfiledProcess> processes{
      {"controller", 0,
       make(
           {{"gen", SpanKind::kLap, 0, 10 * kMs}, {"update", SpanKind::kLap, 10 * kMs, 40 * kMs}})},
      {"policy 0", 0,
       make({{"generate", SpanKind::kCall, 0, 9 * kMs},
             {"engine step", SpanKind::kOperation, 1 * kMs, 8 * kMs},
             {"linear", SpanKind::kOperation, 2 * kMs, 6 * kMs},
             {"aten::mm", SpanKind::kKernel, 3 * kMs, 5 * kMs},     // linear's
             {"aten::empty", SpanKind::kKernel, 8 * kMs, 9 * kMs},  // of the call itself
             {"train", SpanKind::kCall, 11 * kMs, 39 * kMs},
             {"aten::mm", SpanKind::kKernel, 0, 40 * kMs, 1}},  // a thread that takes no calls
            2)}};
  const std::vector<LapUse> uses = time_use(processes);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].name, "update");
  EXPECT_NEAR(uses[0].seconds, 0.030, 1e-9);
  EXPECT_NEAR(uses[0].share, 0.75, 1e-9);
  ASSERT_EQ(uses[0].operations.size(), 1u);
  EXPECT_EQ(uses[0].operations[0].first, "train itself");
  ASSERT_EQ(uses[1].operations.size(), 4u);
  EXPECT_EQ(uses[1].operations[0].first, "linear");
  EXPECT_NEAR(uses[1].operations[0].second, 0.004, 1e-9);
  EXPECT_EQ(uses[1].operations[1].first, "engine step");
  EXPECT_NEAR(uses[1].operations[1].second, 0.003, 1e-9);
  double all = 0;
  for (const auto& [name, seconds] : uses[1].operations) all += seconds;
  EXPECT_NEAR(all, 0.009, 1e-9) << "nothing is counted twice";
}

}  // namespace
}  // namespace rl::profile
