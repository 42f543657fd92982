#include "rl/config/key_names.h"

#include <utility>

#include "rl/config/judge.h"
#include "rl/config/key_path.h"
#include "rl/config/references.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

std::string setting(const std::string& name, const ordered_json& value) {
  return name + "=" + show_value(value);
}

}  // namespace

void KeyNames::begin(Source source) {
  kind_ = source;
  ++source_;
}

// Of a file that was written with all its keys each older name has its default as well, or a
// reference to the current one.
bool KeyNames::says_nothing(const std::string& key, const ordered_json& value) {
  if (is_empty_value(value)) return true;
  if (value.is_string() && value.get_ref<const std::string&>().find("${") != std::string::npos)
    return true;
  if (!defaults_)
    defaults_ = resolve_references(keys_.defaults(), keys_).value_or(ordered_json::object());
  const ordered_json* by_default = find_place(*defaults_, key);
  return by_default != nullptr && *by_default == value;
}

runtime::Result<bool> KeyNames::replaces(const std::string& key, const std::string& written,
                                         const ordered_json& value) {
  const auto before = given_.find(key);
  if (before != given_.end() && before->second.source == source_ &&
      before->second.name != written && before->second.value != value) {
    const Given& other = before->second;
    if (kind_ == Source::kCommandLine) {
      notes_.push_back(setting(written, value) + " replaces " + setting(other.name, other.value) +
                       ": both are names of " + key);
    } else if (says_nothing(key, value)) {
      return false;
    } else if (!says_nothing(key, other.value)) {
      return runtime::invalid_argument(setting(written, value) + " contradicts " +
                                       setting(other.name, other.value) + ": both are names of " +
                                       key + ", set one of them");
    }
  }
  given_[key] = {written, value, source_};
  return true;
}

void KeyNames::forget(const std::string& key) {
  given_.erase(key);
  const std::string below = key + ".";
  std::erase_if(given_, [&](const auto& one) { return one.first.starts_with(below); });
}

const std::string& KeyNames::name_of(const std::string& key) const {
  const auto given = given_.find(key);
  return given == given_.end() ? key : given->second.name;
}

}  // namespace rl
