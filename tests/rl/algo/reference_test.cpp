// Every case of algorithms/reference.json, values and gradients within 1e-5. A case that no
// function covers fails by name.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "rl/algo/aggregate.h"
#include "rl/algo/group_advantage.h"
#include "rl/algo/kl.h"
#include "rl/algo/masked.h"
#include "rl/algo/policy_loss.h"
#include "rl/algo/preference.h"
#include "rl/algo/token_advantage.h"
#include "tests/rl/fixture_counts.h"

namespace rl {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-5;

at::Tensor tensor(const json& values) {
  std::vector<float> flat;
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(values.size())};
  if (values.at(0).is_array()) shape.push_back(static_cast<std::int64_t>(values.at(0).size()));
  for (const json& row : values) {
    if (row.is_array()) {
      for (const json& value : row) flat.push_back(value);
    } else {
      flat.push_back(row);
    }
  }
  return at::tensor(flat).view(shape);
}

std::vector<float> floats(const at::Tensor& t) {
  const at::Tensor flat = t.contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

Aggregation with_mode(AggregationMode mode) {
  Aggregation aggregation;
  aggregation.mode = mode;
  return aggregation;
}

// "ppo clip=0.2 c=3 token-mean": the first word, key=value options, and what stands alone.
struct CaseName {
  explicit CaseName(const std::string& text) {
    std::istringstream words(text);
    words >> kind;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) {
        mode = word;
      } else {
        options[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
  }

  double number(const std::string& key, double otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : std::stod(found->second);
  }

  bool flag(const std::string& key) const {
    const auto found = options.find(key);
    return found != options.end() && found->second == "True";
  }

  std::string kind;
  std::string mode;
  std::map<std::string, std::string> options;
};

class Reference : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("STARLING_FIXTURES");
    const std::string root =
        folder != nullptr && *folder != 0 ? folder : STARLING_SOURCE_DIR "/tests/fixtures";
    std::ifstream file(root + "/algorithms/reference.json");
    if (!file) GTEST_SKIP() << "no algorithms/reference.json under " << root;
    reference_ = json::parse(file);
    mask_BT_ = input("response_mask");
    groups_ = reference_["inputs"]["group_index"].get<std::vector<std::int64_t>>();
    for (const float length : floats(mask_BT_.sum(1)))
      lengths_.push_back(static_cast<std::int64_t>(length));
    scores_ = floats(input("token_level_rewards").sum(1));
  }

  at::Tensor input(const std::string& name) const { return tensor(reference_["inputs"][name]); }

  // Outside the mask anything goes.
  void expect_equal(const at::Tensor& actual_BT, const json& expected,
                    const std::string& what) const {
    const at::Tensor expected_BT = tensor(expected);
    ASSERT_EQ(actual_BT.sizes(), expected_BT.sizes()) << what;
    EXPECT_LE(((actual_BT - expected_BT).abs() * mask_BT_).max().item<double>(), kTolerance)
        << what;
  }

  Advantages advantages(const CaseName& name) const {
    const auto outcome = [&](const std::vector<float>& per_response) {
      const at::Tensor advantages_BT = per_token(at::tensor(per_response), mask_BT_);
      return Advantages{advantages_BT, advantages_BT};
    };
    if (name.kind == "gae") {
      return gae(input("dense_rewards"), input("values"), mask_BT_,
                 {.gamma = name.number("gamma", 1.0), .lambda = name.number("lam", 1.0)});
    }
    if (name.kind == "grpo")
      return outcome(grpo_advantages(scores_, groups_, name.flag("norm_by_std")));
    if (name.kind == "rloo") return outcome(rloo_advantages(scores_, groups_));
    if (name.kind == "opo") return outcome(opo_advantages(scores_, groups_, lengths_));
    if (name.kind == "grpo_passk") return outcome(grpo_passk_advantages(scores_, groups_));
    if (name.kind == "reinforce_plus_plus_baseline") {
      return outcome(reinforce_plus_plus_baseline_advantages(scores_, groups_, lengths_));
    }
    if (name.kind == "reinforce_plus_plus") {
      return reinforce_plus_plus(input("token_level_rewards"), mask_BT_, name.number("gamma", 1.0));
    }
    if (name.kind == "remax")
      return remax(input("token_level_rewards"), input("reward_baselines"), mask_BT_);
    return {};
  }

  json reference_;
  at::Tensor mask_BT_;
  std::vector<std::int64_t> groups_;
  std::vector<std::int64_t> lengths_;
  std::vector<float> scores_;
};

