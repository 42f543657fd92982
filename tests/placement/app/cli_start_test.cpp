#include "placement/app/cli_start.h"

#include "runtime/process/session.h"
#include "tests/placement/app/clean_environment.h"
#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

// What a node does once it runs is for tests of whole clusters.
class StartTest : public ::testing::Test {
 protected:
  StartTest() {
    options_.address = "127.0.0.1:1";  // where no head is: nothing would start
    options_.amounts.gpus = 0;
  }
  void expect_refused_start(const std::string& error) const {
    const Said said = said_by([&] { return start_command(options_, metrics_); });
    EXPECT_EQ(said.code, 1);
    EXPECT_EQ(said.out, "");
    EXPECT_EQ(said.err, error);
    EXPECT_TRUE(runtime::running_sessions().empty());
  }

  const CleanEnvironment environment_;
  const support::ScopedVariable token_{"STARLING_TOKEN", "secret"};
  StartOptions options_;
  runtime::MetricsProvider metrics_;
};

TEST_F(StartTest, AMistakeIsSaidOnceBeforeAnythingRuns) {
  options_.labels = {"zone\x1b[2J"};
  expect_refused_start("error: --label is not KEY=VALUE: zone\\x1b[2J\n");
}

TEST_F(StartTest, ACertificateThatCannotBeUsedIsKnownBeforeTheNodeRuns) {
  runtime::TlsFiles checked;
  metrics_.check_tls = [&](const runtime::TlsFiles& files) {
    checked = files;
    return runtime::invalid_argument("/x/cert.pem has no certificate in it");
  };
  options_.tls_cert = "/x/cert.pem";
  options_.tls_key = "/x/key.pem";
  expect_refused_start("error: --tls-cert, --tls-key: /x/cert.pem has no certificate in it\n");
  EXPECT_EQ(checked.certificate, "/x/cert.pem");
  EXPECT_EQ(checked.key, "/x/key.pem");
}

}  // namespace
}  // namespace placement
