#include "runtime/node/worker_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

#include "runtime/transport/blocking.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkerProcessTest : public ::testing::Test {
 protected:
  WorkerProcessTest() { std::filesystem::create_directories(folder_.path() / "logs"); }
  ~WorkerProcessTest() override {
    on_loop(loop_, [&] {
      process_.reset();
      return 0;
    });
  }
  /// A shell's own words, as the worker.
  void start(const std::string& script) {
    const std::string program = folder_.file("worker");
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    WorkerProcessSpec spec;
    spec.identity.worker = WorkerId::random();
    spec.identity.session_dir = folder_.path().string();
    spec.program = program;
    spec.env = {{"NAME", "counter"}};
    spec.threads = 3;
    auto started = on_loop(loop_, [&] {
      return WorkerProcess::start(loop_, spec,
                                  {[this](const LogLines& lines) {
                                     for (const std::string& line : lines.lines)
                                       said_ += lines.class_name + ": " + line + "\n";
                                   },
                                   [this](DeathCause cause) {
                                     cause_ = process_->finish(std::move(cause));
                                     ended_.set();
                                   }});
    });
    ASSERT_TRUE(started.ok()) << started.status().to_string();
    process_ = std::move(*started);
    process_->set_log_name("Counter");
  }
  DeathCause wait() {
    EXPECT_TRUE(loop_.run_until(ended_, deadline_after(seconds(30))));
    return cause_.value_or(DeathCause{});
  }

  support::TemporaryFolder folder_;
  EventLoop loop_;
  Event ended_{loop_};
  std::string said_;
  std::optional<DeathCause> cause_;
  std::unique_ptr<WorkerProcess> process_;
};

TEST_F(WorkerProcessTest, TellsItsLinesAndHowItEnded) {
  ASSERT_EQ(::mkfifo((folder_.path() / "go").c_str(), 0600), 0);
  start(
      "read wait < \"$PWD/go\"; echo $NAME $OMP_NUM_THREADS; echo wrong >&2; printf rest; exit 3");
  std::ofstream(folder_.path() / "go") << "\n";
  const DeathCause cause = wait();
  EXPECT_EQ(cause.exit_code, 3);
  EXPECT_EQ(cause.output_tail, "wrong");
  EXPECT_NE(said_.find("Counter: counter 3\n"), std::string::npos) << said_;
  EXPECT_NE(said_.find("Counter: rest\n"), std::string::npos) << "without an end of its line";
}

TEST_F(WorkerProcessTest, SaysWhyItsNodeEndedIt) {
  start("sleep 60");
  on_loop(loop_, [&] {
    process_->end("its job ended", milliseconds(0));
    process_->end("another reason", milliseconds(0));
    return 0;
  });
  EXPECT_TRUE(process_->is_ending());
  const DeathCause cause = wait();
  EXPECT_TRUE(cause.text.starts_with("its job ended (")) << cause.text;
  EXPECT_EQ(cause.output_tail, "");
}

}  // namespace
}  // namespace runtime
