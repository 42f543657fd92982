#include "runtime/process/line_merger.h"

#include <gtest/gtest.h>

#include "tests/support/terminal.h"

namespace runtime {
namespace {

using std::chrono::seconds;

struct Output {
  LineMerger merger(LineMergerOptions options = {}) {
    return LineMerger(
        [this](bool is_stderr, const std::string& printed) { (is_stderr ? err : out) += printed; },
        options);
  }
  std::string out, err;
};

LogLines lines(int worker, std::vector<std::string> text) {
  LogLines written;
  written.worker.bytes[0] = static_cast<std::uint8_t>(worker);
  written.class_name = "Echo";
  written.pid = worker;
  written.lines = std::move(text);
  return written;
}

const Deadline kStart = Deadline() + seconds(1000);

TEST(LineMerger, ShowsALineOfManyWorkersOnceAndCounts) {
  Output output;
  LineMerger merger = output.merger();
  for (int worker = 1; worker <= 64; ++worker) merger.add(lines(worker, {"loading"}), kStart);
  EXPECT_EQ(output.out, "(Echo pid=1, node=00000000) loading\n");
  EXPECT_EQ(merger.due(), kStart + seconds(5));
  merger.flush(kStart);
  EXPECT_EQ(output.out,
            "(Echo pid=1, node=00000000) loading\n(Echo) loading [repeated 63 times across the "
            "cluster]\n");
  EXPECT_EQ(merger.due(), Deadline::max());
}

TEST(LineMerger, OneWorkersOwnRepetitionsAreShown) {
  Output output;
  LineMerger merger = output.merger();
  merger.add(lines(1, {"tick", "tick", ""}), kStart);
  merger.add(lines(1, {"tick"}), kStart);
  const std::string prefix = "(Echo pid=1, node=00000000) ";
  EXPECT_EQ(output.out, prefix + "tick\n" + prefix + "tick\n" + prefix + "\n" + prefix + "tick\n");
  EXPECT_EQ(merger.due(), Deadline::max());
}

TEST(LineMerger, TheWindowEnds) {
  Output output;
  LineMerger merger = output.merger();
  merger.add(lines(1, {"a"}), kStart);
  merger.add(lines(2, {"a"}), kStart + seconds(1));
  output.out.clear();
  merger.add(lines(3, {"a"}),
             kStart + seconds(6));  // says first what was repeated, then begins again
  EXPECT_EQ(output.out,
            "(Echo) a [repeated 1 time across the cluster]\n(Echo pid=3, node=00000000) a\n");
}

TEST(LineMerger, MayBeTurnedOffAndRemembersABoundedNumber) {
  Output output;
  LineMerger all = output.merger({.deduplicate = false});
  all.add(lines(1, {"a"}), kStart);
  all.add(lines(2, {"a"}), kStart);
  EXPECT_EQ(output.out, "(Echo pid=1, node=00000000) a\n(Echo pid=2, node=00000000) a\n");
  output.out.clear();
  LineMerger few = output.merger({.lines_max = 1});
  for (int worker : {1, 2}) few.add(lines(worker, {"a", "b"}), kStart);
  EXPECT_EQ(output.out,
            "(Echo pid=1, node=00000000) a\n(Echo pid=1, node=00000000) b\n(Echo pid=2, "
            "node=00000000) b\n");
}

// Of the two streams each by itself: a driver's stdout may be a pipe while its stderr is a
// terminal.
TEST(PrintWorkerLines, ATerminalGetsEscapesAndAPipeGetsBytes) {
  const std::string lines =
      "(Echo pid=7) \x1b[2J\xc2\x9b"
      "31m\u202e\n";
  std::string shown;
  ::testing::internal::CaptureStdout();
  {
    Terminal terminal(2);
    print_worker_lines(/*is_stderr=*/true, lines);
    print_worker_lines(/*is_stderr=*/false, lines);
    shown = terminal.shown();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), lines);
  EXPECT_EQ(shown, "(Echo pid=7) \\x1b[2J\\u009b31m\\u202e\n");
}

}  // namespace
}  // namespace runtime
