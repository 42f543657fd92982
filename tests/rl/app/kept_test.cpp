#include "rl/app/kept.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rl {
namespace {

TEST(Kept, TheEndOfARunSaysWhatIsKept) {
  const auto told = [](const std::optional<std::filesystem::path>& latest, std::int64_t steps,
                       const SaveTimes& save) {
    std::ostringstream out;
    print_checkpoint(out, latest, steps, save);
    return out.str();
  };
  EXPECT_EQ(told(std::nullopt, 69, {}),  // as of a run whose worker has died
            "checkpoint: none was saved, after 69 step(s) (trainer.save_freq=N saves every N "
            "steps)\n");
  EXPECT_EQ(told(std::nullopt, 0, {}), "");
  EXPECT_NE(told(std::nullopt, 69, {.steps = 0}).find("trainer.save_freq=0"), std::string::npos);
  EXPECT_EQ(told(std::filesystem::path("run/global_step_60"), 69, {.steps = 20}),
            "checkpoint: run/global_step_60 (the 9 step(s) since are not kept)\n");
  EXPECT_EQ(told(std::filesystem::path("run/global_step_69"), 69, {}),
            "checkpoint: run/global_step_69\n");
}

}  // namespace
}  // namespace rl
