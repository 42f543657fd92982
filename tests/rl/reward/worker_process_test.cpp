// A worker process whose program is a shell's script.
#include "rl/reward/worker_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;

// It stays until its owner is gone.
const std::string kUntilTheEnd = "read end <&4";

std::unique_ptr<WorkerProcess> worker_of(const std::string& script) {
  auto worker = WorkerProcess::start({"/bin/sh", "-c", script});
  EXPECT_TRUE(worker.ok()) << worker.status().to_string();
  return worker.ok() ? std::move(*worker) : nullptr;
}

std::string line_from(WorkerProcess& worker) {
  std::optional<std::string> line;
  support::eventually([&] {
    worker.receive();
    line = worker.next_line();
    return line.has_value();
  });
  return line.value_or("no line");
}

TEST(WorkerProcess, LinesGoBothWaysAndItsInputIsEmpty) {
  const auto worker =
      worker_of("read input || input=nothing; read line <&3; read next <&3;" +
                std::string("echo \"$input $line\" >&3; echo \"$next\" >&3;") + kUntilTheEnd);
  ASSERT_TRUE(worker);
  worker->send_line("first");
  worker->send_line("second");
  EXPECT_EQ(line_from(*worker), "nothing first");
  EXPECT_EQ(line_from(*worker), "second");
}

TEST(WorkerProcess, ItsOutputIsNoMessageAndComesInWholeLines) {
  const auto worker = worker_of(
      "echo wrong >&2; printf half; echo ready >&3; read go <&3;"
      "printf ' more\\nrest'; echo done >&3;" +
      kUntilTheEnd);
  ASSERT_TRUE(worker);
  EXPECT_EQ(line_from(*worker), "ready");
  EXPECT_EQ(worker->output_lines(), std::vector<std::string>{"wrong"});
  worker->send_line("go");
  EXPECT_EQ(line_from(*worker), "done");
  EXPECT_EQ(worker->output_lines(), std::vector<std::string>{"half more"});
  EXPECT_EQ(worker->output_lines(/*all=*/true), std::vector<std::string>{"rest"});
}

TEST(WorkerProcess, ALineWithoutAnEndIsAFailure) {
  const auto worker = worker_of("head -c 5000000 /dev/zero | tr '\\0' x >&3;" + kUntilTheEnd);
  ASSERT_TRUE(worker);
  EXPECT_TRUE(support::eventually([&] { return !worker->receive(); }));
  EXPECT_FALSE(worker->next_line());
  EXPECT_FALSE(worker->has_died()) << "it may go on, and is not listened to";
}

TEST(WorkerProcess, AnEndIsDescribed) {
  const auto described = [](const std::string& script) {
    const auto worker = worker_of(script);
    if (!worker) return std::string();
    EXPECT_TRUE(support::eventually([&] { return worker->has_died(); }));
    EXPECT_FALSE(worker->receive());
    return worker->describe_death();
  };
  EXPECT_EQ(described("exit 3"), "ended with status 3");
  EXPECT_EQ(described("kill -9 $$"), "was killed by signal 9 (Killed)");
}

TEST(WorkerProcess, OneThatHasClosedItsConnectionMayLive) {
  const auto worker = worker_of("exec 3<&-;" + kUntilTheEnd);
  ASSERT_TRUE(worker);
  EXPECT_TRUE(support::eventually([&] { return !worker->receive(); }));
  EXPECT_FALSE(worker->has_died());
  EXPECT_EQ(worker->describe_death(), "closed its connection");
  worker->send_line("lost");
  EXPECT_FALSE(worker->wants_to_write()) << "nothing is kept for it";
}

TEST(WorkerProcess, AProgramThatIsNotThereIsNamed) {
  const auto worker = WorkerProcess::start({"/no/such/program"});
  ASSERT_FALSE(worker.ok());
  EXPECT_NE(worker.status().message().find("/no/such/program"), std::string::npos)
      << worker.status().to_string();
}

// A process that it may not adopt, such as this one, is no copy.
TEST(WorkerProcess, ACopyIsAChildOrAnError) {
  for (const std::string& answer :
       {std::string("{}"), std::string("no JSON"), std::string(R"({"pid": "7"})"),
        R"({"pid": )" + std::to_string(::getpid()) + "}"}) {
    const auto worker = worker_of("echo '" + answer + "' >&3;" + kUntilTheEnd);
    ASSERT_TRUE(worker);
    support::expect_failure(worker->copy().status(), ErrorCode::kUnavailable, {"made none"});
  }
  const auto gone = worker_of("exit 0");
  ASSERT_TRUE(gone);
  EXPECT_TRUE(support::eventually([&] { return gone->has_died(); }));
  support::expect_failure(gone->copy().status(), ErrorCode::kUnavailable, {"takes no more"});
}

}  // namespace
}  // namespace rl
