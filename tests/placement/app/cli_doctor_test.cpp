#include "placement/app/cli_doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/core/clock.h"
#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

namespace control = runtime::control;

/// What it finds about the machine itself is the machine's, and only that of the cluster is looked
/// at here.
class DoctorCommand : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  DoctorCommand() {
    cluster_.on_observe<control::ReadClock>([this](const auto&) {
      const double now = static_cast<double>(runtime::unix_milliseconds()) * 1e-3;
      return runtime::Numbers{{"wall_s", now + seconds_ahead_}};
    });
    cluster_.on_observe<control::MeasurePeer>([this](const control::MeasurePeer& request) {
      measured_.push_back(request);
      return runtime::Numbers{{"bytes_per_s", 2e9}, {"round_trip_s", 1e-4}};
    });
    options_.address = cluster_.address();
    options_.cluster = true;
    options_.json = true;
  }
  /// The findings of that check.
  std::vector<Json> findings(const std::string& check) {
    const Said said = said_by([&] { return doctor_command(options_); });
    const Json report = Json::parse(said.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << said.out << said.err;
    if (!report.is_object()) return {};
    bool failed = false;
    std::vector<Json> found;
    for (const Json& finding : report["findings"]) {
      failed = failed || finding["state"] == "failure";
      if (finding["check"] == check) found.push_back(finding);
    }
    EXPECT_EQ(said.code, failed ? 1 : 0);
    EXPECT_EQ(report["ok"], !failed);
    return found;
  }
  static void expect_finding(const Json& finding, const char* state,
                             const std::vector<std::string>& parts) {
    EXPECT_EQ(finding["state"], state);
    expect_said(finding.dump(), parts);
  }

  FakeCluster cluster_;
  DoctorOptions options_;
  double seconds_ahead_ = 0;
  std::vector<control::MeasurePeer> measured_;
};

TEST_F(DoctorCommand, OneNodeHasNoConnectionToMeasure) {
  const auto found = findings("connection");
  ASSERT_EQ(found.size(), 1u);
  expect_finding(found[0], "note", {"one node", "starling start --address"});
  EXPECT_TRUE(measured_.empty());
}

TEST_F(DoctorCommand, AClockThatIsWrongFails) {
  const std::string check = "clock of " + cluster_.address();
  const auto right = findings(check);
  ASSERT_EQ(right.size(), 1u);
  EXPECT_EQ(right[0]["state"], "ok");
  seconds_ahead_ = 60;
  const auto wrong = findings(check);
  ASSERT_EQ(wrong.size(), 1u);
  expect_finding(wrong[0], "failure", {"ahead of"});
}

TEST_F(DoctorCommand, TheOtherPairsAreMeasuredWhenOneIsBroken) {
  const std::string gone = cluster_.add_node().node.short_hex();
  options_.bytes = 5 << 20;
  const auto pairs = findings("connection");
  ASSERT_EQ(pairs.size(), 2u);
  expect_finding(pairs[0], "ok", {cluster_.address() + " -> 127.0.0.1:1: 2000 MB/s"});
  expect_finding(pairs[1], "failure", {"127.0.0.1:1 -> " + cluster_.address()});
  ASSERT_EQ(measured_.size(), 2u);
  EXPECT_EQ(measured_[0], (control::MeasurePeer{"127.0.0.1:1", 1})) << "whether it is reached";
  EXPECT_EQ(measured_[1], (control::MeasurePeer{"127.0.0.1:1", 5 << 20}));
  const auto lost = findings("node " + gone);
  ASSERT_EQ(lost.size(), 1u);
  expect_finding(lost[0], "failure", {"127.0.0.1:1 cannot be reached from here", "open that port"});
  const auto reduced = findings("all-reduce");
  ASSERT_EQ(reduced.size(), 1u);
  expect_finding(reduced[0], "note", {"would hang at the broken connection"});
}

TEST_F(DoctorCommand, WhatAPairSaysOfItsFaultIsFound) {
  cluster_.add_node();
  cluster_.on_observe<control::MeasurePeer>(
      [](const auto&) { return runtime::unavailable("no route to host"); });
  const auto pairs = findings("connection");
  ASSERT_EQ(pairs.size(), 2u);
  expect_finding(pairs[0], "failure", {"-> 127.0.0.1:1: no route to host"});
}

TEST_F(DoctorCommand, OfManyNodesEachIsMeasuredWithTwo) {
  for (int i = 1; i < 8; ++i) cluster_.add_node().address = "127.0.0.1:" + std::to_string(i);
  EXPECT_EQ(findings("connection").size(), 56u) << "all pairs of eight";
  measured_.clear();
  cluster_.add_node().address = "127.0.0.1:8";
  EXPECT_EQ(findings("connection").size(), 18u);
  std::vector<std::string> reached;
  for (const control::MeasurePeer& request : measured_) {
    if (request.bytes == 1) reached.push_back(request.address);
  }
  std::sort(reached.begin(), reached.end());
  EXPECT_EQ(reached, (std::vector<std::string>{"127.0.0.1:1", "127.0.0.1:4"}));
}

TEST_F(DoctorCommand, WithoutAClusterTheMachineIsLookedAt) {
  cluster_.node().close();
  const auto found = findings("cluster");
  ASSERT_EQ(found.size(), 1u);
  expect_finding(found[0], "failure", {"starling start --head"});
  EXPECT_EQ(findings("cores").size(), 1u);
  options_.cluster = false;
  EXPECT_TRUE(findings("cluster").empty());
}

}  // namespace
}  // namespace placement
