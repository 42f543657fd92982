// Requests about a step's samples to a reference and to teachers that are fakes.
#include "rl/run/rl/references.h"

#include "tests/rl/run/fakes.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

// Fails where it is told to; else as FakeReference.
class FailingReference : public FakeReference {
 public:
  using FakeReference::FakeReference;
  runtime::Result<std::vector<Referenced>> score(const BatchRefs&, const ScoringPasses&) override {
    return runtime::unavailable("it is gone");
  }
  runtime::Result<std::vector<Referenced>> score_some(const BatchRefs&, const SampleMarks&,
                                                      const std::vector<Referenced>&,
                                                      const ScoringPasses&) override {
    return runtime::unavailable("it is gone");
  }
};

class ReferencesTest : public ::testing::Test {
 protected:
  ReferencesTest() {
    maths_.workers = code_.workers = 1;
    batch_.shares[0].groups[0].task.teacher = "gsm8k";
    batch_.shares[0].groups[1].task.teacher = "mbpp";
    batch_.shares[0].groups[1].task.where = "row 7";
  }
  References both(FakeReference& second) {
    return {nullptr,
            {{{.name = "maths", .model_key = "", .rows = "gsm8k"}, &maths_},
             {{.name = "code", .model_key = "", .rows = "mbpp"}, &second}}};
  }
  static std::vector<double> penalties(const Referenced& said) { return said.kl_penalties; }

  FakeBatches batches_;
  FakeReference maths_{batches_};
  FakeReference code_{batches_};
  StepBatch batch_ = fake_batch(batches_, 2, 1, 2);  // of 1, 2, 2 and 3 tokens
  StepTimer timer_;
};

TEST_F(ReferencesTest, WhatTheReferenceAndOneTeacherSayIsKeptApart) {
  References references(&maths_, {{{.name = "t", .model_key = "", .rows = ""}, &code_}});
  ASSERT_TRUE(references.ask(batch_, timer_).ok());
  EXPECT_EQ(penalties(batch_.shares[0].reference), (std::vector<double>{1, 2, 2, 3}));
  EXPECT_EQ(penalties(batch_.shares[0].taught), (std::vector<double>{1, 2, 2, 3}));
  EXPECT_EQ(code_.passes, (ScoringPasses{{{0, 3}, {3, 4}}})) << "within its limit";
}

TEST_F(ReferencesTest, OneTeacherIsAskedAboutRowsOfAnyOther) {
  References references(nullptr, {{{.name = "t", .model_key = "", .rows = ""}, &code_}});
  EXPECT_TRUE(references.ask(batch_, timer_).ok());
  EXPECT_TRUE(penalties(batch_.shares[0].reference).empty());
}

TEST_F(ReferencesTest, ASampleForATeacherThatIsGoneNamesItsRowAndTheCure) {
  batch_.shares[0].groups[1].task.teacher = "history";
  support::expect_failure(
      both(code_).ask(batch_, timer_), runtime::ErrorCode::kInvalidArgument,
      {"row 7", "'history'", "distillation.teacher_models", "trainer.resume_mode=disable"});
  EXPECT_TRUE(maths_.passes.empty()) << "no teacher has begun";
}

TEST_F(ReferencesTest, ATeacherThatFailsIsNamed) {
  FailingReference gone(batches_);
  gone.workers = 1;
  References one(nullptr, {{{.name = "t", .model_key = "", .rows = ""}, &gone}});
  support::expect_failure(one.ask(batch_, timer_), runtime::ErrorCode::kUnavailable,
                          {"the teacher's log-probabilities", "it is gone"});
  support::expect_failure(both(gone).ask(batch_, timer_), runtime::ErrorCode::kUnavailable,
                          {"teacher code", "it is gone"});
}

TEST_F(ReferencesTest, WhatIsLeftOutIsSoForAllWhoHaveSaidSomething) {
  References references(&maths_, {{{.name = "t", .model_key = "", .rows = ""}, &code_}});
  ASSERT_TRUE(references.ask(batch_, timer_).ok());
  ASSERT_TRUE(references.leave_out(batch_, {{0, 1, 1, 0}}).ok());
  EXPECT_EQ(penalties(batch_.shares[0].reference), (std::vector<double>{1, 3}));
  EXPECT_EQ(penalties(batch_.shares[0].taught), (std::vector<double>{1, 3}));
}

}  // namespace
}  // namespace rl
