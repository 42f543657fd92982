#include "placement/app/cli_head.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "placement/scheduler/cluster_scheduler.h"
#include "runtime/node/head_child.h"
#include "tests/placement/app/fake_cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/in_child.h"

namespace placement {
namespace {

/// The command runs in a child, of which it takes the signals.
class HeadCommand : public ::testing::Test {
 protected:
  HeadCommand() {
    options_.cluster = runtime::ClusterId::random().hex();
    options_.node = runtime::NodeId::random().hex();
    options_.socket = folder_.file("head.sock");
  }
  int command() const {
    return head_command(options_, [] { return std::make_unique<ClusterScheduler>(); });
  }
  void expect_unusable(const std::vector<std::string>& parts) {
    const Said said = said_by([&] { return support::in_child([&] { return command(); }); });
    EXPECT_EQ(said.code, runtime::HeadChild::kExitUnusable);
    expect_said(said.err, parts);
  }
  /// Once it listens it gets these signals.
  Said run_until(const std::vector<int>& signals) {
    std::filesystem::remove(options_.socket);  // of a head before this one
    return said_by([&] {
      return support::in_child([&] {
        std::thread other([&] {
          support::eventually([&] { return std::filesystem::exists(options_.socket); });
          for (const int signal : signals) ::kill(::getpid(), signal);
        });
        const int code = command();
        other.join();
        return code;
      });
    });
  }

  const CleanEnvironment environment_;
  const support::ScopedVariable token_{"STARLING_TOKEN", "secret"};
  const support::TemporaryFolder folder_;
  HeadCommandOptions options_;
};

TEST_F(HeadCommand, IsNotForPeople) {
  const HeadCommandOptions good = options_;
  const std::string why = "started by a node, not by hand";
  options_.cluster = "mine";
  expect_unusable({why});
  options_ = good;
  options_.node = "";
  expect_unusable({why});
  options_ = good;
  const support::ScopedVariable none("STARLING_TOKEN", nullptr);
  expect_unusable({why});
}

TEST_F(HeadCommand, EndsInOrderWhenItIsToldAndByNoInterrupt) {
  const Said said = run_until({SIGINT, SIGPIPE, SIGXFSZ, SIGTERM});
  EXPECT_EQ(said.code, 0) << said.err;
}

TEST_F(HeadCommand, MakesItsJournalOnceAndNotInPlaceOfALostOne) {
  options_.journal = folder_.file("journal");
  options_.again = true;
  expect_unusable({options_.journal, "is gone"});
  EXPECT_FALSE(std::filesystem::exists(options_.journal));
  options_.again = false;
  EXPECT_EQ(run_until({SIGTERM}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(options_.journal));
  options_.again = true;
  EXPECT_EQ(run_until({SIGTERM}).code, 0) << "it is there";
}

TEST_F(HeadCommand, ASocketThatCannotBeMadeIsAnError) {
  options_.socket = folder_.file("missing/head.sock");
  expect_unusable({"missing/head.sock"});
}

}  // namespace
}  // namespace placement
