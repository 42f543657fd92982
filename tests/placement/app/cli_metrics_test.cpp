#include "placement/app/cli_metrics.h"

#include "runtime/observe/metrics_key.h"
#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

class MetricsCommand : public ::testing::Test {
 protected:
  Said metrics(bool key) {
    return said_by([&] { return metrics_command(cluster_.address(), key); });
  }

  FakeCluster cluster_;
};

TEST_F(MetricsCommand, AFileHasThemAsTheNodeSaysThem) {
  const std::string text = "# HELP n \x1b[1m\nn{a=\"\\\\\"} 1\n";
  cluster_.on_observe<runtime::control::ReadMetrics>([&](const auto&) { return text; });
  const Said said = metrics(false);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, text);
}

TEST_F(MetricsCommand, TheKeyNeedsNoNodeAndIsNotTheToken) {
  cluster_.node().close();
  const Said said = metrics(true);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, runtime::metrics_key(runtime::FakeNode::kToken) + "\n");
  EXPECT_EQ(said.out.find(runtime::FakeNode::kToken), std::string::npos);
  EXPECT_EQ(metrics(false).code, 1);
}

TEST_F(MetricsCommand, ARefusalIsAnError) {
  cluster_.on_observe<runtime::control::ReadMetrics>(
      [](const auto&) { return runtime::unimplemented("no metrics here"); });
  const Said said = metrics(false);
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out, "");
  expect_said(said.err, {"no metrics here"});
}

}  // namespace
}  // namespace placement
