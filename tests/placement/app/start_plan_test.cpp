#include "placement/app/start_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "runtime/control/token_strength.h"
#include "runtime/process/session_folder.h"
#include "runtime/transport/token_key.h"
#include "tests/placement/app/clean_environment.h"
#include "tests/support/expect_failure.h"

namespace placement {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using runtime::Endpoint;
using runtime::ErrorCode;
using support::expect_failure;
using support::ScopedVariable;

class StartPlanTest : public ::testing::Test {
 protected:
  StartPlanTest() {
    for (StartOptions* options : {&head_, &member_}) {
      options->amounts.cpus = 1;
      options->amounts.gpus = 0;  // no driver is asked
    }
    head_.head = true;
    member_.address = "127.0.0.1:7000";
  }
  static StartPlan plan(const StartOptions& options) {
    auto made = make_plan(options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? *std::move(made) : StartPlan();
  }
  /// A cluster that has run before, in the journal of head_.
  ClusterFile write_journal(const std::string& token) {
    const ClusterFile file{runtime::ClusterId::random(), token, runtime::NodeId::random(), "next"};
    const fs::path journal = environment_.folder().path() / "journal";
    const runtime::Status written = write_cluster_file(journal, file);
    EXPECT_TRUE(written.ok()) << written.to_string();
    std::ofstream(journal / "journal.db") << "rows";
    head_.journal = journal.string();
    return file;
  }

  const CleanEnvironment environment_;
  StartOptions head_, member_;
};

TEST_F(StartPlanTest, AMistakeIsNamedByItsOption) {
  struct Case {
    void (*make)(StartOptions& options);
    std::vector<std::string> named;
  };
  const auto expect_named = [](const StartOptions& right, const std::vector<Case>& cases) {
    for (const Case& mistake : cases) {
      StartOptions options = right;
      mistake.make(options);
      expect_failure(make_plan(options).status(), ErrorCode::kInvalidArgument, mistake.named);
    }
  };
  expect_named(
      head_,
      {{[](StartOptions& o) { o.head = false; }, {"--head", "--address"}},
       {[](StartOptions& o) { o.address = "127.0.0.1:1"; }, {"--head", "--address"}},
       {[](StartOptions& o) { o.amounts.gpus = 0.5; }, {"whole GPUs", "0.5"}},
       {[](StartOptions& o) { o.amounts.resources = "{x}"; }, {"--resources"}},
       {[](StartOptions& o) { o.labels = {"zone"}; }, {"--label", "zone"}},
       {[](StartOptions& o) { o.labels = {"zone=a,b"}; }, {"--label zone=a,b", "comma"}},
       {[](StartOptions& o) { o.object_store_bytes = 10; }, {"--object-store-memory 10"}},
       {[](StartOptions& o) { o.memory_threshold = 1.5; }, {"--memory-threshold"}},
       {[](StartOptions& o) { o.memory_threshold = -0.5; }, {"--memory-threshold"}},
       {[](StartOptions& o) { o.memory_threshold = NAN; }, {"--memory-threshold"}},
       {[](StartOptions& o) { o.log_limit = 1; }, {"--log-limit 1:", "1048576"}},
       {[](StartOptions& o) { o.spill_limit = 0, o.spill_dir = "/x"; },
        {"--spill-limit 0", "--spill-dir"}},
       {[](StartOptions& o) { o.metrics = "all"; }, {"--metrics all", "key", "open", "off"}},
       {[](StartOptions& o) { o.tls_cert = "cert"; }, {"--tls-cert", "--tls-key"}},
       {[](StartOptions& o) { o.tls_key = "key"; }, {"--tls-cert", "--tls-key"}},
       {[](StartOptions& o) { o.drain_deadline = "soon"; }, {"--drain-deadline", "soon"}},
       {[](StartOptions& o) { o.preemption_command = "x"; }, {"--preemption-command", "head"}},
       {[](StartOptions& o) { o.advertise = "10.0.0.1:80"; }, {"--advertise 10.0.0.1:80"}},
       {[](StartOptions& o) { o.advertise = "::"; }, {"--advertise ::"}},
       {[](StartOptions& o) {
          o.aliases = {"gate", "a b"};
        },
        {"--alias a b"}},
       {[](StartOptions& o) { o.aliases = {"unix:/x"}; }, {"--alias unix:/x"}}});
  expect_named(
      member_,
      {{[](StartOptions& o) { o.address = "junk"; }, {"junk", "expected HOST:PORT"}},
       {[](StartOptions& o) { o.journal = "/x"; }, {"--journal", "--head"}},
       {[](StartOptions& o) { o.autoscaler = "a.yaml"; }, {"--autoscaler", "--head"}},
       {[](StartOptions& o) { o.preemption_file = "/x", o.preemption_poll = "99ms"; },
        {"--preemption-poll 99ms", "100ms"}},
       {[](StartOptions& o) { o.preemption_url = "http://127.0.0.1:80"; }, {"--preemption-url"}}});
  head_.job_user = "no such user";
  expect_failure(make_plan(head_).status(), ErrorCode::kNotFound, {"--job-user", "no such user"});
}

TEST_F(StartPlanTest, AHeadIsForItsMachineAloneUnlessItIsToldOtherwise) {
  const StartPlan first = plan(head_), second = plan(head_);
  EXPECT_TRUE(first.node.is_head);
  EXPECT_EQ(first.node.bind, Endpoint::tcp("127.0.0.1", kDefaultPort));
  EXPECT_GE(runtime::estimated_bits(first.node.token), runtime::kTokenBitsMin);
  EXPECT_NE(first.node.token, second.node.token);
  EXPECT_NE(first.node.cluster, second.node.cluster);
  EXPECT_NE(first.node.node, second.node.node);
  head_.bind = "0.0.0.0";
  head_.port = 0;
  const StartPlan open = plan(head_);
  EXPECT_EQ(open.node.bind, Endpoint::tcp("0.0.0.0", 0));
  EXPECT_NE(open.node.advertise_host, "") << "others cannot connect to any address";
  head_.advertise = "gate.example";
  EXPECT_EQ(plan(head_).node.advertise_host, "gate.example");
}

TEST_F(StartPlanTest, ATokenThatIsEasyToGuessIsForThisMachineAlone) {
  const ScopedVariable weak("STARLING_TOKEN", "letmein");
  EXPECT_EQ(plan(head_).node.token, "letmein");
  head_.bind = "0.0.0.0";
  const runtime::Status refused = make_plan(head_).status();
  expect_failure(refused, ErrorCode::kInvalidArgument,
                 {"--bind 0.0.0.0", "STARLING_TOKEN", "easy to guess"});
  EXPECT_EQ(refused.message().find("letmein"), std::string::npos) << "it is a secret";
  write_journal("letmein");
  expect_failure(make_plan(head_).status(), ErrorCode::kInvalidArgument,
                 {"of the cluster in --journal " + head_.journal, "starling token --new"});
}

TEST_F(StartPlanTest, ASubmittersTokenStartsNoNode) {
  const ScopedVariable token("STARLING_TOKEN", runtime::submitter_token("secret").c_str());
  for (const StartOptions& options : {head_, member_})
    expect_failure(make_plan(options).status(), ErrorCode::kInvalidArgument,
                   {"STARLING_TOKEN", "submitter's token"});
}

TEST_F(StartPlanTest, AJournalsClusterGoesOn) {
  const ClusterFile file = write_journal("secret");
  const StartPlan goes_on = plan(head_);
  EXPECT_EQ(goes_on.earlier, file);
  EXPECT_EQ(goes_on.node.journal, head_.journal);
  EXPECT_EQ(goes_on.node.cluster, file.cluster);
  EXPECT_EQ(goes_on.node.token, "secret");
  EXPECT_EQ(goes_on.node.next_token, "next");
  EXPECT_EQ(goes_on.node.replaces, file.node);
  EXPECT_NE(goes_on.node.node, file.node);
  for (const char* known : {"secret", "next"}) {
    const ScopedVariable token("STARLING_TOKEN", known);
    EXPECT_EQ(plan(head_).node.token, "secret") << known;
  }
  const ScopedVariable token("STARLING_TOKEN", "of another cluster");
  expect_failure(make_plan(head_).status(), ErrorCode::kInvalidArgument,
                 {"--journal " + head_.journal, "another token"});
}

TEST_F(StartPlanTest, AMemberJoinsTheHeadEvenIfAnotherNodeIsNearer) {
  expect_failure(make_plan(member_).status(), ErrorCode::kNotFound,
                 {"127.0.0.1:7000", "STARLING_TOKEN"});
  runtime::SessionInfo nearer;
  nearer.cluster = runtime::ClusterId::random();
  nearer.node = runtime::NodeId::random();
  nearer.address = "127.0.0.1:7001";
  nearer.head_address = member_.address;
  auto folder = runtime::SessionFolder::create(nearer.cluster, nearer.node, "of the session");
  ASSERT_TRUE(folder.ok()) << folder.status().to_string();
  ASSERT_TRUE(folder->publish(nearer, false).ok());
  const StartPlan joins = plan(member_);
  EXPECT_FALSE(joins.node.is_head);
  EXPECT_EQ(joins.node.token, "of the session");
  EXPECT_EQ(joins.head.address, "127.0.0.1:7000");
  EXPECT_EQ(joins.node.head, Endpoint::tcp("127.0.0.1", 7000));
  EXPECT_EQ(joins.node.bind, Endpoint::tcp("127.0.0.1", 0)) << "where it comes from, at any port";
}

TEST_F(StartPlanTest, OnlyANodeThatOthersCanTakeOverForIsDrainedBySigterm) {
  const ScopedVariable token("STARLING_TOKEN", "secret");
  member_.drain_deadline = head_.drain_deadline = "45s";
  EXPECT_EQ(plan(member_).drain_time, 45s);
  EXPECT_EQ(plan(member_).node.drain_time, 45s);
  EXPECT_EQ(plan(head_).drain_time, 0s);
  member_.drain_deadline = "0";
  EXPECT_EQ(plan(member_).drain_time, 0s);
  EXPECT_EQ(plan(member_).node.drain_time, 30s) << "a notice of preemption still has its time";
  member_.drain_deadline = "45s";
  member_.is_private = true;
  EXPECT_EQ(plan(member_).drain_time, 0s);
}

TEST_F(StartPlanTest, OffersWhatTheOptionsSay) {
  head_.amounts.cpus = 3;
  head_.amounts.resources = R"({"disk": 2, "tape": 0})";
  head_.labels = {"zone=a", "kind="};
  StartPlan offers = plan(head_);
  offers.node.resources.erase("memory");  // the machine's
  EXPECT_EQ(offers.node.resources, (runtime::ResourceMap{{"CPU", 3}, {"disk", 2}}));
  EXPECT_EQ(offers.node.labels, (runtime::Labels{{"zone", "a"}, {"kind", ""}}));
  head_.labels = {};
  head_.is_private = true;
  EXPECT_EQ(plan(head_).node.labels, (runtime::Labels{{"starling.io/private", "true"}}));
}

TEST_F(StartPlanTest, FilesAreFoundFromWhereTheCommandWasRun) {
  head_.autoscaler = "scale.yaml";
  head_.autoscaler_stop = 5s;
  head_.tls_cert = "cert.pem";
  head_.tls_key = "key.pem";
  const StartPlan made = plan(head_);
  EXPECT_EQ(made.node.autoscaler, (std::vector<std::string>{"autoscaler", "run", "--config",
                                                            fs::absolute("scale.yaml")}));
  EXPECT_EQ(made.node.autoscaler_stop, 5s);
  EXPECT_EQ(made.node.tls.certificate, fs::absolute("cert.pem"));
  EXPECT_EQ(made.node.tls.key, fs::absolute("key.pem"));
}

TEST_F(StartPlanTest, AnAliasIsAHostWithOrWithoutAPort) {
  head_.aliases = {"gate", "gate:7000", "::1", "[::1]:7000"};
  EXPECT_EQ(plan(head_).node.aliases,
            (std::vector<Endpoint>{Endpoint::tcp("gate", 0), Endpoint::tcp("gate", 7000),
                                   Endpoint::tcp("::1", 0), Endpoint::tcp("::1", 7000)}));
}

}  // namespace
}  // namespace placement
