// The checker finds what it is for: each promise broken once.
#include "history.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace runtime::test {
namespace {

Event event(Op op, std::string key, std::int64_t value, std::int64_t begin, std::int64_t end,
            std::uint64_t incarnation = 1) {
  return {.client = 1,
          .op = op,
          .key = std::move(key),
          .value = value,
          .begin = begin,
          .end = end,
          .patience = 5'000'000,
          .incarnation = incarnation};
}
Event failed(Event event, ErrorCode code) {
  event.code = code;
  event.text = "as the test wants it";
  return event;
}

struct Case {
  History history;
  Outcome outcome;

  void expect_found(const std::string& part) const {
    const auto found = violations(history, outcome);
    ASSERT_EQ(found.size(), 1u) << part;
    EXPECT_NE(found[0].find(part), std::string::npos) << found[0];
  }
};

/// Two marks, a pair, two additions, a version and a name, all acknowledged and all there.
Case whole() {
  Case made;
  made.history.events = {event(Op::kAdd, "t", 1, 10, 20),    event(Op::kPut, "k", 7, 30, 40),
                         event(Op::kGet, "k", 7, 41, 42),    event(Op::kSum, "sum", 1, 43, 44),
                         event(Op::kAdd, "t", 2, 50, 60, 2), event(Op::kPublish, "w", 3, 61, 62),
                         event(Op::kSum, "sum", 2, 63, 64),  event(Op::kName, "n", 0, 65, 66)};
  made.history.lives = {{"t", 1, 100, 5}, {"t", 2, 101, 45}};
  made.outcome.tallies["t"][1] = {0b110};
  made.outcome.published["w"] = 3;
  return made;
}

TEST(HistoryChecker, HasNothingAgainstWhatIsRight) {
  const Case made = whole();
  EXPECT_EQ(violations(made.history, made.outcome), std::vector<std::string>());
}

TEST(HistoryChecker, LeavesOpenWhatWasNotAcknowledged) {
  Case made = whole();
  made.history.events.push_back(
      failed(event(Op::kAdd, "t", 3, 70, 80), ErrorCode::kDeadlineExceeded));
  made.history.events.push_back(event(Op::kAdd, "t", 4, 81, 0));
  made.history.events.push_back(
      failed(event(Op::kPublish, "w", 4, 81, 82), ErrorCode::kUnavailable));
  EXPECT_EQ(violations(made.history, made.outcome), std::vector<std::string>());
  set_bit(made.outcome.tallies["t"][1], 3);
  set_bit(made.outcome.tallies["t"][1], 4);
  made.outcome.published["w"] = 4;
  EXPECT_EQ(violations(made.history, made.outcome), std::vector<std::string>());
}

TEST(HistoryChecker, FindsALostMark) {
  Case made = whole();
  made.outcome.tallies["t"][1] = {0b010};
  made.expect_found("an acknowledged mark is lost");
}

TEST(HistoryChecker, FindsALostActor) {
  Case made = whole();
  made.history.events.erase(made.history.events.begin() + 4);
  made.outcome.tallies.clear();
  made.expect_found("is gone");
}

TEST(HistoryChecker, FindsAMarkMadeTwiceAndOneThatNoCallerAskedFor) {
  Case made = whole();
  made.outcome.tallies["t"][-1] = {1};
  made.expect_found("made twice");
  made = whole();
  made.outcome.tallies["t"][1] = {0b1110};
  made.expect_found("never asked for");
}

TEST(HistoryChecker, FindsAnAnswerPastItsDeadline) {
  Case made = whole();
  made.history.events.push_back(
      failed(event(Op::kEcho, "r", 0, 100, 9'000'000), ErrorCode::kDeadlineExceeded));
  made.expect_found("past its deadline");
  made.history.events.back().stalled = 2'000'000;  // its own process was stopped
  EXPECT_TRUE(violations(made.history, made.outcome).empty());
}

TEST(HistoryChecker, FindsTwoIncarnationsAtOnce) {
  Case made = whole();
  Event other = event(Op::kAdd, "t", 5, 70, 80, 1);
  other.client = 2;
  made.history.events.push_back(other);
  made.outcome.tallies["t"][2] = {1 << 5};
  made.expect_found("two incarnations of t at once");
  made.history.events.back().begin = 55;  // it had begun before the newer one had answered a call
  EXPECT_TRUE(violations(made.history, made.outcome).empty());
}

TEST(HistoryChecker, FindsAnOlderIncarnationAcceptedByOneWhoHasSeenANewer) {
  Case made = whole();
  made.history.events.push_back(event(Op::kAdd, "t", 5, 55, 80, 1));
  set_bit(made.outcome.tallies["t"][1], 5);
  made.expect_found("was answered by an older one");
}

TEST(HistoryChecker, FindsAnIncarnationThatBeganTwice) {
  Case made = whole();
  made.history.lives.push_back({"t", 2, 102, 50});
  made.expect_found("began twice");
}

TEST(HistoryChecker, FindsLostPairsSumsAndVersions) {
  Case made = whole();
  made.history.events.push_back(failed(event(Op::kGet, "k", 7, 90, 91), ErrorCode::kNotFound));
  made.expect_found("an acknowledged pair is lost");
  made = whole();
  made.history.events.push_back(event(Op::kSum, "sum", 2, 90, 91));
  made.expect_found("an acknowledged addition is lost");
  made = whole();
  made.history.events.push_back(event(Op::kSum, "sum", 9, 90, 91));
  made.expect_found("more often than it was asked for");
  made = whole();
  made.outcome.published["w"] = 2;
  made.expect_found("a published version is lost");
}

TEST(HistoryChecker, FindsANameGivenTwice) {
  Case made = whole();
  made.history.events.push_back(event(Op::kName, "n", 0, 90, 91));
  made.expect_found("a name was given twice");
  made.history.unsettled = {70};  // its first bearer may have been killed
  EXPECT_TRUE(violations(made.history, made.outcome).empty());
  made.history.unsettled = {92};
  made.expect_found("a name was given twice");
}

TEST(HistoryChecker, FindsAWrongAnswerAndATornGang) {
  for (Op op : {Op::kEcho, Op::kGang}) {
    Case made = whole();
    made.history.events.push_back(failed(event(op, "g", 1, 70, 80), ErrorCode::kInternal));
    made.expect_found("a wrong answer");
  }
}

TEST(HistoryFile, KeepsWhatIsWritten) {
  support::TemporaryFolder folder;
  const std::string path = folder.file("history");
  HistoryFile file(path);
  const Event first = failed(event(Op::kAdd, "t", 1, 10, 20), ErrorCode::kUnavailable),
              open = event(Op::kPut, "k", 2, 30, 0);
  Event begun = first;
  begun.end = 0;
  file.begin(begun);
  file.begin(open);
  file.end(first);
  file.life({"t", 4, 77, 5});
  const History read = History::read(path);
  ASSERT_EQ(read.events.size(), 2u);
  EXPECT_EQ(read.events[0].to_string(), first.to_string());
  EXPECT_EQ(read.events[0].code, ErrorCode::kUnavailable);
  EXPECT_EQ(read.events[1].to_string(), open.to_string());
  ASSERT_EQ(read.lives.size(), 1u);
  EXPECT_EQ(read.lives[0].incarnation, 4u);
}

}  // namespace
}  // namespace runtime::test
