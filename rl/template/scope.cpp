#include "rl/template/scope.h"

namespace rl {

TemplateValue* TemplateScope::find(std::string_view name) {
  for (auto& [present, value] : variables) {
    if (present == name) return &value;
  }
  return nullptr;
}

void TemplateScope::set(std::string_view name, TemplateValue value) {
  if (TemplateValue* present = find(name)) {
    *present = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

}  // namespace rl
