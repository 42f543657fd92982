#include "rl/text/tokenizer_small_files.h"

#include "rl/text/tokenizer_json_fields.h"
#include "rl/weights/mapped_file.h"
#include "runtime/core/json.h"

namespace rl {

using nlohmann::json;
using runtime::ErrorCode;
using runtime::Result;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kConfigBytesMax = 64 << 20;

}  // namespace

Result<std::optional<std::string>> read_optional_text(const fs::path& path) {
  auto file = MappedFile::open(path);
  if (!file.ok()) {
    if (file.status().code() == ErrorCode::kNotFound) return std::optional<std::string>();
    return file.status();
  }
  if (file->bytes().size() > kConfigBytesMax)
    return runtime::invalid_argument(path.string() + ": too long");
  return std::optional(
      std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
}

Result<json> read_optional_json(const fs::path& path) {
  auto text = read_optional_text(path);
  if (!text.ok()) return text.status();
  if (!*text) return json();
  json value = runtime::parse_json(**text);
  if (!value.is_object())
    return runtime::invalid_argument(path.string() +
                                     ": not a JSON object; the file is damaged, fetch it again");
  return value;
}

std::optional<std::string> special_token_text(const json& config, const char* key) {
  const json* member = json_member(config, key);
  if (member != nullptr && member->is_object()) member = json_member(*member, "content");
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

}  // namespace rl
