// Models of which a rank reads its ranges alone (LoadOptions::only).
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "rl/mesh/deal.h"
#include "rl/model/parameters.h"
#include "rl/weights/weight_source.h"
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
  bool gguf = false;
  std::unique_ptr<CountingSource> source = nullptr;
  std::optional<Parameters> whole = {};
};

Model open(const std::filesystem::path& path, bool gguf = false) {
  Model model{.config = *ModelConfig::load(path), .gguf = gguf};
  model.source = std::make_unique<CountingSource>(*open_weights(path));
  auto whole = Parameters::load(model.config, *model.source, gguf);
  EXPECT_TRUE(whole.ok()) << whole.status().to_string();
  model.whole = std::move(*whole);
  model.source->take();
  return model;
}

/// What reading `range` alone may cost: its elements. Of a parameter that is stored in another
/// order it is all of it, of the others at most a block at either end.
std::int64_t elements_read_max(const Model& model, ArenaRange range) {
  std::int64_t most = 0;
  for (const ParameterSpec& spec : model.whole->specs()) {
    const std::int64_t first = std::max(spec.offset, range.begin);
    const std::int64_t last = std::min(spec.offset + spec.count, range.end);
    if (first >= last) continue;
    const bool mixed = model.gguf && (spec.name.find("q_proj") != std::string::npos ||
                                      spec.name.find("k_proj") != std::string::npos);
    most += spec.transposed || mixed ? spec.count : last - first + (model.gguf ? 2 * 32 : 0);
  }
  return most;
}

void expect_parts_equal_the_whole(const Model& model, std::int64_t parts) {
  const std::int64_t size = model.whole->arena_size();
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto cut = deal<std::int64_t>(size, parts, part);
    const ArenaRange range{cut.begin, cut.end};
    const auto loaded = Parameters::load(model.config, *model.source, model.gguf,
                                         {.head_seed = {}, .only = RangeSet{range}});
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    EXPECT_TRUE(loaded->arena()
                    .narrow(0, range.begin, range.size())
                    .equal(model.whole->arena().narrow(0, range.begin, range.size())))
        << part;
    EXPECT_LE(model.source->take(), elements_read_max(model, range)) << part;
  }
}

// Every family, single and sharded files, weights that are stored the other way round.
TEST(PartialLoad, RangesEqualTheWholeAndNothingElseIsRead) {
  int models = 0;
  for (const auto& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename());
    if (!ModelConfig::load(folder).ok()) continue;
    const Model model = open(folder);
    for (const std::int64_t parts : {2, 5}) expect_parts_equal_the_whole(model, parts);
    ++models;
  }
  EXPECT_GT(models, 10);
}

// Blocks of 32 elements, and queries and keys whose rows are mixed within heads.
TEST(PartialLoad, GgufIsReadInBlocks) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf) GTEST_SKIP() << "SmolLM2 is not in the cache: .ci/fetch_wheels.sh model fetches it";
  expect_parts_equal_the_whole(open(*gguf, /*gguf=*/true), 3);
}

}  // namespace
}  // namespace rl
