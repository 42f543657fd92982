#include "rl/run/run_journal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rl {
namespace {

TEST(RunJournal, ARecordGoesToItsListener) {
  RunJournal journal;
  std::vector<std::int64_t> steps;
  journal.record({.step = 1, .metrics = {}});
  journal.on_step([&](const StepRecord& record) { steps.push_back(record.step); });
  journal.record({.step = 2, .metrics = {}});
  EXPECT_EQ(steps, std::vector<std::int64_t>{2});
}

TEST(RunJournal, AnAlarmThatWarnsIsKeptAndEndsNothing) {
  RunJournal journal;
  journal.alarm("step 3: too long", AlarmAction::kWarn);
  EXPECT_EQ(journal.alarms(), std::vector<std::string>{"step 3: too long"});
  EXPECT_FALSE(journal.stopping());
  EXPECT_FALSE(journal.is_alarmed());
}

TEST(RunJournal, TheFirstAlarmThatStopsIsTheReasonAndIsToldOnce) {
  RunJournal journal;
  journal.alarm("first", AlarmAction::kStop);
  journal.alarm("second", AlarmAction::kStop);
  EXPECT_TRUE(journal.stopping());
  const runtime::Status why = journal.take_alarm();
  EXPECT_EQ(why.code(), runtime::ErrorCode::kTaskFailed);
  EXPECT_TRUE(why.message().ends_with(": first")) << why.message();
  EXPECT_TRUE(journal.take_alarm().ok());
  EXPECT_TRUE(journal.stopping());
  EXPECT_EQ(journal.alarms(), (std::vector<std::string>{"first", "second"}));
}

// What the user stopped ends well, whatever an alarm says of its last step.
TEST(RunJournal, AnAlarmAfterAStopIsNoFailure) {
  RunJournal journal;
  journal.stop();
  journal.alarm("too late", AlarmAction::kStop);
  EXPECT_FALSE(journal.is_alarmed());
}

}  // namespace
}  // namespace rl
