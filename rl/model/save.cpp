#include "rl/model/save.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "rl/model/gguf_tokenizer.h"
#include "rl/template/chat_templates.h"
#include "rl/weights/atomic_file.h"
#include "rl/weights/convert.h"
#include "rl/weights/gguf.h"
#include "rl/weights/safetensors.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kConfigFile = "config.json";
constexpr const char* kGenerationFile = "generation_config.json";

// Everything that belongs to a tokenizer in the forms that exist.
constexpr std::array kTokenizerFiles = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        kGenerationFile};
constexpr std::array kVocabularyFiles = {"tokenizer.json", "tokenizer.model", "spiece.model",
                                         "vocab.json", "vocab.txt"};

struct Shard {
  std::string file;
  std::size_t first = 0;  // specs [first, last)
  std::size_t last = 0;
};

DType dtype_of(const ParameterSpec& spec, const SaveOptions& options) {
  return spec.saved_fp32 ? DType::kF32 : options.dtype;
}

std::int64_t bytes_of(const ParameterSpec& spec, const SaveOptions& options) {
  return spec.count * dtype_block(dtype_of(spec, options)).bytes;
}

// Specs in order, cut before the one that would overflow a file.
std::vector<Shard> plan_shards(std::span<const ParameterSpec> specs, const SaveOptions& options) {
  std::vector<Shard> shards(1);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::int64_t size = bytes_of(specs[i], options);
    if (options.shard_bytes_max > 0 && bytes > 0 && bytes + size > options.shard_bytes_max) {
      shards.push_back({.file = {}, .first = i, .last = i});
      bytes = 0;
    }
    bytes += size;
    shards.back().last = i + 1;
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", i + 1,
                  shards.size());
    shards[i].file = shards.size() == 1 ? kWeightsFile : name.data();
  }
  return shards;
}

std::string pretty(const json& object) { return object.dump(2) + "\n"; }

// The name in config.json.
std::string_view torch_name(DType dtype) {
  return dtype == DType::kF16 ? "float16" : dtype == DType::kBF16 ? "bfloat16" : "float32";
}

json generation_config(const ModelConfig& config) {
  json out =
      config.original.generation ? *config.original.generation : json{{"_from_model_config", true}};
  const json all = config.to_json();
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "use_cache"}) {
    if (all.contains(key)) out[key] = all[key];
  }
  return out;
}

// A parameter as a checkpoint stores it. `turned` holds what lies the other way round here.
TensorView stored(const at::Tensor& host, const ParameterSpec& spec, const SaveOptions& options,
                  std::deque<at::Tensor>& turned) {
  const float* values = host.const_data_ptr<float>() + spec.offset;
  std::vector<std::int64_t> shape = spec.shape;
  if (spec.transposed) {
    turned.push_back(host.narrow(0, spec.offset, spec.count).view(spec.shape).t().contiguous());
    values = turned.back().const_data_ptr<float>();
    std::reverse(shape.begin(), shape.end());
  }
  return {spec.name, std::move(shape), std::span(values, static_cast<std::size_t>(spec.count)),
          dtype_of(spec, options)};
}

