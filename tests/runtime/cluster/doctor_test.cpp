// `starling doctor --cluster` on connections that packets do not pass, and the time that it takes
// to say so.
#include "fixture.h"

namespace runtime::test {
namespace {

class DoctorTest : public NetworkTest {
 protected:
  struct Report {
    Json findings;
    int code = -1;
    std::chrono::milliseconds took{0};

    /// Of a check, those in a state.
    std::vector<Json> in_state(const std::string& check, const std::string& state) const {
      std::vector<Json> found;
      for (const Json& finding : findings) {
        if (finding["check"] == check && finding["state"] == state) found.push_back(finding);
      }
      return found;
    }
  };
  Report examine(int machine) {
    Report report;
    const std::int64_t begin = now_us();
    const Finished finished = cluster_->run(
        machine, {starling_program(), "doctor", "--cluster", "--json", "--bytes", "1MiB"}, 200s);
    report.took = std::chrono::milliseconds((now_us() - begin) / 1000);
    report.code = finished.code;
    const Json json = Json::parse(finished.output, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(json.is_object()) << finished.output;
    if (json.is_object()) report.findings = json["findings"];
    return report;
  }
  std::string pair(int from, int to) const {
    return cluster_->address(from) + " -> " + cluster_->address(to);
  }
};

TEST_F(DoctorTest, NamesTheBrokenPair) {
  start({.machines = 4, .arguments = {"--num-cpus", "1"}});
  if (IsSkipped()) return;
  const Report whole = examine(0);
  EXPECT_EQ(whole.in_state("connection", "failure").size(), 0u) << whole.findings.dump(1);
  EXPECT_EQ(
      whole.in_state("connection", "ok").size() + whole.in_state("connection", "warning").size(),
      12u)
      << whole.findings.dump(1);

  network_->cut(1, 2);
  const Report cut = examine(0);
  std::printf("the whole cluster took %lld ms, with a broken pair %lld ms\n",
              static_cast<long long>(whole.took.count()), static_cast<long long>(cut.took.count()));
  EXPECT_EQ(cut.code, 1);
  const auto broken = cut.in_state("connection", "failure");
  ASSERT_EQ(broken.size(), 2u) << cut.findings.dump(
      1);  // nothing is answered over a connection that one way is missing from
  const std::string names = broken[0].value("what", "") + "\n" + broken[1].value("what", "");
  EXPECT_NE(names.find(pair(1, 2) + ": "), std::string::npos) << names;
  EXPECT_NE(names.find(pair(2, 1) + ": "), std::string::npos) << names;
  for (const Json& finding : broken) {
    EXPECT_NE(finding.value("cure", "").find(cluster_->address(1)), std::string::npos) << finding;
    EXPECT_NE(finding.value("cure", "").find(cluster_->address(2)), std::string::npos) << finding;
  }
  const auto skipped = cut.in_state("all-reduce", "note");
  ASSERT_EQ(skipped.size(), 1u) << cut.findings.dump(1);
  EXPECT_NE(skipped[0].value("what", "").find("not run"), std::string::npos) << skipped[0];

  network_->heal();
  EXPECT_EQ(examine(3).in_state("connection", "failure").size(), 0u);
}

class DoctorTiming : public DoctorTest {};

// All pairs of a node are broken then: they are not waited for one after the other.
TEST_F(DoctorTiming, ANodeThatHasBecomeDeafDoesNotTakeTheTimeOfEachOfItsPairs) {
  start({.machines = 6, .arguments = {"--num-cpus", "1"}});
  if (IsSkipped()) return;
  for (int other = 1; other < 5; ++other)
    network_->cut(other, 5);  // but not from the head: it stays a member
  const Report report = examine(0);
  std::printf("with a node that hears only the head: %lld ms\n",
              static_cast<long long>(report.took.count()));
  EXPECT_EQ(report.in_state("connection", "failure").size(), 8u) << report.findings.dump(1);
  EXPECT_LT(report.took, 30s);
}

}  // namespace
}  // namespace runtime::test
