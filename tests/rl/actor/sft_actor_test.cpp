// The actor of a supervised stage, and with it the saving that all trained actors have.
#include "rl/actor/sft_actor.h"

#include <algorithm>

#include "rl/config/stage_keys.h"
#include "tests/rl/actor/actor_fixture.h"
#include "tests/support/file_bytes.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using FileNames = std::vector<std::string>;

class SftActorTest : public ActorTest {
 protected:
  void SetUp() override {
    auto made = SftActor::create(
        runtime_, spec({"model.path=" + model_.path().string(), "optim.lr=0.1"}, sft_keys()));
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    actor_ = std::move(*made);
  }
  runtime::Result<Metrics> update() {
    LearnedTokens tokens;
    tokens.ids = {5, 6, 7, 8};
    tokens.learned = {0, 0, 1, 1};
    SupervisedBatch batch;
    batch.append(tokens);
    return actor_->update(batch, {.tokens_total = 2, .learning_rate = 0.1});
  }
  fs::path folder(const std::string& name) const {
    fs::create_directories(saved_.path() / name);
    return saved_.path() / name;
  }
  // By file of `names`, in their order.
  std::vector<std::string> contents(const std::string& name, const FileNames& names) const {
    std::vector<std::string> all;
    for (const std::string& file : names)
      all.push_back(support::content_of(saved_.path() / name / file));
    return all;
  }

  const support::TemporaryFolder saved_;
  std::unique_ptr<SftActor> actor_;
};

TEST_F(SftActorTest, NoneIsMadeWithoutTheConfigurationOfADriver) {
  EXPECT_EQ(SftActor::create(runtime_, spec_of_no_driver()).status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

TEST_F(SftActorTest, AnUpdateSaysWhatMemoryItTook) {
  const auto metrics = update();
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  EXPECT_GT(metrics->size(), 1u);
  EXPECT_GT(metrics->at("perf/max_memory_allocated_gb"), 0.0);
}

TEST_F(SftActorTest, ASnapshotIsOfTheTimeWhenItWasTaken) {
  ASSERT_TRUE(update().ok());
  const auto in_parts = actor_->begin_save(saved_.path().string());
  ASSERT_TRUE(in_parts.ok()) << in_parts.status().to_string();
  EXPECT_FALSE(*in_parts) << "a rank alone has all of it";
  const auto now = actor_->save(folder("now").string());
  ASSERT_TRUE(now.ok()) << now.status().to_string();
  actor_->take_snapshot();
  ASSERT_TRUE(update().ok());
  const auto later = actor_->write_snapshot(folder("snapshot").string());
  ASSERT_TRUE(later.ok()) << later.status().to_string();
  ASSERT_EQ(*later, *now);
  EXPECT_EQ(contents("snapshot", *later), contents("now", *now));
  ASSERT_TRUE(actor_->begin_save(saved_.path().string()).ok());
  ASSERT_TRUE(actor_->save(folder("after").string()).ok());
  EXPECT_NE(contents("after", *now), contents("now", *now)) << "the update has moved the weights";
  ASSERT_TRUE(actor_->load((saved_.path() / "now").string()).ok());
  ASSERT_TRUE(actor_->begin_save(saved_.path().string()).ok());
  ASSERT_TRUE(actor_->save(folder("again").string()).ok());
  EXPECT_EQ(contents("again", *now), contents("now", *now));
}

}  // namespace
}  // namespace rl
