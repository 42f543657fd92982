#include "rl/tokenizer/small_files.h"

#include "rl/tokenizer/json_fields.h"
#include "rl/weights/mapped_file.h"
#include "runtime/core/json.h"

namespace rl {

using nlohmann::json;
using runtime::ErrorCode;
using runtime::Result;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kConfigBytesMax = 64 << 20;

template <class Json>
Result<Json> read_object(const fs::path& path) {
  auto text = read_optional_text(path);
  if (!text.ok()) return text.status();
  if (!*text) return Json();
  Json value = runtime::parse_json<Json>(**text);
  if (!value.is_object())
    return runtime::invalid_argument(path.string() +
                                     ": not a JSON object; the file is damaged, fetch it again");
  return value;
}

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

Result<json> read_optional_json(const fs::path& path) { return read_object<json>(path); }

Result<nlohmann::ordered_json> read_optional_ordered_json(const fs::path& path) {
  return read_object<nlohmann::ordered_json>(path);
}

}  // namespace rl
