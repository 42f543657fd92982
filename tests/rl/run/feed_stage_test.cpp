// FeedStage with a feed that counts and workers that note their calls.
#include "rl/run/feed_stage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"
#include "tests/rl/data/test_files.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;

// Steps are the numbers of their rows.
class CountingFeed {
 public:
  CountingFeed(Dataset rows, std::int64_t batch_rows, std::vector<std::string> unwritten)
      : rows_(*RowFeed::create(std::move(rows), {.batch_rows = batch_rows, .shuffle = false})),
        unwritten_(std::move(unwritten)) {}

  Result<std::vector<std::int64_t>> next() {
    if (!failure.ok()) return failure;
    return rows_.next();
  }
  Result<std::vector<std::vector<std::int64_t>>> all(std::int64_t step_rows) const {
    return rows_.in_order(step_rows);
  }
  std::vector<std::string> unwritten_fields() const { return unwritten_; }
  RowFeed& rows() { return rows_; }
  const RowFeed& rows() const { return rows_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

  Status failure;  // of next()

 private:
  RowFeed rows_;
  std::vector<std::string> unwritten_;
  Tokenizer tokenizer_ = testing::toy_tokenizer();
};

struct LoadingActor {
  Status load(const std::string& /*folder*/) { return {}; }
};

class NotedWorkers {
 public:
  static Result<NotedWorkers> spawn(runtime::Runtime&, const WorkerSlots&, bool,
                                    const WorkerSpec&) {
    return runtime::internal_error("no workers are started");
  }
  Result<WriteState> state(bool async) const {
    log->push_back(async ? "copy" : "no copy");
    if (!failure.ok()) return failure;
    return WriteState([](const fs::path& folder) {
      return [folder]() -> WrittenFiles { return std::vector{folder.string() + "/weights"}; };
    });
  }
  Status fetch(Status (LoadingActor::*method)(const std::string&),
               const std::string& folder) const {
    log->push_back(method == &LoadingActor::load ? "load " + folder : "another call");
    return failure;
  }

  std::shared_ptr<std::vector<std::string>> log;
  Status failure;  // of all calls
};

// As StepProfiler asks, which the stage passes its workers on to.
ProfiledGroup profiled(std::string role, const NotedWorkers& workers) {
  return {std::move(role), workers.log->size() + 2, nullptr, nullptr};
}

class FedStage final : public FeedStage<CountingFeed, LoadingActor, NotedWorkers> {
 public:
  using Rows = std::function<Result<std::optional<DatasetOptions>>(Split split)>;
  using Make = std::function<Result<std::unique_ptr<CountingFeed>>(
      const DatasetOptions& rows, const EncodedRowsOptions& options)>;

  Status open(const StageSetup& setup) override {
    setup_ = setup;
    return open_feeds({.batch_rows = 4, .workers = 2}, rows, make);
  }
  Result<std::string> first_row() const override { return std::string("row"); }
  RowLengths row_lengths() const override { return {}; }
  Status start(runtime::Runtime&, const StageSetup&, const WorkerSlots&) override { return {}; }
  Result<Metrics> step(double) override { return Metrics(); }
  Result<Metrics> validate() override { return Metrics(); }

  using FeedStage::validation_steps;
  const std::vector<std::int64_t>& batch() const { return batch_; }
  NotedWorkers& workers() { return workers_; }
  void fail_next(Status why) { feed_->failure = std::move(why); }

  Rows rows;
  Make make;
};

// Ten rows to train on and five to validate on.
class FeedStageTest : public ::testing::Test {
 protected:
  FeedStageTest()
      : setup_{.config = *Config::load({.file = {}, .overrides = {}, .keys = &sft_keys()}),
               .options = {},
               .model = {}} {
    setup_.options.batch_rows = 3;
    stage_.rows = [](Split split) -> Result<std::optional<DatasetOptions>> {
      return rows_of(split == Split::kTrain ? "train" : "validation");
    };
    stage_.make = [this](const DatasetOptions& rows, const EncodedRowsOptions& options) {
      made_.emplace_back(rows.split, options.batch_rows);
      EXPECT_EQ(options.workers, 2);
      const bool trains = rows.split == "train";
      return std::make_unique<CountingFeed>(
          some_rows(rows.split + ".jsonl", trains ? 10 : 5), options.batch_rows,
          std::vector<std::string>{"a field", rows.split + " has another"});
    };
    stage_.workers().log = log_;
  }

  static std::optional<DatasetOptions> rows_of(const std::string& split) {
    DatasetOptions rows;
    rows.split = split;
    return rows;
  }
  static Dataset some_rows(const std::string& file, std::int64_t count) {
    std::vector<DataRow> rows(static_cast<std::size_t>(count));
    for (DataRow& row : rows) {
      row.prompt = "a text";
      row.where = file + ":1";
      row.unread = "'tools'";
    }
    return Dataset(std::move(rows));
  }

