// Borders between the records of a text, for texts that are read piece by piece. Pure functions of
// bytes from anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

struct SplitRecord {
  enum class Kind {
    kMore,    // the record may continue behind `text`
    kRecord,  // bytes [begin, end) are one; the next starts at `next`
    kEnd,     // there is none left
    kBad      // `problem` says why
  };
  Kind kind = Kind::kMore;
  std::size_t begin = 0, end = 0, next = 0;
  const char* problem = nullptr;
};

/// The first record of `text`, which starts where the last one ended; `last`: nothing comes behind
/// it; `first`: nothing came before it.
SplitRecord split_line(std::string_view text, bool last, bool first);
/// Elements of a JSON list. What is in one is not looked at but for its brackets and strings.
SplitRecord split_json_element(std::string_view text, bool last, bool first);
/// Lines of CSV (RFC 4180), in whose quoted fields there may be newlines.
SplitRecord split_csv_line(std::string_view text, bool last, bool first);
/// Splits a record with tabs between its fields.
SplitRecord split_tsv_line(std::string_view text, bool last, bool first);

/// The fields of a line of CSV. kInvalidArgument: text behind a closing quote.
runtime::Result<std::vector<std::string>> csv_fields(std::string_view line, char separator);

/// A field as it stands in a file: quoted where it has to be.
std::string csv_field(std::string_view text, char separator);

}  // namespace rl
