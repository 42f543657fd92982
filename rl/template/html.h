// HTML from text that may be anything.
#pragma once

#include <string>
#include <string_view>

namespace rl {

/// Text that means itself inside of elements and quoted attributes. Quotes become numbers, as
/// Jinja2's `escape` has it.
std::string html_text(std::string_view text);

}  // namespace rl