  const std::shared_ptr<std::vector<std::string>> log_ =
      std::make_shared<std::vector<std::string>>();
  StageSetup setup_;
  FedStage stage_;
  std::vector<std::pair<std::string, std::int64_t>> made_;  // feeds: split, rows of a batch
};

using Made = std::vector<std::pair<std::string, std::int64_t>>;
using Numbers = std::vector<std::int64_t>;

TEST_F(FeedStageTest, BothSplitsAreOpenedAndAnyNumberOfRowsValidates) {
  ASSERT_TRUE(stage_.open(setup_).ok());
  EXPECT_EQ(made_, (Made{{"train", 4}, {"validation", 1}}));
  EXPECT_TRUE(stage_.validates());
  EXPECT_EQ(stage_.batches_per_epoch(), 2);
  const auto steps = stage_.validation_steps();
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(*steps, (std::vector<Numbers>{{0, 1, 2}, {3, 4}})) << "of as many as are trained on";
}

TEST_F(FeedStageTest, WithoutValidationDataThereIsNoFeedOfThem) {
  stage_.rows = [](Split split) -> Result<std::optional<DatasetOptions>> {
    if (split == Split::kValidation) return std::optional<DatasetOptions>();
    return rows_of("train");
  };
  ASSERT_TRUE(stage_.open(setup_).ok());
  EXPECT_EQ(made_, (Made{{"train", 4}}));
  EXPECT_FALSE(stage_.validates());
  EXPECT_EQ(stage_.warnings().size(), 3u);
}

TEST_F(FeedStageTest, WhatIsWrongWithTheRowsSaysOfWhichSplit) {
  const auto rows = stage_.rows;
  const auto make = stage_.make;
  for (const bool trains : {true, false}) {
    const auto is_wrong = [trains](bool of_training) { return of_training == trains; };
    made_.clear();
    stage_.rows = [&](Split split) -> Result<std::optional<DatasetOptions>> {
      if (is_wrong(split == Split::kTrain)) return runtime::invalid_argument("no such key");
      return rows(split);
    };
    EXPECT_EQ(stage_.open(setup_).message(), "no such key");
    EXPECT_EQ(made_.size(), trains ? 0u : 1u);
    stage_.rows = rows;
    stage_.make = [&](const DatasetOptions& of,
                      const EncodedRowsOptions& options) -> Result<std::unique_ptr<CountingFeed>> {
      if (is_wrong(of.split == "train")) return runtime::invalid_argument("row 3 is empty");
      return make(of, options);
    };
    EXPECT_EQ(stage_.open(setup_).message(),
              trains ? "row 3 is empty" : "validation data: row 3 is empty");
    stage_.make = make;
  }
}

TEST_F(FeedStageTest, ABatchIsTakenAndStaysWhereTheNextOneFails) {
  ASSERT_TRUE(stage_.open(setup_).ok());
  ASSERT_TRUE(stage_.next_batch().ok());
  EXPECT_EQ(stage_.batch(), (Numbers{0, 1, 2, 3}));
  ASSERT_TRUE(stage_.next_batch().ok());
  EXPECT_EQ(stage_.batch(), (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(stage_.epoch(), 0);
  stage_.fail_next(runtime::unavailable("a file is gone"));
  EXPECT_EQ(stage_.next_batch().message(), "a file is gone");
  EXPECT_EQ(stage_.batch(), (Numbers{4, 5, 6, 7}));
  stage_.fail_next({});
  ASSERT_TRUE(stage_.next_batch().ok());
  EXPECT_EQ(stage_.batch(), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(stage_.epoch(), 1);
}

TEST_F(FeedStageTest, AnotherRunGoesOnAtItsPosition) {
  ASSERT_TRUE(stage_.open(setup_).ok());
  ASSERT_TRUE(stage_.next_batch().ok());
  const nlohmann::json position = stage_.position();
  ASSERT_TRUE(stage_.next_batch().ok());
  ASSERT_TRUE(stage_.resume(position).ok());
  ASSERT_TRUE(stage_.next_batch().ok());
  EXPECT_EQ(stage_.batch(), (Numbers{4, 5, 6, 7}));
  EXPECT_EQ(stage_.resume({{"nothing", 1}}).code(), ErrorCode::kInvalidArgument);
}

TEST_F(FeedStageTest, WarningsAreOfBothSplitsEachOnce) {
  ASSERT_TRUE(stage_.open(setup_).ok());
  const std::vector<std::string> warnings = stage_.warnings();
  ASSERT_EQ(warnings.size(), 5u);
  EXPECT_TRUE(warnings[0].starts_with("train.jsonl:1: it has 'tools'")) << warnings[0];
  EXPECT_EQ(warnings[1], "a field");
  EXPECT_EQ(warnings[2], "train has another");
  EXPECT_TRUE(warnings[3].starts_with("validation.jsonl:1: it has 'tools'")) << warnings[3];
  EXPECT_EQ(warnings[4], "validation has another");
}

TEST_F(FeedStageTest, WeightsAreTheWorkers) {
  ASSERT_TRUE(stage_.open(setup_).ok());
  const auto state = stage_.state(/*async=*/true);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ((*state)("here")().value_or(std::vector<std::string>()),
            (std::vector<std::string>{"here/weights"}));
  ASSERT_TRUE(stage_.state(/*async=*/false).ok());
  ASSERT_TRUE(stage_.load("there").ok());
  EXPECT_EQ(*log_, (std::vector<std::string>{"copy", "no copy", "load there"}));
  ASSERT_EQ(stage_.profiled_groups().size(), 1u);
  EXPECT_EQ(stage_.profiled_groups().front().role, "worker");
  stage_.workers().failure = runtime::unavailable("a worker is gone");
  EXPECT_EQ(stage_.load("there").message(), "a worker is gone");
  EXPECT_EQ(stage_.state(/*async=*/true).status().message(), "a worker is gone");
}

}  // namespace
}  // namespace rl
