// Untrusted text on a terminal: names, worker output, failure messages, model output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace runtime {

/// `text` with escapes for what controls a terminal or misleads a reader. That is control
/// characters except newline and tab (with `one_line` those too), bidirectional marks, bytes that
/// are not UTF-8. Escapes are "\x1b" for a control character or byte, "\u202e" for others, "\n" and
/// "\t". A backslash is not escaped.
std::string printable_text(std::string_view text, bool one_line = false);

/// Serialized JSON, with "\u009b" for what printable_text() escapes, and U+FFFD for bytes that are
/// not UTF-8. A parser reads the same values, and nothing controls a terminal.
std::string printable_json(std::string_view json);

/// The text to write to a file descriptor: printable_text() for a terminal, `text` itself for a
/// file or a pipe, whose reader gets the original.
std::string terminal_text(int descriptor, std::string_view text);

/// The length of `text` without an incomplete UTF-8 character at its end: for text that arrives in
/// pieces.
std::size_t whole_characters(std::string_view text);

}  // namespace runtime
