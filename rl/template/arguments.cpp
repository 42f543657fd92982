#include "rl/template/arguments.h"

#include <algorithm>

#include "rl/template/failure.h"

namespace rl {

const TemplateValue* CallArguments::find_named(std::string_view name) const {
  for (const auto& [present, value] : named) {
    if (present == name) return &value;
  }
  return nullptr;
}

const TemplateValue* CallArguments::find(std::size_t position, std::string_view name) const {
  return position < positional.size() ? &positional[position] : find_named(name);
}

void CallArguments::check(std::string_view function,
                          std::initializer_list<std::string_view> names) const {
  if (positional.size() > names.size()) {
    fail_type(std::string(function) + "() takes at most " + std::to_string(names.size()) +
              " arguments (" + std::to_string(positional.size()) + " given)");
  }
  for (const auto& [name, value] : named) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail_type(std::string(function) + "() got an unexpected keyword argument '" + name + "'");
    }
  }
}

std::string CallArguments::text(RenderBudget& budget, std::size_t position, std::string_view name,
                                std::string_view otherwise) const {
  const TemplateValue* value = find(position, name);
  if (value == nullptr) return std::string(otherwise);
  require_defined(*value);
  return value->to_string(budget);
}

std::int64_t CallArguments::integer(std::size_t position, std::string_view name,
                                    std::int64_t otherwise) const {
  const TemplateValue* value = find(position, name);
  if (value == nullptr) return otherwise;
  require_defined(*value);
  if (!value->is_int() && !value->is_bool())
    fail_type("'" + value->type_name() + "' object cannot be interpreted as an integer");
  return value->as_int();
}

bool CallArguments::flag(std::size_t position, std::string_view name, bool otherwise) const {
  const TemplateValue* value = find(position, name);
  return value == nullptr ? otherwise : value->truthy();
}

}  // namespace rl