TEST_F(Reference, Advantages) {
  for (const auto& [name, expected] : reference_["advantage"].items()) {
    const Advantages actual = advantages(CaseName(name));
    ASSERT_TRUE(actual.advantages_BT.defined()) << "no function for " << name;
    expect_equal(actual.advantages_BT, expected["advantages"], name);
    expect_equal(actual.returns_BT, expected["returns"], name + " returns");
  }
  testing::count_fixtures(
      "algorithms", std::to_string(reference_["advantage"].size()) + " advantages, and the losses");
}

TEST_F(Reference, PolicyLosses) {
  const at::Tensor old_BT = input("old_log_prob");
  const at::Tensor advantages_BT = input("advantages");
  for (const auto& [text, expected] : reference_["policy_loss"].items()) {
    const CaseName name(text);
    at::Tensor logprobs_BT = input("log_prob");
    logprobs_BT.set_requires_grad(true);
    ClipOptions clip;
    clip.low = name.number("clip_low", name.number("clip", 0.2));
    clip.high = name.number("clip_high", name.number("clip", 0.2));
    Aggregation aggregation;
    if (!name.mode.empty()) aggregation.mode = parse_aggregation_mode(name.mode).value();

    PolicyLoss out;
    at::Tensor loss;
    if (name.kind == "ppo" || name.kind == "dapo") {
      clip.dual = name.number("c", 3.0);
      out = clipped_surrogate(importance_ratio(logprobs_BT, old_BT), advantages_BT, clip);
    } else if (name.kind == "gspo") {
      out = clipped_surrogate(sequence_importance_ratio(logprobs_BT, old_BT, mask_BT_),
                              advantages_BT, clip);
    } else if (name.kind == "cispo") {
      out = cispo_loss(logprobs_BT, old_BT, advantages_BT, clip);
    } else if (name.kind == "gmpo") {
      const SequencePolicyLoss sequences =
          geometric_mean_loss(logprobs_BT, old_BT, advantages_BT, mask_BT_, clip);
      loss = sequences.loss_B.mean();
      out = {loss, sequences.clipped_BT, sequences.clipped_lower_BT};
    } else {
      FAIL() << "no function for " << text;
    }
    if (!loss.defined()) loss = aggregate(out.loss_BT, mask_BT_, aggregation);
    EXPECT_NEAR(loss.item<double>(), expected["loss"].get<double>(), kTolerance) << text;
    loss.backward();
    expect_equal(logprobs_BT.grad(), expected["grad_log_prob"], text + " gradient");

    const json& metrics = expected["metrics"];
    EXPECT_NEAR(masked_mean(out.clipped_BT, mask_BT_).item<double>(),
                metrics["actor/pg_clipfrac"].get<double>(), kTolerance)
        << text;
    EXPECT_NEAR(masked_mean(out.clipped_lower_BT, mask_BT_).item<double>(),
                metrics["actor/pg_clipfrac_lower"].get<double>(), kTolerance)
        << text;
    EXPECT_NEAR(-masked_mean(log_ratio(logprobs_BT, old_BT), mask_BT_).item<double>(),
                metrics["actor/ppo_kl"].get<double>(), kTolerance)
        << text;
  }
}

