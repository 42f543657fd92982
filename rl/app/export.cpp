#include "rl/app/export.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rl/app/checkpoint_folder.h"
#include "rl/app/command_line.h"
#include "rl/app/local_model.h"
#include "rl/app/model_option.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/model/save.h"
#include "runtime/core/ids.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

const std::map<std::string, DType> kDTypes = {
    {"float32", DType::kF32}, {"float16", DType::kF16}, {"bfloat16", DType::kBF16}};

struct ExportOptions {
  std::string checkpoint;
  ModelOption model;
  std::string tokenizer;
  std::string adapter;
  std::string out;
  std::int64_t shard_mib_max = 5000;
  std::string dtype = "float32";
};

// What is exported: a model, and an adapter to merge into it if there is one.
struct ExportSource {
  fs::path model;
  fs::path adapter;
};

// The model that an adapter is merged into: where --model says, or what the adapter was made for.
Result<fs::path> find_base(const ExportOptions& options, const fs::path& adapter) {
  if (!options.model.model.empty()) return options.model.locate(HubNeed::kModel);
  const Result<LoraConfig> config = LoraConfig::load(adapter);
  if (!config.ok()) return config.status();
  if (config->base_model.empty())
    return runtime::invalid_argument(adapter.string() +
                                     " does not name its base model; give it with --model");
  Result<fs::path> base = locate_with_progress(config->base_model, "", HubNeed::kModel);
  if (!base.ok())
    return base.status().with_context("the model that " + adapter.string() +
                                      " is for (--model names another place)");
  return base;
}

Result<ExportSource> find_source(const ExportOptions& options) {
  ExportSource source{.model = {}, .adapter = options.adapter};
  if (!options.checkpoint.empty()) {
    const Result<fs::path> checkpoint = find_checkpoint(options.checkpoint);
    if (!checkpoint.ok()) return checkpoint.status();
    if (const auto model = model_in_checkpoint(*checkpoint)) {
      if (!options.model.model.empty())
        return runtime::invalid_argument(options.checkpoint +
                                         " holds a whole model: leave out --model");
      source.model = *model;
      return source;
    }
    const auto adapter = adapter_in_checkpoint(*checkpoint);
    if (!adapter)
      return runtime::not_found(options.checkpoint +
                                ": no checkpoint there (a run's folder, a global_step_N, or a "
                                "folder with config.json or adapter_config.json)");
    source.adapter = *adapter;
  }
  Result<fs::path> model = options.checkpoint.empty() ? options.model.locate(HubNeed::kModel)
                                                      : find_base(options, source.adapter);
  if (!model.ok()) return model.status();
  source.model = std::move(*model);
  return source;
}

// A folder that is removed again unless it was kept.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

  Status keep_as(const fs::path& final_path) {
    std::error_code error;
    fs::remove(final_path, error);  // an empty folder may be there
    fs::rename(path_, final_path, error);
    if (error) return runtime::errno_status(error.value(), "renaming to " + final_path.string());
    path_.clear();
    return {};
  }

 private:
  fs::path path_;
};

Status check_free(const fs::path& out) {
  std::error_code ignored;
  if (!fs::exists(out, ignored) || (fs::is_directory(out, ignored) && fs::is_empty(out, ignored)))
    return {};
  return runtime::invalid_argument(out.string() +
                                   ": already there; remove it or choose another --out");
}

Status export_tokenizer(const fs::path& source, const fs::path& folder, bool asked_for) {
  const Status status = save_tokenizer(source, folder);
  if (status.ok() || asked_for) return status;
  // The weights are worth having without it.
  std::cerr << "warning: no tokenizer written: " << status.message()
            << "; give one with --tokenizer\n";
  return {};
}

Result<nlohmann::ordered_json> export_model(const ExportOptions& options) {
  const fs::path out = fs::absolute(options.out).lexically_normal();
  const fs::path final_path = out.has_filename() ? out : out.parent_path();
  if (Status status = check_free(final_path); !status.ok()) return status;
  Result<ExportSource> source = find_source(options);
  if (!source.ok()) return source.status();
  Result<ModelConfig> config = ModelConfig::load(source->model);
  if (!config.ok()) return config.status();
  Result<Parameters> parameters = Parameters::load(*config, source->model);
  if (!parameters.ok()) return parameters.status();
  if (!source->adapter.empty()) {
    const Result<LoraAdapter> adapter = LoraAdapter::load(*config, source->adapter);
    if (!adapter.ok()) return adapter.status();
    adapter->add_to(*parameters, 1.0F);
  }

  TemporaryFolder folder(
      final_path.parent_path() /
      ("." + final_path.filename().string() + "." + runtime::JobId::random().short_hex() + ".tmp"));
  const SaveOptions save{.shard_bytes_max = options.shard_mib_max << 20,
                         .dtype = kDTypes.at(options.dtype)};
  Status status = save_model_folder(*config, *parameters, folder.path(), save);
  Result<fs::path> tokenizer = source->model;
  if (!options.tokenizer.empty())
    tokenizer = locate_with_progress(options.tokenizer, "", HubNeed::kTokenizer);
  if (status.ok()) status = tokenizer.status();
  if (status.ok()) status = export_tokenizer(*tokenizer, folder.path(), !options.tokenizer.empty());
  if (status.ok()) status = verify_model_folder(*parameters, folder.path(), save);
  if (status.ok()) status = folder.keep_as(final_path);
  if (!status.ok()) return status;

  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const auto& entry : fs::directory_iterator(final_path))
    files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  return nlohmann::ordered_json{
      {"out", final_path.string()},
      {"source", source->model.string()},
      {"adapter", source->adapter.empty() ? nlohmann::ordered_json(nullptr)
                                          : nlohmann::ordered_json(source->adapter.string())},
      {"family", config->family},
      {"parameters", parameters->count()},
      {"dtype", options.dtype},
      {"files", std::move(files)}};
}

}  // namespace

int export_command(int argc, char** argv) {
  CLI::App app(
      "Writes a checkpoint or a model as a Hugging Face folder: config, safetensors, tokenizer.",
      "starling export");
  ExportOptions options;
  CLI::Option* checkpoint =
      app.add_option("--checkpoint", options.checkpoint,
                     "a run's folder (its newest checkpoint) or a global_step_N; an adapter in it "
                     "is merged into the model that it was made for");
  options.model.add_to(app,
                       "a Hugging Face folder or a .gguf file; with the checkpoint of an adapter: "
                       "where the model is now");
  app.add_option("--adapter", options.adapter,
                 "a LoRA adapter to merge into the weights: a folder with adapter_config.json, as "
                 "PEFT saves it")
      ->excludes(checkpoint);
  app.add_option("--out", options.out, "the folder to make")->required();
  app.add_option("--tokenizer", options.tokenizer,
                 "where the tokenizer comes from; default: the source itself");
  app.add_option("--dtype", options.dtype, "of the weights: float32, float16 or bfloat16")
      ->capture_default_str()
      ->check(CLI::IsMember(kDTypes));
  app.add_option("--shard-mib", options.shard_mib_max, "largest weight file in MiB; 0: one file")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  if (const std::optional<int> exit = parse_command_line(app, argc, argv)) return *exit;
  if (options.checkpoint.empty() && options.model.model.empty()) {
    std::cerr << "error: give --checkpoint or --model\n";
    return 2;
  }
  const Result<nlohmann::ordered_json> written = export_model(options);
  if (!written.ok()) return fail(written.status());
  std::cout << written->dump() << std::endl;
  return 0;
}

}  // namespace rl
