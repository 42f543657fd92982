// Template source to tree.
#pragma once

#include <string_view>

#include "rl/template/ast.h"

namespace rl {

/// Throws TemplateFailure: a syntax error, or a tag that is not supported, with its line; tags
/// nested beyond 100, expressions beyond 200.
Block parse_template(std::string_view source);

}  // namespace rl
