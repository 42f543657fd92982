// Texts of data files from anywhere. Records lie within the text and in order, and go to the end or
// stop with a problem. Fields of CSV are written back and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rl/data/record_split.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto split :
       {rl::split_line, rl::split_json_element, rl::split_csv_line, rl::split_tsv_line}) {
    std::size_t at = 0;
    for (bool first = true;; first = false) {
      const rl::SplitRecord found = split(text.substr(at), true, first);
      CHECK(found.kind != rl::SplitRecord::Kind::kMore);
      if (found.kind != rl::SplitRecord::Kind::kRecord) break;
      CHECK(found.begin <= found.end);
      CHECK(found.end <= text.size() - at);
      CHECK(found.next > 0);
      at += std::min(found.next, text.size() - at);
    }
  }
  const auto fields = rl::csv_fields(text, ',');
  if (!fields.ok()) return 0;
  std::string line;
  for (const std::string& field : *fields)
    line += (line.empty() && &field == &fields->front() ? "" : ",") + rl::csv_field(field, ',');
  CHECK(*rl::csv_fields(line, ',') == *fields);
  return 0;
}
