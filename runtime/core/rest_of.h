// A stream's text, whatever becomes of it while it is read.
#pragma once

#include <array>
#include <istream>
#include <string>

namespace runtime {

/// What is left of `in`; after a read that failed (of a folder, of a process that has ended) what
/// came before, and `in.bad()`. An iterator over the stream's buffer would throw then.
inline std::string rest_of(std::istream& in) {
  std::string text;
  std::array<char, 1 << 14> part;
  while (in) {
    in.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

}  // namespace runtime
