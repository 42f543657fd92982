#include "rl/tokenizer/json_fields.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

Status wrong(const char* key, const json* found, std::string_view wanted) {
  const std::string what =
      found == nullptr ? "is missing" : std::string("is ") + found->type_name();
  return runtime::invalid_argument(std::string(key) + " " + what + ", should be " +
                                   std::string(wanted));
}

}  // namespace

Result<std::string_view> json_string(const json& object, const char* key) {
  const json* member = json_member(object, key);
  if (member == nullptr || !member->is_string()) return wrong(key, member, "a string");
  return std::string_view(member->get_ref<const std::string&>());
}

Result<const json*> json_array(const json& object, const char* key) {
  const json* member = json_member(object, key);
  if (member == nullptr || !member->is_array()) return wrong(key, member, "an array");
  return member;
}

Result<std::int64_t> json_integer(const json& object, const char* key) {
  const json* member = json_member(object, key);
  if (member == nullptr || !member->is_number_integer()) return wrong(key, member, "an integer");
  if (member->is_number_unsigned() && member->get<std::uint64_t>() > INT64_MAX)
    return wrong(key, member, "a smaller integer");
  return member->get<std::int64_t>();
}

Result<bool> json_bool_or(const json& object, const char* key, bool otherwise) {
  const json* member = json_member(object, key);
  if (member == nullptr) return otherwise;
  if (!member->is_boolean()) return wrong(key, member, "true or false");
  return member->get<bool>();
}

Result<std::string_view> json_string_or(const json& object, const char* key,
                                        std::string_view otherwise) {
  if (json_member(object, key) == nullptr) return otherwise;
  return json_string(object, key);
}

Status unsupported_component(std::string_view kind, std::string_view type) {
  return runtime::unimplemented(std::string(kind) + " " + std::string(type) + " is not supported");
}

}  // namespace rl
