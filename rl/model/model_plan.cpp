#include "rl/model/model_plan.h"

#include <utility>

namespace rl {

ParameterIndex PlanBuilder::tensor(FamilyParameter parameter) {
  plan.parameters.push_back(std::move(parameter));
  return static_cast<ParameterIndex>(plan.parameters.size()) - 1;
}

LinearPlan PlanBuilder::linear(const std::string& name, std::int64_t out, std::int64_t in,
                               const LinearOptions& options) {
  const auto gguf = [&](const char* part) {
    return options.gguf.empty() ? std::string() : options.gguf + part;
  };
  LinearPlan linear;
  linear.rows = out;
  linear.weight = tensor({.name = name + ".weight",
                          .shape = {out, in},
                          .transposed = options.transposed,
                          .saved_fp32 = options.saved_fp32,
                          .gguf_name = gguf(".weight"),
                          .gguf_rows = options.gguf_rows});
  if (options.bias) {
    linear.bias = tensor({.name = name + ".bias",
                          .shape = {out},
                          .init = FamilyParameter::Init::kZeros,
                          .gguf_name = gguf(".bias"),
                          .gguf_rows = options.gguf_rows});
  }
  return linear;
}

NormPlan PlanBuilder::rms_norm(const std::string& name, std::int64_t size,
                               const std::string& gguf) {
  return {.weight = tensor({.name = name + ".weight",
                            .shape = {size},
                            .init = FamilyParameter::Init::kOnes,
                            .gguf_name = gguf.empty() ? "" : gguf + ".weight"})};
}

NormPlan PlanBuilder::norm(const std::string& name, std::int64_t size, const std::string& gguf) {
  NormPlan norm = rms_norm(name, size, gguf);
  if (config_.norm == NormKind::kRmsPlusOne)
    plan.parameters.back().init = FamilyParameter::Init::kZeros;
  if (config_.norm == NormKind::kLayer) {
    norm.bias = tensor({.name = name + ".bias",
                        .shape = {size},
                        .init = FamilyParameter::Init::kZeros,
                        .gguf_name = gguf.empty() ? "" : gguf + ".bias"});
  }
  return norm;
}

void PlanBuilder::embedding(const std::string& name, const std::string& gguf) {
  plan.embedding = tensor({.name = name + ".weight",
                           .shape = {config_.vocab_size, config_.embedding_width()},
                           .gguf_name = gguf.empty() ? "" : gguf + ".weight"});
}

void PlanBuilder::lm_head(const std::string& name, const std::string& gguf) {
  if (config_.task != ModelTask::kCausalLm) {
    plan.unused = {name + ".weight", gguf + ".weight"};
  } else if (config_.tie_word_embeddings) {
    plan.lm_head = {.weight = plan.embedding, .rows = config_.vocab_size};
  } else {
    plan.lm_head = linear(name, config_.vocab_size, config_.embedding_width(), {.gguf = gguf});
  }
}

}  // namespace rl
