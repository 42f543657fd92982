// Mixtral: Mistral with experts, of which each token takes the best two; Jiang et al. 2024,
// arXiv:2401.04088.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "rl/model/family_list.h"
#include "rl/model/json_fields.h"

namespace rl {
namespace {

void read_mixtral(JsonFields& fields, const std::string& where, ModelConfig& config) {
  read_common(fields, where, config,
              {.kv_heads = 8, .positions = 131072, .norm_eps = 1e-5, .rope_theta = 1e6});
  read_activation(fields, "hidden_act", "silu", config);
  read_windows(fields, config, WindowRule::kAllLayers, 0);
  MoeConfig moe;
  moe.experts = fields.integer("num_local_experts", 8, 1, 4096);
  moe.experts_per_token =
      fields.integer("num_experts_per_tok", std::min<std::int64_t>(2, moe.experts), 1, moe.experts);
  moe.intermediate_size = config.intermediate_size;
  moe.normalized = true;
  config.moe = moe;
}

void plan_mixtral(PlanBuilder& builder) {
  plan_llama(builder);
  // The experts' parts have numbers for names here.
  const auto rename = [&](ParameterIndex index) {
    std::string& name = builder.plan.parameters[static_cast<std::size_t>(index)].name;
    const auto put = [&](std::string_view from, std::string_view to) {
      if (const std::size_t at = name.find(from); at != std::string::npos)
        name.replace(at, from.size(), to);
    };
    put(".mlp.", ".block_sparse_moe.");
    put(".gate_proj.", ".w1.");
    put(".down_proj.", ".w2.");
    put(".up_proj.", ".w3.");
  };
  for (const LayerPlan& layer : builder.plan.layers) {
    rename(layer.experts->router.weight);
    for (const MlpPlan& expert : layer.experts->experts) {
      for (const LinearPlan* linear : {&expert.gate, &expert.up, &expert.down})
        rename(linear->weight);
    }
  }
}

}  // namespace

const Family kMixtralFamily{.model_type = "mixtral",
                            .architecture = "MixtralForCausalLM",
                            .read = read_mixtral,
                            .plan = plan_mixtral,
                            .ignorable = ignorable_usual};

}  // namespace rl
