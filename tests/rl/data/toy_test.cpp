#include "rl/data/toy.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rl {
namespace {

DataRow first_row(ToyTask task) {
  ToyOptions options;
  options.task = task;
  return make_toy_dataset(options).row(0);
}

std::string letters_of(const DataRow& row) {
  const std::string text = row.prompt[0].at("content");
  return text.substr(text.find(' ') + 1);
}

TEST(Toy, RowsAreFixedByTheSeed) {
  ToyOptions options;
  EXPECT_EQ(make_toy_dataset(options).rows(), make_toy_dataset(options).rows());
  EXPECT_EQ(make_toy_dataset(options).size(), 1024);
  EXPECT_EQ(make_toy_dataset(options).row(0).prompt[0].at("content"), "sort efhd");
  options.seed = 2;
  EXPECT_NE(make_toy_dataset(options).row(0).prompt[0].at("content"), "sort efhd");
}

TEST(Toy, AnswersAreRight) {
  const DataRow sort = first_row(ToyTask::kSort);
  std::string sorted = letters_of(sort);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sort.ground_truth, sorted);
  const DataRow reverse = first_row(ToyTask::kReverse);
  std::string backwards = letters_of(reverse);
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(reverse.ground_truth, backwards);
  const DataRow copy = first_row(ToyTask::kCopy);
  EXPECT_EQ(copy.ground_truth, letters_of(copy));
  const DataRow count = first_row(ToyTask::kCount);
  ASSERT_EQ(letters_of(count).size(), 1u);
  char next = letters_of(count)[0];
  for (char c : count.ground_truth) {
    next = next == 'h' ? 'a' : static_cast<char>(next + 1);  // eight letters, then around
    EXPECT_EQ(c, next);
  }
  for (const DataRow& row : {sort, reverse, copy, count}) {
    EXPECT_EQ(row.response, row.ground_truth);
    EXPECT_EQ(row.ground_truth.size(), 4u);
    EXPECT_EQ(row.data_source, "toy");
  }
}

TEST(Toy, OptionsAreChecked) {
  const auto options =
      ToyOptions::from_json({{"task", "reverse"}, {"rows", 5}, {"letters", 3}, {"length", 2}}, 9);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(*options, (ToyOptions{ToyTask::kReverse, 5, 3, 2, 9}));
  EXPECT_EQ(ToyOptions::from_json({{"letters", 27}}, 0).status().message(),
            "data.toy.letters: expected an integer from 2 to 26, got 27");
  EXPECT_FALSE(ToyOptions::from_json({{"rows", 0}}, 0).ok());
  EXPECT_FALSE(ToyOptions::from_json({{"length", 65}}, 0).ok());
  EXPECT_FALSE(ToyOptions::from_json({{"length", "x"}}, 0).ok());
  EXPECT_FALSE(ToyOptions::from_json({{"task", "sing"}}, 0).ok());
}

}  // namespace
}  // namespace rl
