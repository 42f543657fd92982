#include "rl/model/json_fields.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::json;

// Values from outside may be huge: an error message shows the beginning.
std::string shown(const json& value) {
  constexpr std::size_t kShownMax = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

std::optional<std::int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

}  // namespace

double shortest_decimal(float value) {
  std::array<char, 32> text{};
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double decimal = value;
  std::from_chars(text.data(), end, decimal);
  return decimal;
}

JsonFields::JsonFields(const json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object())
    fail(runtime::invalid_argument(where_ + ": expected a JSON object, found " +
                                   object_.type_name()));
}

bool JsonFields::has(std::string_view key) const { return find(key) != nullptr; }

bool JsonFields::is_null(std::string_view key) const {
  if (!object_.is_object()) return false;
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t otherwise, std::int64_t least,
                                 std::int64_t most) {
  return has(key) ? integer(key, least, most) : otherwise;
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> value = has(key) ? as_integer(*find(key)) : std::nullopt;
  if (value && *value >= least && *value <= most) return *value;
  wrong(key, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

double JsonFields::number(std::string_view key, double otherwise, double least) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>()) && value->get<double>() >= least)
    return value->get<double>();
  wrong(key, "a finite number of at least " + json(least).dump());
  return otherwise;
}

bool JsonFields::boolean(std::string_view key, bool otherwise) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  wrong(key, "true or false");
  return otherwise;
}

std::string JsonFields::text(std::string_view key, std::string_view otherwise) {
  const json* value = find(key);
  if (value == nullptr) return std::string(otherwise);
  if (value->is_string()) return value->get<std::string>();
  wrong(key, "a string");
  return std::string(otherwise);
}

std::vector<std::int32_t> JsonFields::token_ids(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::int32_t> ids;
  const json list = value->is_array() ? *value : json::array({*value});
  for (const json& item : list) {
    const std::optional<std::int64_t> id = as_integer(item);
    if (id == -1) continue;  // none
    if (!id || *id < 0 || *id > std::numeric_limits<std::int32_t>::max()) {
      wrong(key, "a token id or a list of them");
      return {};
    }
    ids.push_back(static_cast<std::int32_t>(*id));
  }
  return ids;
}

std::vector<std::string> JsonFields::texts(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::string> list;
  for (const json& item : value->is_array() ? *value : json::array({nullptr})) {
    if (!item.is_string()) {
      wrong(key, "a list of strings");
      return {};
    }
    list.push_back(item.get<std::string>());
  }
  return list;
}

std::vector<float> JsonFields::numbers(std::string_view key, std::size_t count, double least) {
  std::vector<float> list;
  const json* value = find(key);
  const bool is_list = value != nullptr && value->is_array() && value->size() == count;
  for (std::size_t i = 0; is_list && i < count; ++i) {
    const double number = (*value)[i].is_number() ? (*value)[i].get<double>() : std::nan("");
    if (!std::isfinite(number) || number < least) break;
    list.push_back(static_cast<float>(number));
  }
  if (list.size() == count) return list;
  wrong(key,
        "a list of " + std::to_string(count) + " numbers from " + std::to_string(least) + " up");
  return std::vector<float>(count, 1.0F);
}

const json& JsonFields::object(std::string_view key) {
  static const json kEmpty = json::object();
  const json* value = find(key);
  if (value == nullptr) return kEmpty;
  if (value->is_object()) return *value;
  wrong(key, "an object");
  return kEmpty;
}

void JsonFields::refuse(std::string_view key, std::string_view cure) {
  const json* value = find(key);
  fail(runtime::unimplemented(where_ + ": " + std::string(key) + " = " +
                              (value ? shown(*value) : "null") + " is not supported (" +
                              std::string(cure) + ")"));
}

void JsonFields::only(std::string_view key, const json& expected, std::string_view cure) {
  const json* value = find(key);
  if (value != nullptr && *value != expected) refuse(key, cure);
}

const json* JsonFields::find(std::string_view key) const {
  return runtime::json_member(object_, key);
}

void JsonFields::wrong(std::string_view key, std::string_view expected) {
  const json* value = find(key);
  const std::string found = value ? "is " + shown(*value) : "is missing";
  fail(runtime::invalid_argument(where_ + ": " + std::string(key) + " " + found + ", expected " +
                                 std::string(expected)));
}

void JsonFields::fail(runtime::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace rl
