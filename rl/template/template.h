// ChatTemplate: renders the Jinja2 templates that models ship, as transformers does. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// The variables of a rendering from JSON text, a discarded value when it is none or nested as
/// runtime::parse_json() refuses it. Integers that 64
/// bits cannot hold keep their digits (as binary values, which only ChatTemplate::render knows how
/// to read), where plain parsing would round them.
nlohmann::ordered_json parse_template_variables(std::string_view text);

/// Limits on one rendering: a template is outside data, and a hostile one may neither loop for ever
/// nor exhaust memory.
struct TemplateLimits {
  std::int64_t steps_max = 5'000'000;       // nodes evaluated, and bytes looked at (32 a step)
  std::size_t output_bytes_max = 16 << 20;  // of the result
  std::size_t work_bytes_max = 256 << 20;   // of all strings and lists made on the way
  int depth_max = 200;                      // nested calls
};

/// A parsed template. Immutable and cheap to copy; rendering is thread-safe. The dialect is
/// Jinja2's with what transformers sets: trim_blocks, lstrip_blocks, loop controls and an immutable
/// sandbox (`list.append` is refused). It has `tojson` as json.dumps(ensure_ascii=False),
/// `raise_exception`, and `strftime_now` (the time in the variable `now`, ISO, when given).
class ChatTemplate {
 public:
  /// kInvalidArgument: a syntax error; kUnimplemented: a construct that is not supported. Both name
  /// the line.
  static runtime::Result<ChatTemplate> parse(std::string_view source);

  /// `variables` is an object whose members are the template's variables. The order of keys is
  /// kept, so `tojson` shows it. kInvalidArgument: the template failed, with Python's words for it
  /// ("TypeError: 'NoneType' object is not iterable", or "TemplateError: ..." from
  /// raise_exception); kUnimplemented: a filter, test or method that is not supported, by name and
  /// line; kResourceExhausted: over a limit.
  runtime::Result<std::string> render(const nlohmann::ordered_json& variables,
                                      const TemplateLimits& limits = {}) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace rl
