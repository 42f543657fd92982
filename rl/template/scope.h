// The variables that a template sees: scopes, and the loops that `loop` stands for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/template/value.h"

namespace rl {

/// The loop that `loop` stands for.
struct LoopState {
  ValueList items;
  std::size_t index = 0;
  std::int64_t depth = 1;
  int value_depth = 1;  // of its items, and one
  bool has_changed_value = false;
  ValueList changed_value;  // what loop.changed(...) saw last
};

struct TemplateScope {
  std::shared_ptr<TemplateScope> parent;
  std::vector<std::pair<std::string, TemplateValue>> variables;

  TemplateValue* find(std::string_view name);
  void set(std::string_view name, TemplateValue value);
};

using ScopePtr = std::shared_ptr<TemplateScope>;

/// An empty scope inside of `parent`.
inline ScopePtr inner_scope(const ScopePtr& parent) {
  return std::make_shared<TemplateScope>(TemplateScope{parent, {}});
}

}  // namespace rl
