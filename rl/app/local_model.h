// A model with its rollout engine in this process: what `generate` and `score` work with.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rl/app/model_option.h"
#include "rl/model/transformer.h"
#include "rl/rollout/engine.h"
#include "runtime/core/result.h"

namespace rl {

/// The options that both commands share.
struct LocalModelOptions {
  ModelOption source;   // where the model is
  std::string adapter;  // a folder as PEFT saves it; empty: none
  int threads = 0;      // 0: all cores
  EngineWeights weights = EngineWeights::kFp32;
  std::string device = "cpu";
  bool deterministic = true;         // see EngineOptions
  std::int64_t kv_cache_mib = 2048;  // address space; memory is taken as it is used

  void add_to(CLI::App& app);
};

class LocalModel {
 public:
  /// The tokenizer is for stop strings. Errors as Transformer::load and Engine::create.
  static runtime::Result<LocalModel> load(const std::filesystem::path& model,
                                          const LocalModelOptions& options,
                                          std::optional<Tokenizer> tokenizer = std::nullopt);

  /// Runs the requests in batches and hands over each batch's completions as they come, in order.
  /// `what` names the work in the progress line. False when any completion failed; its error is on
  /// stderr, after `where` of its request.
  bool run(std::span<const Request> requests, const std::string& what,
           const std::function<std::string(std::size_t)>& where,
           const std::function<void(const Completion&)>& deliver);

 private:
  LocalModel(std::unique_ptr<Transformer> model, std::unique_ptr<Engine> engine)
      : model_(std::move(model)), engine_(std::move(engine)) {}

  std::unique_ptr<Transformer> model_;  // before the engine, which borrows it
  std::unique_ptr<Engine> engine_;
};

}  // namespace rl