TEST_F(Reference, ValueLoss) {
  for (const auto& [text, expected] : reference_["value_loss"].items()) {
    const CaseName name("value " + text);
    const ValueLoss out = clipped_value_loss(input("vpreds"), input("values"), input("returns"),
                                             name.number("clip", 0.2));
    EXPECT_NEAR(
        aggregate(out.loss_BT, mask_BT_, with_mode(parse_aggregation_mode(name.mode).value()))
            .item<double>(),
        expected[0].get<double>(), kTolerance)
        << text;
    EXPECT_NEAR(masked_mean(out.clipped_BT, mask_BT_).item<double>(), expected[1].get<double>(),
                kTolerance)
        << text;
  }
}

TEST_F(Reference, KlEstimators) {
  for (const auto& [name, expected] : reference_["kl"].items()) {
    const auto penalty = parse_kl_penalty(name);
    ASSERT_TRUE(penalty.ok()) << penalty.status().to_string();
    expect_equal(kl_penalty(input("log_prob"), input("ref_log_prob"), *penalty), expected, name);
  }
}

TEST_F(Reference, Aggregations) {
  for (const auto& [name, expected] : reference_["agg"].items()) {
    const auto mode = parse_aggregation_mode(name);
    ASSERT_TRUE(mode.ok()) << mode.status().to_string();
    EXPECT_NEAR(aggregate(input("advantages"), mask_BT_, with_mode(*mode)).item<double>(),
                expected.get<double>(), kTolerance)
        << name;
  }
}

TEST_F(Reference, Dpo) {
  const json& dpo = reference_["dpo"];
  const PairLogprobs policy{tensor(dpo["policy_chosen"]), tensor(dpo["policy_rejected"])};
  const PairLogprobs reference{tensor(dpo["ref_chosen"]), tensor(dpo["ref_rejected"])};
  const double beta = dpo["beta"];
  for (const auto& [kind, key] : {std::pair(DpoLoss::kSigmoid, "sigmoid_loss"),
                                  {DpoLoss::kIpo, "ipo_loss"},
                                  {DpoLoss::kHinge, "hinge_loss"}}) {
    const PreferenceLoss out = dpo_loss(policy, reference, {.beta = beta, .loss = kind});
    const at::Tensor expected = tensor(dpo[key]);
    EXPECT_LE(((out.loss_P - expected).abs() / expected.abs().clamp_min(1.0)).max().item<double>(),
              kTolerance)
        << key;
    EXPECT_LE((out.rewards_chosen_P - tensor(dpo["rewards_chosen"])).abs().max().item<double>(),
              kTolerance);
    EXPECT_LE((out.rewards_rejected_P - tensor(dpo["rewards_rejected"])).abs().max().item<double>(),
              kTolerance);
  }
}

TEST_F(Reference, Kto) {
  const json& kto = reference_["kto"];
  const at::Tensor kl = at::tensor(kto["kl"].get<float>());
  const double beta = kto["beta"];
  const at::Tensor wanted = kto_loss(tensor(kto["policy_desirable"]), tensor(kto["ref_desirable"]),
                                     kl, true, {.beta = beta, .weight = kto["desirable_weight"]});
  const at::Tensor unwanted =
      kto_loss(tensor(kto["policy_undesirable"]), tensor(kto["ref_undesirable"]), kl, false,
               {.beta = beta, .weight = kto["undesirable_weight"]});
  EXPECT_LE((wanted - tensor(kto["loss_desirable"])).abs().max().item<double>(), kTolerance);
  EXPECT_LE((unwanted - tensor(kto["loss_undesirable"])).abs().max().item<double>(), kTolerance);
}

TEST_F(Reference, BradleyTerry) {
  const json& pairs = reference_["bradley_terry"];
  const at::Tensor loss =
      bradley_terry_loss(tensor(pairs["chosen"]), tensor(pairs["rejected"])).mean();
  EXPECT_NEAR(loss.item<double>(), pairs["loss"].get<double>(), kTolerance);
}

}  // namespace
}  // namespace rl
