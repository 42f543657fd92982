#include "rl/hub/needed_files.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "rl/weights/pytorch.h"
#include "rl/weights/safetensors.h"
#include "runtime/core/json.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

using runtime::Result;

constexpr std::array kConfigs = {"config.json", "generation_config.json"};
constexpr std::array kVocabularies = {"tokenizer.json", "tokenizer.model", "spiece.model",
                                      "vocab.json", "vocab.txt"};
constexpr std::array kTokenizers = {"tokenizer_config.json", "special_tokens_map.json",
                                    "added_tokens.json",     "merges.txt",
                                    "chat_template.jinja",   "chat_template.json"};
constexpr std::string_view kTemplates = "additional_chat_templates/";

}  // namespace

Result<NeededFiles> needed_files(const std::vector<std::string>& all, HubNeed need,
                                 std::string_view repo) {
  const std::set<std::string, std::less<>> there(all.begin(), all.end());
  NeededFiles needed;
  const auto take = [&](const auto& names) {
    bool any = false;
    for (const char* name : names) {
      if (!there.contains(name)) continue;
      needed.files.emplace_back(name);
      any = true;
    }
    return any;
  };
  take(kConfigs);
  const bool tokenizer = take(kVocabularies);
  take(kTokenizers);
  for (const std::string& file : all) {
    if (file.starts_with(kTemplates) && file.ends_with(".jinja") &&
        file.find('/', kTemplates.size()) == file.npos)
      needed.files.push_back(file);
  }
  if (need == HubNeed::kTokenizer && tokenizer) return needed;
  if (need == HubNeed::kModel) {
    for (const auto& [single, index] :
         {std::pair(kSafetensorsFile, kSafetensorsIndexFile), {kPytorchFile, kPytorchIndexFile}}) {
      if (there.contains(single)) {
        needed.files.emplace_back(single);
        return needed;
      }
      if (there.contains(index)) {
        needed.files.emplace_back(index);
        needed.index = index;
        return needed;
      }
    }
  }
  std::vector<std::string> ggufs;
  for (const std::string& file : all) {
    if (file.ends_with(".gguf") && file.find('/') == file.npos) ggufs.push_back(file);
  }
  if (ggufs.size() == 1) return NeededFiles{.files = ggufs, .index = {}, .gguf = ggufs.front()};
  if (ggufs.empty()) {
    const std::string what = need == HubNeed::kModel
                                 ? "weights (model.safetensors, pytorch_model.bin or .gguf)"
                                 : "tokenizer";
    return runtime::not_found(std::string(repo) + ": has no " + what + " among its " +
                              std::to_string(all.size()) + " files");
  }
  std::string list;
  for (const std::string& file : ggufs) list += (list.empty() ? "" : ", ") + file;
  return runtime::not_found(
      std::string(repo) +
      ": has several .gguf files; fetch the one you want and give its path: " + list);
}

Result<std::vector<std::string>> indexed_files(const std::filesystem::path& folder,
                                               const std::string& index) {
  std::ifstream file(folder / index, std::ios::binary);
  const nlohmann::json json = runtime::parse_json(runtime::rest_of(file));
  const std::string where = (folder / index).string();
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return runtime::invalid_argument(where + ": has no object weight_map (tensor name to file)");
  }
  std::set<std::string> files;
  for (const auto& [tensor, name] : json["weight_map"].items()) {
    if (!name.is_string() || name.get_ref<const std::string&>().find('/') != std::string::npos) {
      return runtime::invalid_argument(where + ": weight_map." + tensor +
                                       " is not a plain file name");
    }
    files.insert(name.get<std::string>());
  }
  return std::vector<std::string>(files.begin(), files.end());
}

}  // namespace rl
