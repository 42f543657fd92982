// Profiles of steps, over groups that answer at once.
#include "rl/run/step_profiler.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "rl/profile/recorder.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class StepProfilerTest : public ::testing::Test {
 protected:
  StepProfilerTest() {
    options_.steps = {2};
    options_.folder = folder_.path();
  }
  // Two policies.
  std::vector<ProfiledGroup> groups() {
    return {{"policy", 2,
             [this](std::vector<profile::ProfileRequest> requests)
                 -> runtime::Result<std::vector<profile::ProfileStarted>> {
               ++begun_;
               requests_ = std::move(requests);
               if (!begins_) return runtime::unavailable("a worker is gone");
               return std::vector<profile::ProfileStarted>(
                   2, {.machine = machine_, .now_ns = profile::now_ns()});
             },
             [this]() -> runtime::Result<std::vector<profile::Recording>> {
               ++ended_;
               return std::vector<profile::Recording>(2, recording_);
             }}};
  }
  void take_steps(std::int64_t last) {
    for (std::int64_t step = 1; step <= last; ++step) {
      profiler_.before(step, [this] { return groups(); });
      profiler_.after(step);
    }
  }
  std::set<std::string> traces() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.insert(entry.path().filename().string());
    return names;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_.file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  support::TemporaryFolder folder_;
  ProfileOptions options_;
  StepProfiler profiler_;
  std::string machine_ = profile::machine_name();
  bool begins_ = true;
  profile::Recording recording_;
  std::vector<profile::ProfileRequest> requests_;
  int begun_ = 0;
  int ended_ = 0;
};

TEST_F(StepProfilerTest, RecordsTheStepsThatAreNamed) {
  profiler_ = StepProfiler(options_);
  EXPECT_EQ(profiler_.first_wanted(), 2);
  take_steps(3);
  EXPECT_EQ(traces(), std::set<std::string>{"step_2.trace.json"});
  EXPECT_EQ(begun_, 1);
  EXPECT_EQ(ended_, 1);
  const std::string trace = read("step_2.trace.json");
  for (const char* name : {"controller", "policy 0", "policy 1", "step 2"})
    EXPECT_NE(trace.find(name), std::string::npos) << name;
}

TEST_F(StepProfilerTest, StepsInARowAreOneTraceWhereThatIsWanted) {
  options_.steps = {2, 3, 5};
  options_.continuous = true;
  profiler_ = StepProfiler(options_);
  take_steps(6);
  EXPECT_EQ(traces(), (std::set<std::string>{"steps_2-3.trace.json", "step_5.trace.json"}));
  EXPECT_EQ(begun_, 2);
}

TEST_F(StepProfilerTest, ATraceThatWaitsForAnotherStepIsWrittenInTheEnd) {
  options_.steps = {2, 3};
  options_.continuous = true;
  profiler_ = StepProfiler(options_);
  take_steps(2);
  EXPECT_TRUE(traces().empty());
  profiler_.finish();
  EXPECT_EQ(traces(), std::set<std::string>{"step_2.trace.json"});
}

TEST_F(StepProfilerTest, AGroupThatCannotBeginCostsThatStepItsTraceAlone) {
  options_.steps = {1, 2};
  profiler_ = StepProfiler(options_);
  begins_ = false;
  take_steps(1);
  EXPECT_TRUE(traces().empty());
  EXPECT_EQ(ended_, 0);
  begins_ = true;
  profiler_.before(2, [this] { return groups(); });
  profiler_.after(2);
  EXPECT_EQ(traces(), std::set<std::string>{"step_2.trace.json"});
}

TEST_F(StepProfilerTest, RanksThatAreNotWantedRecordNothing) {
  options_.ranks["policy"] = {1};
  profiler_ = StepProfiler(options_);
  take_steps(2);
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_FALSE(requests_[0].wanted);
  EXPECT_TRUE(requests_[1].wanted);
  EXPECT_EQ(requests_[1].spans_max, options_.spans_max / 3) << "of three processes";
  EXPECT_EQ(read("step_2.trace.json").find("policy 0"), std::string::npos);
}

TEST_F(StepProfilerTest, ARecordingThatDoesNotFitTogetherIsNotWritten) {
  recording_.name = {7};  // of which there is no such name
  profiler_ = StepProfiler(options_);
  take_steps(2);
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(traces().empty());
}

TEST_F(StepProfilerTest, ClocksOfOtherMachinesAreAskedSeveralTimes) {
  machine_ = "another";
  profiler_ = StepProfiler(options_);
  take_steps(2);
  EXPECT_EQ(begun_, 5);
  EXPECT_EQ(ended_, 1);
}

}  // namespace
}  // namespace rl
