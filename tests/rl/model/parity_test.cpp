// Equal to transformers: every case under models/ of the fixtures whose family is supported; the
// others must be refused by name.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "rl/model/transformer.h"
#include "tests/rl/fixture_counts.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

using nlohmann::json;

constexpr float kLogitTolerance = 1e-4F;
constexpr float kLogprobTolerance = 1e-4F;
constexpr double kLossTolerance = 1e-5;

// A reference batch without its left padding.
struct Case {
  PackedBatch batch;
  std::vector<float> reference_logprobs;  // one a target
};

Case unpadded(const json& reference) {
  Case out;
  for (std::size_t row = 0; row < reference["input_ids"].size(); ++row) {
    const auto ids = reference["input_ids"][row].get<std::vector<std::int32_t>>();
    const auto mask = reference["attention_mask"][row].get<std::vector<int>>();
    const std::size_t padding =
        static_cast<std::size_t>(std::find(mask.begin(), mask.end(), 1) - mask.begin());
    out.batch.append(std::span(ids).subspan(padding));
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      if (reference["logprob_mask"][row][i] == 1)
        out.reference_logprobs.push_back(reference["token_logprobs"][row][i]);
    }
  }
  return out;
}

void expect_near(const at::Tensor& actual, const std::vector<float>& expected, float tolerance,
                 const std::string& what) {
  const at::Tensor flat = actual.detach().contiguous().view({-1});
  ASSERT_EQ(static_cast<std::size_t>(flat.numel()), expected.size()) << what;
  const float* values = flat.const_data_ptr<float>();
  float worst = 0.0F;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(values[i] - expected[i]));
  EXPECT_LE(worst, tolerance) << what;
}

void check_logits(const Transformer& model, const Case& c, const json& reference) {
  auto logits = model.logits(c.batch);
  ASSERT_TRUE(logits.ok()) << logits.status().to_string();
  for (std::int64_t row = 0; row < c.batch.sequences(); ++row) {
    const std::int64_t last = c.batch.cu_seqlens[static_cast<std::size_t>(row) + 1] - 1;
    expect_near((*logits)[last],
                reference["logits_last"][static_cast<std::size_t>(row)].get<std::vector<float>>(),
                kLogitTolerance, "logits_last of row " + std::to_string(row));
  }
  expect_near((*logits)[7], reference["logits_row0_pos7"].get<std::vector<float>>(),
              kLogitTolerance, "logits_row0_pos7");
}

// Transformers holds the experts of a layer in two tensors; checkpoints, and we, have them one by
// one, Mixtral's with its own names.
std::string reference_name(std::string name) {
  if (const std::size_t at = name.find(".block_sparse_moe."); at != std::string::npos)
    name.replace(at, 18, ".mlp.");
  const std::size_t experts = name.find(".mlp.experts.");
  if (experts == std::string::npos) return name;
  const bool is_down =
      name.find(".down_proj.") != std::string::npos || name.find(".w2.") != std::string::npos;
  return name.substr(0, experts) + ".mlp.experts." + (is_down ? "down_proj" : "gate_up_proj");
}

void check_gradients(const Transformer& model, const json& reference) {
  const double total = reference["grad_norm_total"];
  EXPECT_NEAR(model.gradients().arena().norm().item<double>(), total, 1e-3 * total);
  std::map<std::string, double> squares;
  for (const ParameterSpec& spec : model.gradients().specs()) {
    const double norm = model.gradients().view(spec).norm().item<double>();
    if (!spec.frozen)
      squares[reference_name(spec.name)] += norm * norm;
    else
      EXPECT_EQ(norm, 0.0) << spec.name;
  }
  for (const auto& [name, expected] : reference["grad_norm"].items()) {
    ASSERT_TRUE(squares.contains(name)) << name;
    EXPECT_NEAR(std::sqrt(squares[name]), expected.get<double>(),
                1e-3 * expected.get<double>() + 1e-6 * total)
        << name;
  }
  EXPECT_EQ(squares.size(), reference["grad_norm"].size());
}

void check_greedy(const Transformer& model, const json& reference) {
  auto ids = reference["input_ids"][0].get<std::vector<std::int32_t>>();
  const std::size_t prompt = ids.size();
  const auto expected = reference["greedy_row0"].get<std::vector<std::int32_t>>();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    PackedBatch batch;
    batch.append(ids);
    auto logits = model.logits(batch);
    ASSERT_TRUE(logits.ok()) << logits.status().to_string();
    ids.push_back(static_cast<std::int32_t>((*logits)[-1].argmax().item<std::int64_t>()));
  }
  EXPECT_EQ(std::vector(ids.begin() + static_cast<std::ptrdiff_t>(prompt), ids.end()), expected);
}

void check_case(const std::filesystem::path& folder) {
  const json reference = testing::read_json(folder / "reference.json");
  auto loaded = Transformer::load(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  Transformer& model = **loaded;
  const Case c = unpadded(reference);
  check_logits(model, c, reference);
  check_greedy(model, reference);

  model.enable_gradients();
  auto out = model.token_logprobs(c.batch);
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  expect_near(out->logprobs_N, c.reference_logprobs, kLogprobTolerance, "token_logprobs");
  at::Tensor loss = -out->logprobs_N.mean();
  EXPECT_NEAR(loss.item<double>(), reference["loss"].get<double>(), kLossTolerance);
  loss.backward();
  check_gradients(model, reference);
}

TEST(Parity, EveryFixtureIsEqualOrRefusedByName) {
  const auto cases = testing::model_cases();
  ASSERT_FALSE(cases.empty()) << "no models under " << testing::fixtures();
  int equal = 0;
  int refused = 0;
  for (const auto& folder : cases) {
    SCOPED_TRACE(folder.filename().string());
    const auto config = ModelConfig::load(folder);
    if (config.ok()) {
      check_case(folder);
      ++equal;
      continue;
    }
    const json object = testing::read_json(folder / "config.json");
    EXPECT_EQ(config.status().code(), runtime::ErrorCode::kUnimplemented);
    EXPECT_NE(config.status().message().find(object["model_type"].get<std::string>()),
              std::string::npos)
        << config.status().message();
    EXPECT_NE(object["model_type"], "llama") << config.status().message();
    ++refused;
  }
  testing::count_fixtures("models", std::to_string(equal) + " compared with the reference, " +
                                        std::to_string(refused) + " refused by name");
  EXPECT_GT(equal, 0);
  if (testing::fixtures() == STARLING_SOURCE_DIR "/tests/fixtures") {
    EXPECT_EQ(refused, 0);
  }
}

}  // namespace
}  // namespace rl
