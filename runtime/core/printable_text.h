// Foreign text on a terminal: names, worker output, failure messages, text of models and rewards.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace runtime {

/// `text` with escapes for what a terminal obeys or a reader is misled by: control characters but
/// newline and tab (with `one_line` those too), bidirectional marks, bytes that are not UTF-8.
/// "\x1b" of a control character or byte, "\u202e" of other characters, "\n" and "\t". A backslash
/// stays one.
std::string printable_text(std::string_view text, bool one_line = false);

/// JSON that has been dumped, with "\u009b" for what printable_text() escapes, and U+FFFD for bytes
/// that are not UTF-8: the same values for who parses it, and nothing that a terminal obeys.
std::string printable_json(std::string_view json);

/// What to write to a file descriptor: printable_text() where it is a terminal, the text itself
/// where it is a file or pipe, whose reader is to get what was written.
std::string terminal_text(int descriptor, std::string_view text);

/// The length of `text` without a UTF-8 character at its end that has begun only: for text that
/// comes in pieces.
std::size_t whole_characters(std::string_view text);

}  // namespace runtime
