#include "runtime/node/job_record.h"

#include <gtest/gtest.h>

#include <string>

namespace runtime {
namespace {

TEST(CommandText, IsCutToWhatAJobsRecordMayHave) {
  EXPECT_EQ(command_text({}), "");
  EXPECT_EQ(command_text({"./train", "--steps", "10"}), "./train --steps 10");
  const std::string fits(JobInfo::kCommandBytesMax - 2, 'x');
  EXPECT_EQ(command_text({"a", fits}), "a " + fits);
  const std::string cut = command_text({"a", fits + "y", "more"});
  EXPECT_EQ(cut.size(), JobInfo::kCommandBytesMax);
  EXPECT_TRUE(cut.starts_with("a xxx") && cut.ends_with("x..."));
}

}  // namespace
}  // namespace runtime
