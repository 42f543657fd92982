#include "rl/app/local_model.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "rl/app/command_line.h"
#include "rl/app/progress_line.h"

namespace rl {
namespace {

// Requests per generate(): enough to keep the batch full, few enough that output flows.
constexpr std::size_t kRequestsAtOnce = 256;

}  // namespace

void LocalModelOptions::add_to(CLI::App& app) {
  source.add_to(app, "a Hugging Face folder or a .gguf file")->required();
  app.add_option("--adapter", adapter,
                 "a LoRA adapter for it: a folder with adapter_config.json, as PEFT saves it");
  app.add_option("--threads", threads, "threads to compute with (default: all cores)")
      ->check(whole_number_from(0));
  app.add_option("--device", device, "where to compute: cpu, cuda or cuda:NUMBER")
      ->capture_default_str();
  app.add_option("--deterministic", deterministic,
                 "on a CPU: true computes what training computes, to the bit. false computes by "
                 "LibTorch's operators, with numbers that depend a little on what else runs")
      ->type_name("true|false")
      ->capture_default_str();
  app.add_option("--kv-cache-mib", kv_cache_mib, "limit of the memory for keys and values")
      ->check(whole_number_from(1))
      ->capture_default_str();
}

runtime::Result<LocalModel> LocalModel::load(const std::filesystem::path& path,
                                             const LocalModelOptions& options,
                                             std::optional<Tokenizer> tokenizer) {
  if (!options.adapter.empty() && options.device != "cpu")
    return runtime::unimplemented("--adapter with --device " + options.device +
                                  ": adapters are used on the CPU only; take --device cpu");
  if (!options.deterministic && options.threads > 0) at::set_num_threads(options.threads);
  auto model = Transformer::load(path, {.device = options.device});
  if (!model.ok()) return model.status();
  (*model)->pool().set_threads(options.threads);
  if (!options.adapter.empty()) {
    auto adapter = LoraAdapter::load((*model)->config(), options.adapter);
    if (!adapter.ok()) return adapter.status();
    runtime::Status status = (*model)->add_adapter(options.adapter, std::move(*adapter));
    if (status.ok()) status = (*model)->use_adapter(options.adapter);
    if (!status.ok()) return status;
  }
  auto engine = Engine::create(**model, {.cache = {.bytes_max = options.kv_cache_mib << 20},
                                         .weights = options.weights,
                                         .device = options.device,
                                         .deterministic = options.deterministic,
                                         .tokenizer = std::move(tokenizer)});
  if (!engine.ok()) return engine.status();
  return LocalModel(std::move(*model), std::move(*engine));
}

bool LocalModel::run(std::span<const Request> requests, const std::string& what,
                     const std::function<std::string(std::size_t)>& where,
                     const std::function<void(const Completion&)>& deliver) {
  ProgressLine line;
  bool good = true;
  std::int64_t tokens_before = 0;
  for (std::size_t begin = 0; begin < requests.size(); begin += kRequestsAtOnce) {
    const auto part = requests.subspan(begin, std::min(kRequestsAtOnce, requests.size() - begin));
    std::int64_t tokens = 0;
    auto completions = engine_->generate(part, [&](const EngineProgress& progress) {
      tokens = progress.generated_tokens;
      const double share =
          (static_cast<double>(begin) + static_cast<double>(part.size()) *
                                            static_cast<double>(progress.finished) /
                                            std::max(1.0, static_cast<double>(progress.total))) /
          static_cast<double>(requests.size());
      const double rate =
          static_cast<double>(tokens_before + tokens) / std::max(line.seconds(), 1e-3);
      line.show(
          what + " " + std::to_string(begin + progress.finished) + " of " +
          std::to_string(requests.size() - part.size() + progress.total) +
          (tokens > 0 ? ", " + std::to_string(static_cast<std::int64_t>(rate)) + " tokens/s" : "") +
          (share > 0
               ? ", about " +
                     std::to_string(
                         static_cast<std::int64_t>(line.seconds() * (1 - share) / share) + 1) +
                     " s left"
               : ""));
      return true;
    });
    tokens_before += tokens;
    if (!completions.ok()) return fail(completions.status()), false;
    for (Completion& completion : *completions) {
      completion.request += begin;
      if (completion.status.ok()) {
        deliver(completion);
      } else {
        good = false;
        fail(completion.status.with_context(where(completion.request)));
      }
    }
    std::cout.flush();
  }
  return good;
}

}  // namespace rl
