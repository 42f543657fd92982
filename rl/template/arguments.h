// CallArguments: the arguments of a call, and what built-ins read from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/template/value.h"

namespace rl {

/// What a call was given.
struct CallArguments {
  ValueList positional;
  std::vector<std::pair<std::string, TemplateValue>> named;

  /// The argument at a position or under a name; nullptr when it was not given.
  const TemplateValue* find(std::size_t position, std::string_view name) const;
  const TemplateValue* find_named(std::string_view name) const;
  /// Throws TypeError for more arguments than `names`, or for a name that is not among them.
  void check(std::string_view function, std::initializer_list<std::string_view> names) const;
  std::string text(RenderBudget& budget, std::size_t position, std::string_view name,
                   std::string_view otherwise) const;
  std::int64_t integer(std::size_t position, std::string_view name, std::int64_t otherwise) const;
  bool flag(std::size_t position, std::string_view name, bool otherwise) const;
};

}  // namespace rl
