// Messages that leave the head, and when.
#include "runtime/head/recorded_line.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "manual_journal.h"

namespace runtime {
namespace {

class RecordedLineTest : public ::testing::Test {
 protected:
  RecordedLineTest() {
    auto journal = std::make_unique<ManualJournal>();
    journal_ = journal.get();
    line_.emplace(std::move(journal));
  }
  void say(const std::string& what) {
    line_->add([this, what] { said_ += what; });
  }
  void end_turn(bool changed) {
    line_->end_turn(changed ? std::vector<JournalWrite>{{"key", "value"}}
                            : std::vector<JournalWrite>());
  }

  ManualJournal* journal_ = nullptr;
  std::string said_;
  std::optional<RecordedLine> line_;
};

TEST_F(RecordedLineTest, WhatIsSaidWaitsForWhatWasDecidedWithIt) {
  say("a");
  end_turn(true);
  say("b");
  end_turn(true);
  EXPECT_EQ(said_, "");
  journal_->record_first();
  EXPECT_EQ(said_, "a");
  journal_->record_first();
  EXPECT_EQ(said_, "ab");
}

TEST_F(RecordedLineTest, ATurnWithoutChangesWaitsForThoseBeforeItOnly) {
  say("a");
  end_turn(false);
  EXPECT_EQ(said_, "a");
  say("b");
  end_turn(true);
  say("c");
  end_turn(false);
  EXPECT_EQ(said_, "a") << "in order";
  journal_->record_first();
  EXPECT_EQ(said_, "abc");
}

TEST_F(RecordedLineTest, EndsThatCannotBeRecordedAreHandedOutOnce) {
  const NodeId node = NodeId::random();
  line_->note_end({node, {}});
  say("end");
  end_turn(true);
  EXPECT_TRUE(line_->take_unrecorded_ends().empty()) << "the journal is well";
  journal_->trouble_now = resource_exhausted("the disk is full");
  const auto ends = line_->take_unrecorded_ends();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].node, node);
  EXPECT_TRUE(line_->take_unrecorded_ends().empty());
  EXPECT_EQ(said_, "");
  EXPECT_EQ(line_->numbers().at("journal_trouble"), 1);
}

TEST_F(RecordedLineTest, AnEndThatHasLeftIsNotHandedOut) {
  line_->note_end({NodeId::random(), {}});
  say("end");
  end_turn(false);
  EXPECT_EQ(said_, "end");
  journal_->trouble_now = resource_exhausted("the disk is full");
  EXPECT_TRUE(line_->take_unrecorded_ends().empty());
}

TEST_F(RecordedLineTest, WithoutAJournalNothingWaitsLongerThanItsTurn) {
  line_.emplace(nullptr);
  say("a");
  EXPECT_EQ(said_, "");
  end_turn(true);
  EXPECT_EQ(said_, "a");
  EXPECT_TRUE(line_->numbers().empty());
}

TEST_F(RecordedLineTest, ABatchThatIsRecordedAfterItsEndIsIgnored) {
  say("a");
  end_turn(true);
  std::deque<UniqueFunction<void()>> waiting = std::move(journal_->waiting);
  line_.reset();
  waiting.front()();
  EXPECT_EQ(said_, "");
}

}  // namespace
}  // namespace runtime
