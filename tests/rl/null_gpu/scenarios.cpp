#include "scenarios.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <vector>

#include "rl/model/device.h"
#include "rl/worker/policy_worker.h"
#include "rl/worker/preference_worker.h"
#include "rl/worker/sft_worker.h"
#include "tests/rl/rollout/tiny_model.h"
#include "tests/support/null_gpu/ledger.h"

namespace rl::testing {
namespace {

using nlohmann::json;
using runtime::Status;

constexpr const char* kDevice = "cuda";
constexpr std::int64_t kSequences = 8;

template <class Function>
Function* preloaded(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

json told(const Status& status) {
  return {{"status", status.ok() ? "ok" : status.to_string()},
          {"code", std::string(runtime::to_string(status.code()))}};
}

// What `work` asks the device for.
template <class Call>
json counted(Call work) {
  preloaded<void()>("null_gpu_reset")();
  const Status status = work();
  null_gpu::Counts counts;
  preloaded<void(null_gpu::Counts*)>("null_gpu_counts")(&counts);
  if (std::getenv("NULL_GPU_PRINT") != nullptr) preloaded<void()>("null_gpu_print")();
  json found = told(status);
  found["launches"] = counts.launches;
  found["products"] = counts.products;
  found["copies"] = counts.copies;
  found["syncs"] = counts.syncs;
  return found;
}

PolicyOptions policy_options(const std::filesystem::path& model) {
  PolicyOptions options;
  options.model = model;
  options.device = kDevice;
  options.training = {.samples = 2, .response_tokens_max = 8};
  options.training.ignore_eos = true;
  options.micro_batch.tokens_max = 4096;
  options.scoring_batch.tokens_max = 4096;
  options.positions_max = 48;
  return options;
}

RolloutBatch samples() {
  RolloutBatch batch;
  for (std::int32_t prompt = 0; prompt < 2; ++prompt) {
    batch.prompts.append(std::vector<std::int32_t>{2, 5 + prompt, 6, 3});
    for (std::int32_t sample = 0; sample < 2; ++sample) {
      batch.prompt_of.push_back(prompt);
      batch.responses.append(std::vector<std::int32_t>{7, 8, 9 + sample, 10, 1});
      batch.logprobs.insert(batch.logprobs.end(), 5, -1.0F);
      batch.lengths_max.push_back(48);
      batch.stopped.push_back(1);
    }
  }
  return batch;
}

UpdatePlan plan_of(const RolloutBatch& batch) {
  UpdatePlan plan;
  plan.learning_rate = 1e-3;
  plan.advantages = {1.0F, -1.0F, 0.5F, -0.5F};
  plan.mini_batches = {{.first_sample = 0,
                        .last_sample = batch.samples(),
                        .tokens_total = static_cast<std::int64_t>(batch.responses.values.size()),
                        .samples_total = batch.samples()}};
  return plan;
}

json decode_step(const std::filesystem::path& model) {
  auto loaded = Transformer::load(model, {.threads = 1, .device = kDevice});
  if (!loaded.ok()) return told(loaded.status());
  EngineOptions options;
  options.cache.bytes_max = 64 << 20;
  auto engine = Engine::create(**loaded, options);
  if (!engine.ok()) return told(engine.status());
  for (std::int64_t i = 0; i < kSequences; ++i)
    (*engine)->submit(sampled_request({4, 5, 6, 7}, 16, static_cast<std::uint64_t>(i)));
  for (int step = 0; step < 3; ++step)
    if (const Status status = (*engine)->step(); !status.ok()) return told(status);
  return counted([&] { return (*engine)->step(); });
}

json update(const PolicyOptions& options) {
  auto worker = PolicyWorker::create(options, make_single_communicator());
  if (!worker.ok()) return told(worker.status());
  const RolloutBatch batch = samples();
  const auto once = [&] { return (*worker)->update(batch, {}, plan_of(batch)).status(); };
  if (const Status first = once(); !first.ok()) return told(first);
  return counted(once);
}

json policy_update(const std::filesystem::path& model) { return update(policy_options(model)); }

json bf16_update(const std::filesystem::path& model) {
  PolicyOptions options = policy_options(model);
  options.bf16 = true;
  return update(options);
}

json dropout_update(const std::filesystem::path& model) {
  PolicyOptions options = policy_options(model);
  options.adapter = AdapterOptions{};
  options.adapter->lora.rank = 4;
  options.adapter->lora.dropout = 0.5;
  return update(options);
}

json offloaded_update(const std::filesystem::path& model) {
  PolicyOptions options = policy_options(model);
  options.learner.offload = {.parameters = true, .gradients = true};
  return update(options);
}

json generated(const std::filesystem::path& model) {
  auto worker = PolicyWorker::create(policy_options(model), make_single_communicator());
  if (!worker.ok()) return told(worker.status());
  PromptBatch prompts;
  prompts.ids.append(std::vector<std::int32_t>{2, 5, 6, 3});
  prompts.seeds.push_back(1);
  const auto batch = (*worker)->generate(prompts, false);
  if (!batch.ok()) return told(batch.status());
  return told((*worker)->logprobs(*batch).status());
}

json teacher_step(const std::filesystem::path& model) {
  SftWorkerOptions options;
  options.model = model;
  options.device = kDevice;
  options.teacher = TeacherOptions{.model = model, .loss = {.temperature = 2.0, .weight = 0.5}};
  auto worker = SftWorker::create(options, make_single_communicator());
  if (!worker.ok()) return told(worker.status());
  SupervisedBatch batch;
  LearnedTokens tokens;
  for (std::int32_t i = 0; i < 9; ++i) {
    tokens.ids.push_back(4 + i);
    tokens.learned.push_back(i >= 3 ? 1 : 0);
  }
  batch.append(tokens);
  return told((*worker)->update(batch, {batch.learned_tokens(), 1e-3}).status());
}

json preference_step(const std::filesystem::path& model) {
  PreferenceWorkerOptions options;
  options.model = model;
  options.device = kDevice;
  options.adapter = AdapterOptions{};
  options.adapter->lora.rank = 4;
  auto worker = PreferenceWorker::create(options, make_single_communicator());
  if (!worker.ok()) return told(worker.status());
  PreferenceBatch batch;
  const std::vector<std::int32_t> prompt = {2, 5, 6, 3}, chosen = {7, 8, 1}, rejected = {9, 1};
  batch.append_pair(
      {.prompt = prompt, .chosen = chosen, .rejected = rejected, .margin = 0, .wanted = true});
  return told((*worker)->update(batch, {}, {batch.rows(), batch.wanted_count()}, 1e-3).status());
}

void compute_a_gradient() {
  at::Tensor x = at::ones({2}).set_requires_grad(true);
  (x * x).sum().backward();
}

json opened_late(const std::filesystem::path&) {
  compute_a_gradient();
  return told(find_device(kDevice).status());
}

// A model that was trained on the CPU before.
json opened_after_training(const std::filesystem::path& model) {
  auto trained = Transformer::load(model, {.threads = 1});
  if (!trained.ok()) return told(trained.status());
  (*trained)->enable_gradients();
  compute_a_gradient();
  return told(find_device(kDevice).status());
}

json opened_twice(const std::filesystem::path&) {
  const auto first = find_device(kDevice);
  if (!first.ok()) return told(first.status());
  json found = told(find_device("cuda:1").status());
  found["bf16 sums"] = at::globalContext().allowBF16ReductionCuBLAS() !=
                       at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK;
  return found;
}

}  // namespace

json run_scenario(const std::string& name, const std::filesystem::path& model) {
  static const std::map<std::string, json (*)(const std::filesystem::path&)> kScenarios = {
      {"decode_step", &decode_step},           {"policy_update", &policy_update},
      {"bf16_update", &bf16_update},           {"dropout_update", &dropout_update},
      {"offloaded_update", &offloaded_update}, {"generate", &generated},
      {"teacher_step", &teacher_step},         {"preference_step", &preference_step},
      {"opened_late", &opened_late},           {"opened_after_training", &opened_after_training},
      {"opened_twice", &opened_twice}};
  const auto found = kScenarios.find(name);
  if (found == kScenarios.end()) return {{"status", "no scenario " + name}};
  return found->second(model);
}

}  // namespace rl::testing
