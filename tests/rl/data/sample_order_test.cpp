#include "rl/data/sample_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "rl/data/dataset.h"
#include "rl/data/sampler.h"
#include "rl/data/streamed_rows.h"
#include "tests/rl/data/test_files.h"

namespace rl {
namespace {

std::vector<std::int64_t> epoch_of(SampleOrder& order, std::int64_t epoch, std::int64_t rows) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < rows; ++i) places.push_back(order.row(epoch, i));
  return places;
}

std::string lines(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i)
    text += "{\"prompt\": \"" + std::to_string(i) + "\", \"answer\": \"" + std::string(100, 'x') +
            "\"}\n";
  return text;
}

TEST(SampleOrder, AStreamedEpochHasEachRowOnceInFewBlocks) {
  const SampleLayout layout{{{std::vector<std::int64_t>(50, 20), 1.0}}, 100};
  auto order = SampleOrder::create(layout, true, 7);
  ASSERT_TRUE(order.ok());
  const auto first = epoch_of(*order, 0, 1000), second = epoch_of(*order, 1, 1000);
  EXPECT_EQ(std::set<std::int64_t>(first.begin(), first.end()).size(), 1000u);
  EXPECT_NE(first, second);
  for (std::size_t window = 0; window < 10; ++window) {
    std::set<std::int64_t> blocks;
    for (std::size_t i = 0; i < 100; ++i) blocks.insert(first[window * 100 + i] / 20);
    EXPECT_EQ(blocks.size(), 5u);
  }
  EXPECT_EQ(epoch_of(*order, 0, 1000), first) << "back to an epoch before";
  auto again = SampleOrder::create(layout, true, 7);
  EXPECT_EQ(again->row(1, 537), second[537]) << "right into the middle";
  EXPECT_EQ(again->row(1, 12), second[12]) << "and back";
  EXPECT_NE(SampleOrder::create(layout, true, 8)->row(0, 3), first[3]);
  auto plain = SampleOrder::create(layout, false, 7);
  EXPECT_EQ(plain->row(2, 999), 999);
}

TEST(SampleOrder, WeightsAreSharesOfAnEpochAndNoRowIsFavoured) {
  const SampleLayout layout{{{{30}, 0.7}, {{70}, 0.3}}, 1000};
  auto order = SampleOrder::create(layout, true, 1);
  ASSERT_TRUE(order.ok());
  std::map<std::int64_t, int> drawn;
  for (std::int64_t epoch = 0; epoch < 21; ++epoch) {
    int of_first = 0;
    for (const std::int64_t row : epoch_of(*order, epoch, 100)) {
      of_first += row < 30;
      ++drawn[row];
    }
    EXPECT_EQ(of_first, 70) << epoch;
  }
  for (const auto& [row, count] : drawn)
    EXPECT_EQ(count, row < 30 ? 49 : 9) << row;  // 21 * 70 / 30, 21 * 30 / 70
  auto again = SampleOrder::create(layout, true, 1);
  EXPECT_EQ(again->row(20, 77), order->row(20, 77));
  EXPECT_FALSE(SampleOrder::create({{{{30}, 0.0}, {{70}, 0.0}}, 1}, true, 1).ok());
  EXPECT_FALSE(SampleOrder::create({{{{30}, -1.0}, {{70}, 2.0}}, 1}, true, 1).ok());
}

TEST(SampleOrder, ASamplerResumesInTheMiddleAndRefusesOtherLayouts) {
  const SampleLayout layout{{{{10, 20}, 0.5}, {{40, 30}, 0.5}}, 16};
  auto whole = Sampler::create(100, true, 3, layout);
  ASSERT_TRUE(whole.ok());
  for (int i = 0; i < 17; ++i) ASSERT_TRUE(whole->next(7).ok());  // into the second epoch
  const auto state = SamplerState::from_json(whole->state().to_json());
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->epoch, 1);
  auto resumed = Sampler::resume(*state, 100, layout);
  ASSERT_TRUE(resumed.ok()) << resumed.status().to_string();
  for (int i = 0; i < 30; ++i) EXPECT_EQ(*resumed->next(7), *whole->next(7));
  SampleLayout other = layout;
  other.parts[0].weight = 0.6;
  EXPECT_NE(Sampler::resume(*state, 100, other).status().message().find("data.train_weights"),
            std::string::npos);
  EXPECT_FALSE(Sampler::resume(*state, 100).ok());
}

TEST(SampleOrder, AStreamedDataSetHoldsAWindowOnly) {
  const testing::TempFile a(lines(0, 30'000)), b(lines(30'000, 10'000));
  DatasetOptions options;
  options.files = {a.path(), b.path()};
  options.streaming = true;
  options.window_rows = 3000;
  const auto dataset = Dataset::load(options);
  ASSERT_TRUE(dataset.ok()) << dataset.status().to_string();
  ASSERT_EQ(dataset->size(), 40'000);
  auto sampler = Sampler::create(dataset->size(), true, 5, *dataset->layout());
  ASSERT_TRUE(sampler.ok());
  std::set<std::string> seen;
  for (int batch = 0; batch < 400; ++batch) {
    const auto rows = sampler->next(100);
    ASSERT_TRUE(rows.ok());
    for (const std::int64_t index : *rows) {
      const auto row = dataset->read(index);
      ASSERT_TRUE(row.ok()) << row.status().to_string();
      EXPECT_EQ(row->prompt, std::to_string(index));
      seen.insert(row->prompt);
    }
  }
  EXPECT_EQ(seen.size(), 40'000u);
  EXPECT_LE(dataset->streamed()->rows_held_max(), 3000 + 1024);
  EXPECT_LE(dataset->streamed()->blocks_read(), 45) << "each block is read once an epoch";
}

TEST(SampleOrder, StreamedRowsAreSelectedAndWeighted) {
  const testing::TempFile a(lines(0, 3000)), b(lines(3000, 1000));
  DatasetOptions options;
  options.files = {a.path(), b.path()};
  options.streaming = true;
  options.weights = {0.25, 0.75};
  auto dataset = Dataset::load(options);
  ASSERT_TRUE(dataset.ok());
  std::vector<std::int64_t> even;
  for (std::int64_t i = 0; i < 4000; i += 2) even.push_back(i);
  const Dataset half = dataset->select(even);
  EXPECT_EQ(half.size(), 2000);
  EXPECT_EQ(half.read(700)->prompt, "1400");
  const auto layout = half.layout();
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->rows(), 2000);
  EXPECT_EQ(layout->parts[1].block_rows, std::vector<std::int64_t>{500});
  std::vector<std::int64_t> first_file(even.begin(), even.begin() + 1500);
  EXPECT_FALSE(dataset->select(first_file).layout().ok())
      << "nothing is left of a file with a weight";
  options.weights = {1.0};
  EXPECT_EQ(Dataset::load(options).status().message(),
            "data.train_weights has 1 weights, and data.train_files 2 files: give one for each");
}

}  // namespace
}  // namespace rl