Status write_weights(const Parameters& parameters, const std::vector<Shard>& shards,
                     const std::filesystem::path& folder, const SaveOptions& options) {
  const at::Tensor host = parameters.arena().cpu();
  json map = json::object();
  std::int64_t total_bytes = 0;
  for (const Shard& shard : shards) {
    std::vector<TensorView> tensors;
    std::deque<at::Tensor> turned;
    for (const ParameterSpec& spec :
         parameters.specs().subspan(shard.first, shard.last - shard.first)) {
      tensors.push_back(stored(host, spec, options, turned));
      map[spec.name] = shard.file;
      total_bytes += bytes_of(spec, options);
    }
    const Status status = write_safetensors(folder / shard.file, tensors, {{"format", "pt"}});
    if (!status.ok()) return status;
  }
  if (shards.size() == 1) return {};
  const json index = {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", std::move(map)}};
  return write_file_atomically(folder / kIndexFile, pretty(index));
}

Status copy_whole(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::ifstream file(from, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return runtime::unavailable(from.string() + ": could not be read");
  return write_file_atomically(to, text.str());
}

Status copy_templates(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(from, error)) {
    if (entry.path().extension() != ".jinja") continue;
    std::filesystem::create_directories(to, error);
    if (error) return runtime::errno_status(error.value(), "making " + to.string());
    Status status = copy_whole(entry.path(), to / entry.path().filename());
    if (!status.ok()) return status;
  }
  return {};
}

Status copy_tokenizer(const std::filesystem::path& model, const std::filesystem::path& folder) {
  std::error_code ignored;
  bool found = false;
  for (const char* name : kVocabularyFiles)
    found = found || std::filesystem::exists(model / name, ignored);
  if (!found)
    return runtime::not_found(model.string() +
                              ": no tokenizer there (tokenizer.json, tokenizer.model, vocab.json)");
  for (const char* name : kTokenizerFiles) {
    if (!std::filesystem::is_regular_file(model / name, ignored)) continue;
    if (Status status = copy_whole(model / name, folder / name); !status.ok()) return status;
  }
  return copy_templates(model / kTemplateFolder, folder / kTemplateFolder);
}

Status convert_tokenizer(const std::filesystem::path& gguf, const std::filesystem::path& folder) {
  auto file = GgufFile::open(gguf);
  if (!file.ok()) return file.status();
  Result<GgufTokenizer> tokenizer = read_gguf_tokenizer(**file);
  if (!tokenizer.ok()) return tokenizer.status();
  const auto text = [](const nlohmann::ordered_json& object) {
    return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  };
  Status status = write_file_atomically(folder / "tokenizer.json", text(tokenizer->tokenizer));
  if (status.ok())
    status = write_file_atomically(folder / "tokenizer_config.json", text(tokenizer->config));
  return status;
}

}  // namespace

Status save_model_folder(const ModelConfig& config, const Parameters& parameters,
                         const std::filesystem::path& folder, const SaveOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return runtime::errno_status(error.value(), "making " + folder.string());
  const Status written =
      write_weights(parameters, plan_shards(parameters.specs(), options), folder, options);
  return written.ok() ? save_model_configs(config, folder, options) : written;
}

Status save_model_configs(const ModelConfig& config, const std::filesystem::path& folder,
                          const SaveOptions& options) {
  Status status =
      write_file_atomically(folder / kGenerationFile, pretty(generation_config(config)));
  // The config last: with it the folder is a model.
  json written = config.to_json();
  for (const char* key : {"dtype", "torch_dtype"}) written[key] = torch_name(options.dtype);
  if (status.ok()) status = write_file_atomically(folder / kConfigFile, pretty(written));
  return status;
}

std::vector<std::filesystem::path> model_folder_files(std::span<const ParameterSpec> specs,
                                                      const SaveOptions& options) {
  std::vector<std::filesystem::path> files = {kConfigFile, kGenerationFile};
  const std::vector<Shard> shards = plan_shards(specs, options);
  for (const Shard& shard : shards) files.emplace_back(shard.file);
  if (shards.size() > 1) files.emplace_back(kIndexFile);
  return files;
}

Status verify_model_folder(const Parameters& parameters, const std::filesystem::path& folder,
                           const SaveOptions& options) {
  auto source = open_safetensors(folder);
  if (!source.ok()) return source.status();
  const at::Tensor host = parameters.arena().cpu();
  std::vector<float> read, expected;
  std::vector<std::byte> rounded;
  for (const ParameterSpec& spec : parameters.specs()) {
    read.resize(static_cast<std::size_t>(spec.count));
    if (Status status = (*source)->read_f32(spec.name, read); !status.ok()) return status;
    std::deque<at::Tensor> turned;
    const TensorView view = stored(host, spec, options, turned);
    rounded.resize(view.data.size() * static_cast<std::size_t>(dtype_block(view.dtype).bytes));
    convert_from_f32(view.dtype, view.data, rounded.data());
    expected.resize(view.data.size());
    convert_to_f32(view.dtype, rounded.data(), expected);
    if (std::memcmp(read.data(), expected.data(), read.size() * sizeof(float)) != 0) {
      return runtime::internal_error(folder.string() + ": " + spec.name +
                                     " reads back differently");
    }
  }
  return {};
}

Status save_tokenizer(const std::filesystem::path& model, const std::filesystem::path& folder) {
  return model.extension() == ".gguf" ? convert_tokenizer(model, folder)
                                      : copy_tokenizer(model, folder);
}

Result<std::vector<std::filesystem::path>> with_tokenizer(
    Result<std::vector<std::filesystem::path>> files, const std::filesystem::path& model,
    const std::filesystem::path& folder) {
  if (!files.ok() || files->empty()) return files;
  const Status status = save_tokenizer(model, folder);
  if (!status.ok()) return status;
  return files;
}

}  // namespace rl
