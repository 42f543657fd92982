// A cluster that a driver starts for itself. A script stands for the program `starling`.
#include "runtime/control/local_cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/eventually.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class LocalClusterTest : public ::testing::Test {
 protected:
  /// What the program does; it is at work in a folder of the test's, $HERE.
  void script(const std::string& lines) {
    std::ofstream(program_) << "#!/bin/sh\nHERE=" << folder_.path().string() << "\n" << lines;
    fs::permissions(program_, fs::perms::owner_all);
  }
  /// Says where it is, and waits to be ended.
  static std::string serve() {
    return "trap 'echo ended > $HERE/ended; exit 0' TERM\n"
           "echo 127.0.0.1:4711\n"
           "while :; do sleep 0.02; done\n";
  }
  Result<std::unique_ptr<LocalCluster>> start(std::chrono::milliseconds timeout = 20s) {
    return LocalCluster::start({"--num-cpus", "2"}, timeout);
  }
  std::string content(const std::string& file) const {
    return support::content_of(folder_.path() / file);
  }
  /// Session folders that are left of clusters of this process.
  std::size_t roots() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "run"))
      count += entry.is_directory() ? 1 : 0;
    return count;
  }
  void expect_refused(const Status& why, const std::string& said) const {
    EXPECT_EQ(why.code(), ErrorCode::kUnavailable);
    EXPECT_NE(why.message().find("did not come up: " + said), std::string::npos) << why.message();
    EXPECT_EQ(roots(), 0u);
  }

  const support::TemporaryFolder folder_;
  const fs::path program_ = folder_.path() / "program";
  // What a start looks at, and changes.
  const support::ScopedVariable run_{"XDG_RUNTIME_DIR",
                                     [&] {
                                       const fs::path run = folder_.path() / "run";
                                       fs::create_directory(run);
                                       fs::permissions(run, fs::perms::owner_all);
                                       return run;
                                     }()
                                         .c_str()};
  const support::ScopedVariable root_{"STARLING_SESSION_ROOT", nullptr};
  const support::ScopedVariable address_{"STARLING_ADDRESS", "10.0.0.1:1"};
  const support::ScopedVariable named_{"STARLING_PROGRAM", program_.c_str()};
};

TEST_F(LocalClusterTest, IsThereWhenItHasSaidWhere) {
  script(
      "echo \"$@\" > $HERE/arguments\n"
      "echo \"$STARLING_SESSION_ROOT $STARLING_ADDRESS\" > $HERE/environment\n"
      "echo starting: 1 of 2\n" +
      serve());
  fs::path root;
  {
    const auto cluster = start();
    ASSERT_TRUE(cluster.ok()) << cluster.status().to_string();
    EXPECT_EQ((*cluster)->address(), "127.0.0.1:4711");
    EXPECT_EQ(content("arguments"), "start --head --private --port 0 --num-cpus 2\n");
    root = std::getenv("STARLING_SESSION_ROOT");
    EXPECT_EQ(content("environment"), root.string() + " \n")
        << "it joins no cluster that this process was to join";
    EXPECT_TRUE(fs::exists(root));
    EXPECT_FALSE(fs::exists(folder_.path() / "ended"));
  }
  EXPECT_EQ(content("ended"), "ended\n") << "its end is waited for";
  EXPECT_FALSE(fs::exists(root));
}

TEST_F(LocalClusterTest, NotEveryLineIsAnAddress) {
  script(
      "echo 127.0.0.1:0\n"
      "echo at 127.0.0.1:1\n"
      "echo no address\n"
      "printf 127.0.0.1:2\n"
      "sleep 0.02\n"
      "echo 34\n" +
      serve());
  const auto cluster = start();
  ASSERT_TRUE(cluster.ok()) << cluster.status().to_string();
  EXPECT_TRUE((*cluster)->address() == "127.0.0.1:234" || (*cluster)->address() == "127.0.0.1:4711")
      << (*cluster)->address();
}

TEST_F(LocalClusterTest, OneThatEndsIsToldWithWhatItWrote) {
  script("echo 'the port is taken' >&2; exit 1\n");
  expect_refused(start().status(), "the port is taken");
  EXPECT_EQ(std::getenv("STARLING_SESSION_ROOT"), nullptr);
}

TEST_F(LocalClusterTest, OneThatEndsInSilenceIsToldToo) {
  script("exit 1\n");
  expect_refused(start().status(), "it wrote nothing");
}

TEST_F(LocalClusterTest, OneThatTakesTooLongIsEnded) {
  script(
      "trap 'echo ended > $HERE/ended; exit 0' TERM\n"
      "echo slow >&2\n"
      ": > $HERE/up\n"
      "while :; do sleep 0.02; done\n");
  // The time is that of a machine on which even this script takes its time to begin.
  const Status late = start(200ms).status();
  EXPECT_EQ(late.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(fs::exists(folder_.path() / "up"), fs::exists(folder_.path() / "ended"));
  EXPECT_EQ(roots(), 0u);
}

TEST_F(LocalClusterTest, AProgramThatCannotRunIsNamed) {
  const Status why = start().status();  // there is no such file
  EXPECT_EQ(why.code(), ErrorCode::kNotFound);
  EXPECT_NE(why.message().find(program_.string()), std::string::npos) << why.message();
  EXPECT_EQ(roots(), 0u);
}

TEST_F(LocalClusterTest, TheProgramIsTheOneThatIsNamedElseOneOfThePath) {
  EXPECT_EQ(*find_starling_program(), program_);
  const support::ScopedVariable unnamed("STARLING_PROGRAM", nullptr);
  const fs::path folder = folder_.path() / "bin";
  fs::create_directory(folder);
  const support::ScopedVariable path("PATH", ("/nowhere:" + folder.string()).c_str());
  std::ofstream(folder / "starling") << "#!/bin/sh\n";
  // One next to this test's program, or in the bin of its build, comes before those of the path.
  const auto built = find_starling_program();
  EXPECT_TRUE(built.ok() || built.status().code() == ErrorCode::kNotFound);
  EXPECT_NE(built.value_or({}), folder / "starling") << "it cannot be executed";
  fs::permissions(folder / "starling", fs::perms::owner_all);
  const auto found = find_starling_program();
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(*found, built.value_or(folder / "starling"));
}

}  // namespace
}  // namespace runtime
