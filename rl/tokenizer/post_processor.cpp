#include "rl/tokenizer/post_processor.h"

#include <nlohmann/json.hpp>
#include <string>

#include "rl/tokenizer/json_fields.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

Status append_id(const json& value, std::vector<std::int32_t>& ids) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT32_MAX) {
    return runtime::invalid_argument("a special token's id is not a number from 0");
  }
  ids.push_back(value.get<std::int32_t>());
  return {};
}

// {"SpecialToken": {"id": "<s>"}}: the ids that special_tokens gives for this name.
Status append_special(const json& piece, const json& component, std::vector<std::int32_t>& ids) {
  auto name = json_string(piece, "id");
  if (!name.ok()) return name.status();
  const json* specials = json_member(component, "special_tokens");
  const std::string key(*name);
  const json* special = specials == nullptr ? nullptr : json_member(*specials, key.c_str());
  if (special == nullptr) return runtime::invalid_argument("special_tokens does not define " + key);
  auto list = json_array(*special, "ids");
  if (!list.ok()) return list.status();
  for (const json& id : **list) {
    Status status = append_id(id, ids);
    if (!status.ok()) return status;
  }
  return {};
}

Result<PostProcessor> template_from_json(const json& component) {
  auto pieces = json_array(component, "single");
  if (!pieces.ok()) return pieces.status();
  PostProcessor processor;
  int sequences = 0;
  for (const json& piece : **pieces) {
    if (json_member(piece, "Sequence") != nullptr) {
      ++sequences;
      continue;
    }
    const json* special = json_member(piece, "SpecialToken");
    if (special == nullptr)
      return runtime::invalid_argument("single holds neither a Sequence nor a SpecialToken");
    Status status =
        append_special(*special, component, sequences == 0 ? processor.prefix : processor.suffix);
    if (!status.ok()) return status;
  }
  if (sequences != 1)
    return runtime::invalid_argument("single should hold one Sequence, not " +
                                     std::to_string(sequences));
  return processor;
}

// ByteLevel and RobertaProcessing.
Status read_trimming(const json& component, PostProcessor& processor) {
  auto trim = json_bool_or(component, "trim_offsets", true);
  auto prefix = json_bool_or(component, "add_prefix_space", true);
  if (!trim.ok()) return trim.status();
  if (!prefix.ok()) return prefix.status();
  processor.trim_offsets = *trim;
  processor.add_prefix_space = *prefix;
  return {};
}

// BertProcessing and RobertaProcessing: "cls": ["[CLS]", 101] before, "sep" after.
Result<PostProcessor> cls_sep_from_json(const json& component) {
  PostProcessor processor;
  for (const char* key : {"cls", "sep"}) {
    auto pair = json_array(component, key);
    if (!pair.ok()) return pair.status();
    if ((*pair)->size() != 2)
      return runtime::invalid_argument(std::string(key) + " is not [token, id]");
    Status status = append_id((**pair)[1], *key == 'c' ? processor.prefix : processor.suffix);
    if (!status.ok()) return status.with_context(key);
  }
  return processor;
}

Result<PostProcessor> sequence_post_processor(const json& component, int depth) {
  if (depth >= kComponentDepthMax)
    return runtime::invalid_argument("sequences are nested too deeply");
  auto members = json_array(component, "processors");
  if (!members.ok()) return members.status();
  PostProcessor whole;
  for (const json& member : **members) {
    auto part = post_processor_from_json(member, depth + 1);
    if (!part.ok()) return part.status();
    whole.prefix.insert(whole.prefix.begin(), part->prefix.begin(),
                        part->prefix.end());  // a later one goes around
    if (part->trim_offsets)
      whole.trim_offsets = true, whole.add_prefix_space = part->add_prefix_space;
    whole.suffix.insert(whole.suffix.end(), part->suffix.begin(), part->suffix.end());
  }
  return whole;
}

}  // namespace

Result<PostProcessor> post_processor_from_json(const json& component, int depth) {
  auto type = json_type(component);
  if (!type.ok()) return type.status();
  if (*type == "TemplateProcessing") return template_from_json(component);
  if (*type == "ByteLevel" || *type == "RobertaProcessing") {
    auto processor = *type == "ByteLevel" ? Result<PostProcessor>(PostProcessor{})
                                          : cls_sep_from_json(component);
    if (!processor.ok()) return processor;
    if (Status status = read_trimming(component, *processor); !status.ok()) return status;
    return processor;
  }
  if (*type == "BertProcessing") return cls_sep_from_json(component);
  if (*type == "Sequence") return sequence_post_processor(component, depth);
  return unsupported_component("post_processor", *type);
}

}  // namespace rl
