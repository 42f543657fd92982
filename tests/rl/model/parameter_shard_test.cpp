#include "rl/model/parameter_shard.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>

#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

// Counts the elements that are read, by tensor.
class CountingSource final : public WeightSource {
 public:
  explicit CountingSource(std::unique_ptr<WeightSource> source) : source_(std::move(source)) {}
  const std::vector<TensorInfo>& tensors() const override { return source_->tensors(); }
  const TensorInfo* find(std::string_view name) const override { return source_->find(name); }
  runtime::Status read_f32(std::string_view name, std::span<float> out) const override {
    read_ += static_cast<std::int64_t>(out.size());
    return source_->read_f32(name, out);
  }
  runtime::Status read_f32_range(std::string_view name, std::int64_t first,
                                 std::span<float> out) const override {
    read_ += static_cast<std::int64_t>(out.size());
    return source_->read_f32_range(name, first, out);
  }
  std::int64_t take() const { return read_.exchange(0); }

 private:
  std::unique_ptr<WeightSource> source_;
  mutable std::atomic<std::int64_t> read_{0};
};

struct Model {
  ModelConfig config;
  std::unique_ptr<CountingSource> source;
  std::optional<Parameters> whole;
};

Model open(const std::filesystem::path& folder, bool gguf = false) {
  Model model;
  model.config = *ModelConfig::load(folder);
  model.source = std::make_unique<CountingSource>(*open_weights(folder));
  auto whole = Parameters::load(model.config, *model.source, gguf);
  EXPECT_TRUE(whole.ok()) << whole.status().to_string();
  model.whole = std::move(*whole);
  model.source->take();
  return model;
}

std::int64_t exact_elements(const Parameters& parameters, ArenaRange range) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameters.specs()) {
    const std::int64_t first = std::max(spec.offset, range.begin);
    const std::int64_t last = std::min(spec.offset + spec.count, range.end);
    if (first >= last) continue;
    if (spec.transposed) return -1;  // whole columns are read, which another test counts
    count += last - first;
  }
  return count;
}

TEST(ParameterShard, RangesCoverTheArenaOnce) {
  for (const std::int64_t elements : {0, 16, 160, 4096, 48}) {
    for (const std::int64_t world : {1, 2, 3, 7, 64}) {
      std::int64_t next = 0;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const ArenaRange range = arena_shard(elements, {rank, world});
        EXPECT_EQ(range.begin, next);
        EXPECT_EQ(range.begin % 16, 0);
        EXPECT_GE(range.end, range.begin);
        next = range.end;
      }
      EXPECT_EQ(next, elements) << world;
    }
  }
}

// Every family, single and sharded files, weights that are stored the other way round.
TEST(ParameterShard, RangesOfTheArenaEqualTheWhole) {
  for (const auto& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename());
    if (!ModelConfig::load(folder).ok()) continue;
    const Model model = open(folder);
    for (const std::int64_t world : {2, 5}) {
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const ArenaRange range = arena_shard(model.whole->arena_size(), {rank, world});
        const auto shard =
            load_arena_range(model.config, *model.source, /*gguf_names=*/false, range);
        ASSERT_TRUE(shard.ok()) << shard.status().to_string();
        EXPECT_TRUE(shard->equal(model.whole->arena().narrow(0, range.begin, range.size())))
            << rank;
        const std::int64_t read = model.source->take();
        if (const std::int64_t exact = exact_elements(*model.whole, range); exact >= 0) {
          EXPECT_EQ(read, exact);
        }
      }
    }
    EXPECT_EQ(
        load_arena_range(model.config, *model.source, false, {0, model.whole->arena_size() + 1})
            .status()
            .code(),
        runtime::ErrorCode::kInvalidArgument);
  }
}

SplitBy rule(const ParameterSpec& spec) {
  if (spec.shape.size() != 2) return SplitBy::kNothing;
  for (const char* name :
       {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "fc1", "c_fc", "embed_tokens"}) {
    if (spec.name.find(name) != std::string::npos) return SplitBy::kRows;
  }
  for (const char* name : {"o_proj", "out_proj", "down_proj", "fc2", "c_proj"}) {
    if (spec.name.find(name) != std::string::npos) return SplitBy::kColumns;
  }
  return SplitBy::kNothing;
}

TEST(ParameterShard, RowsAndColumnsEqualTheWhole) {
  int split = 0;
  for (const auto& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename());
    if (!ModelConfig::load(folder).ok()) continue;
    const Model model = open(folder);
    const std::int64_t world = 2;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const auto parts = load_tensor_parallel(model.config, *model.source, /*gguf_names=*/false,
                                              {rank, world}, rule);
      if (!parts.ok()) {
        EXPECT_NE(parts.status().message().find("cannot be split"), std::string::npos)
            << parts.status().to_string();
        continue;
      }
      std::int64_t elements = 0;
      for (std::size_t i = 0; i < parts->size(); ++i) {
        const ParameterSpec& spec = model.whole->specs()[i];
        at::Tensor expected = model.whole->view(spec);
        if (const SplitBy by = rule(spec); by != SplitBy::kNothing) {
          const std::int64_t dimension = by == SplitBy::kRows ? 0 : 1;
          expected = expected.chunk(world, dimension)[static_cast<std::size_t>(rank)];
          ++split;
        }
        EXPECT_TRUE((*parts)[i].equal(expected)) << spec.name;
        elements += (*parts)[i].numel();
      }
      EXPECT_EQ(model.source->take(), elements);  // nothing but what the rank holds
    }
  }
  EXPECT_GT(split, 100);
}

TEST(ParameterShard, WhatCannotBeSplitIsNamed) {
  const Model model = open(testing::fixtures() / "models" / "llama");
  const auto parts = load_tensor_parallel(model.config, *model.source, false, {0, 7}, rule);
  EXPECT_EQ(parts.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(parts.status().message().find("model.embed_tokens.weight"), std::string::npos)
      << parts.status().to_string();
}

// Blocks of 32 elements, and queries and keys whose rows are mixed within heads.
TEST(ParameterShard, GgufIsReadInBlocksAndHeads) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf) GTEST_SKIP() << "SmolLM2 is not in the cache: .ci/fetch_wheels.sh model fetches it";
  const Model model = open(*gguf, /*gguf=*/true);
  const std::int64_t world = 3;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const ArenaRange range = arena_shard(model.whole->arena_size(), {rank, world});
    const auto shard = load_arena_range(model.config, *model.source, /*gguf_names=*/true, range);
    ASSERT_TRUE(shard.ok()) << shard.status().to_string();
    EXPECT_TRUE(shard->equal(model.whole->arena().narrow(0, range.begin, range.size()))) << rank;
    EXPECT_LE(model.source->take(), range.size() + 2 * 64 * 576);  // at most a head at either end
    const auto parts = load_tensor_parallel(model.config, *model.source, true, {rank, world}, rule);
    ASSERT_TRUE(parts.ok()) << parts.status().to_string();
    for (std::size_t i = 0; i < parts->size(); ++i) {
      const ParameterSpec& spec = model.whole->specs()[i];
      const SplitBy by = rule(spec);
      const at::Tensor all = model.whole->view(spec);
      EXPECT_TRUE((*parts)[i].equal(
          by == SplitBy::kNothing
              ? all
              : all.chunk(world, by == SplitBy::kRows ? 0 : 1)[static_cast<std::size_t>(rank)]))
          << spec.name;
    }
    model.source->take();
  }
}

}  // namespace
}  // namespace rl
