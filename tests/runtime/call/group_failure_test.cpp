#include "runtime/call/group_failure.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(GroupFailure, TheCauseIsToldAndNotTheFirstByRank) {
  const Status killed =
      actor_died("actor A (pid 17 on node 3f2a0011) died while it was built: killed by SIGTERM");
  const Status status =
      group_failure({{0, killed}, {3, cancelled("ended")}, {7, resource_exhausted("no files")}});
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "rank 7: no files; 2 others failed otherwise, for instance rank 0: " +
                                  killed.message());
}

TEST(GroupFailure, TheSameCausesAreCounted) {
  std::vector<MemberFailure> failures;
  for (std::size_t rank = 4; rank < 24; ++rank)
    failures.push_back({rank, resource_exhausted("worker " + std::to_string(7000 + rank) +
                                                 "af: Too many open files")});
  failures.push_back({30, actor_died("killed by SIGTERM")});
  EXPECT_EQ(group_failure(failures).message(),
            "rank 4: worker 7004af: Too many open files; and 19 more with the same; 1 other failed "
            "otherwise, for instance rank 30: killed by SIGTERM");
}

TEST(GroupFailure, OneFailureIsToldAsItIs) {
  EXPECT_EQ(group_failure({{2, task_failed("boom")}}).to_string(),
            task_failed("rank 2: boom").to_string());
}

TEST(GroupFailure, ConsequencesRankBelowCauses) {
  const Status crash = actor_died("actor B died: killed by SIGSEGV");
  EXPECT_GT(cause_rank(crash), cause_rank(actor_died("killed by SIGTERM by its node")));
  EXPECT_GT(cause_rank(actor_died("killed by SIGTERM")), cause_rank(unavailable("peer is gone")));
  EXPECT_GT(cause_rank(unavailable("peer is gone")), cause_rank(cancelled("ended")));
  EXPECT_GT(cause_rank(task_failed("it threw")), cause_rank(crash));
  EXPECT_GT(cause_rank(invalid_argument("no such class")), cause_rank(task_failed("it threw")));
}

TEST(GroupFailure, CausesDifferByTheirWords) {
  EXPECT_TRUE(is_same_cause(task_failed("step 12 of 7f3a0011"), task_failed("step 9 of 01ab")));
  EXPECT_FALSE(is_same_cause(task_failed("step 12"), task_failed("phase 12")));
  EXPECT_FALSE(is_same_cause(task_failed("x"), unavailable("x")));
  EXPECT_FALSE(is_same_cause(task_failed("added"), task_failed("faded")));
}

}  // namespace
}  // namespace runtime
