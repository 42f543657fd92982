// Filters on lists and dictionaries.
#pragma once

#include <span>
#include <string_view>

#include "rl/template/builtins.h"

namespace rl {

struct NamedFilter {
  std::string_view name;
  FilterFunction function;
};

/// join, map, select, sort, ...
std::span<const NamedFilter> list_filters();

}  // namespace rl
