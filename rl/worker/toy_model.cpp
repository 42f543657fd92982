#include "rl/worker/toy_model.h"

#include <chrono>
#include <system_error>

#include "rl/data/toy.h"
#include "rl/hub/hub.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/model/save.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

constexpr std::chrono::seconds kProgressInterval{2};

}  // namespace

runtime::Status make_toy_model(const std::filesystem::path& folder,
                               const ToyModelOptions& options) {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = options.hidden_size;
  config.layers = options.layers;
  config.heads = options.heads;
  config.kv_heads = options.kv_heads;
  config.head_dim = options.hidden_size / options.heads;
  config.intermediate_size = options.intermediate_size;
  config.vocab_size = toy_vocab_size();
  config.max_position_embeddings = options.positions;
  config.tie_word_embeddings = true;
  config.initializer_range =
      0.05F;  // larger than usual: so few layers need it to begin learning at once
  config.eos_ids = {kToyEndId};
  config.pad_id = kToyPadId;
  runtime::Status status =
      save_model_folder(config, Parameters::random(config, options.seed), folder);
  if (status.ok()) status = write_file_atomically(folder / "tokenizer.json", toy_tokenizer_json());
  if (status.ok())
    status = write_file_atomically(folder / "tokenizer_config.json", toy_tokenizer_config_json());
  return status;
}

runtime::Result<std::filesystem::path> fetch_named_model(const std::string& name) {
  HubOptions hub = HubOptions::from_environment();
  auto last = std::chrono::steady_clock::now();
  hub.progress = [&last](const HubProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kProgressInterval) return;
    last = now;
    LOG(info, "fetching {}: {} of {} MiB", progress.name, progress.bytes_done >> 20,
        progress.bytes_total >> 20);
  };
  return locate_model(name, "", HubNeed::kModel, hub);
}

runtime::Result<std::filesystem::path> resolve_model(const Config& config, const std::string& key,
                                                     std::uint64_t seed) {
  const runtime::Result<std::string> name = config.get_string(key);
  if (!name.ok()) return name.status();
  std::error_code error;
  if (*name != kToyModelName) {
    auto path = fetch_named_model(*name);
    if (path.ok()) return path;
    return path.status().with_context(key + " (" + config.origin(key) + ")");
  }
  const runtime::Result<std::string> root = config.get_string("trainer.default_local_dir");
  if (!root.ok()) return root.status();
  const std::filesystem::path folder = std::filesystem::absolute(*root, error) / "toy_model";
  if (error) return runtime::errno_status(error.value(), *root);
  std::filesystem::create_directories(folder, error);
  if (error) return runtime::errno_status(error.value(), "making " + folder.string());
  const runtime::Status made = make_toy_model(folder, {.seed = seed});
  if (!made.ok()) return made;
  return folder;
}

}  // namespace rl
