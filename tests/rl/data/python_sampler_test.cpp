// Orders of rows by classes of verl's form: AbstractSampler and AbstractCurriculumSampler.
#include "rl/data/python_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/rl/data/test_files.h"

namespace rl {
namespace {

constexpr const char* kClasses = R"python(
import random
from verl import DataProto
from verl.experimental.dataset.sampler import AbstractCurriculumSampler, AbstractSampler


class Shuffled(AbstractSampler):
    def __init__(self, data_source, data_config):
        self.rows, self.random = len(data_source), random.Random(data_config.get("seed", 1))

    def __iter__(self):
        numbers = list(range(self.rows))
        self.random.shuffle(numbers)
        return iter(numbers)

    def __len__(self):
        return self.rows


class Hardest(AbstractCurriculumSampler):
    """First what failed last; it can be saved."""
    def __init__(self, data_source, data_config):
        self.easy = {i: row["difficulty"] for i, row in enumerate(data_source)}

    def __iter__(self):
        while True:
            yield min(self.easy, key=lambda i: (self.easy[i], i))

    def update(self, batch: DataProto):
        for row, score in zip(batch.non_tensor_batch["index"], batch.batch["token_level_scores"]):
            self.easy[int(row)] += 10 * float(score[0])

    def state_dict(self):
        return {"easy": list(self.easy.values())}

    def load_state_dict(self, state):
        self.easy = dict(enumerate(state["easy"]))


class Beyond(AbstractSampler):
    def __iter__(self):
        return iter([99])


class Few(AbstractSampler):
    def __iter__(self):
        return iter([0, 1])


class Forks(Few):
    """Whose copy comes back, too."""
    def __iter__(self):
        import os
        os.fork()
        return iter([0, 1, 2])


class Raises(AbstractSampler):
    def __iter__(self):
        raise ValueError("no luck today")
)python";

class PythonSamplerTest : public ::testing::Test {
 protected:
  static Dataset rows(std::int64_t count) {
    std::vector<DataRow> made;
    for (std::int64_t i = 0; i < count; ++i)
      made.push_back({.prompt = "?",
                      .ground_truth = "",
                      .data_source = "",
                      .extra = nullptr,
                      .response = {},
                      .where = "r",
                      .difficulty = static_cast<double>(i)});
    return Dataset(std::move(made));
  }

  runtime::Result<std::unique_ptr<RowOrder>> order(const std::string& name,
                                                   std::int64_t count = 10) const {
    return make_python_order(rows(count),
                             {.path = file_.path(), .name = name, .config = {{"seed", 5}}});
  }

  testing::TempFile file_{kClasses, ".py"};
};

TEST_F(PythonSamplerTest, ItsNumbersAreTheRowsEpochByEpoch) {
  const auto order = this->order("Shuffled");
  ASSERT_TRUE(order.ok()) << order.status().to_string();
  std::vector<std::int64_t> seen;
  for (int i = 0; i < 3; ++i) {
    const auto batch = (*order)->next(3);
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    seen.insert(seen.end(), batch->begin(), batch->end());
    EXPECT_EQ((*order)->epoch(), 0);
  }
  EXPECT_NE(seen, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  (void)(*order)->next(3);  // the tenth row fills no batch
  EXPECT_EQ((*order)->epoch(), 1);
}

TEST_F(PythonSamplerTest, ResumesInTheMiddleOfAnEpoch) {
  const auto one = *order("Shuffled");
  for (int i = 0; i < 5; ++i) (void)*one->next(3);
  const nlohmann::json position = nlohmann::json::parse(one->position().dump());
  EXPECT_EQ(one->epoch(), 1);
  const auto other = *order("Shuffled");
  ASSERT_TRUE(other->resume(position).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(*one->next(3), *other->next(3));
  EXPECT_EQ(one->position(), other->position());
  EXPECT_FALSE((*order("Shuffled", 4))->resume(position).ok());
  EXPECT_FALSE(other->resume({{"offset", 1}}).ok());
}

TEST_F(PythonSamplerTest, ACurriculumGetsTheScoresAndKeepsWhatItLearned) {
  const auto one = *order("Hardest");
  EXPECT_EQ(*one->next(2), (std::vector<std::int64_t>{0, 0}));
  ASSERT_TRUE(one->learn(std::vector<RowOutcome>{{.row = 0, .score = 0.25, .response_tokens = 3},
                                                 {.row = 0, .score = 0.5, .response_tokens = 4}})
                  .ok());
  EXPECT_EQ(*one->next(1), std::vector<std::int64_t>{1});
  ASSERT_TRUE(
      one->learn(std::vector<RowOutcome>{{.row = 1, .score = 1.0, .response_tokens = 3}}).ok());
  const auto other = *order("Hardest");
  ASSERT_TRUE(other->resume(nlohmann::json::parse(one->position().dump())).ok());
  EXPECT_EQ(*one->next(1), std::vector<std::int64_t>{2});
  EXPECT_EQ(*other->next(1), std::vector<std::int64_t>{2});
}

TEST_F(PythonSamplerTest, ACopyThatTheUsersCodeForksDoesNotAnswer) {
  const auto order = this->order("Forks");
  ASSERT_TRUE(order.ok()) << order.status().to_string();
  for (int i = 0; i < 20; ++i) {
    const auto batch = (*order)->next(3);
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    ASSERT_EQ(*batch, (std::vector<std::int64_t>{0, 1, 2}));
    ASSERT_EQ((*order)->epoch(), i);
  }
}

TEST_F(PythonSamplerTest, WhatGoesWrongIsTold) {
  const auto message = [&](const std::string& name) {
    const auto made = order(name);
    if (!made.ok()) return made.status().message();
    const auto batch = (*made)->next(3);
    return batch.ok() ? std::string() : std::string(batch.status().message());
  };
  EXPECT_NE(message("Beyond").find("gave row 99, and there are 10"), std::string::npos)
      << message("Beyond");
  EXPECT_NE(message("Few").find("an epoch of the sampler has 2 rows, which is no batch of 3"),
            std::string::npos)
      << message("Few");
  EXPECT_NE(message("Raises").find("ValueError: no luck today"), std::string::npos)
      << message("Raises");
  EXPECT_NE(message("Absent").find("has no class 'Absent'; it has Shuffled, Hardest"),
            std::string::npos)
      << message("Absent");
  EXPECT_EQ(make_python_order(rows(2), {.path = "/nowhere.py", .name = "A", .config = {}})
                .status()
                .code(),
            runtime::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rl
