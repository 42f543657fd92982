// The decoder of the journal's entries, and what the tables make of them, on any bytes. Entries
// come one after another, each behind its length in words.
#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/head/cluster_tables.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  runtime::ClusterTables tables;
  for (std::size_t at = 0; at < size;) {
    const std::size_t bytes = std::min<std::size_t>(data[at] * 8, size - at - 1);
    const std::string value(reinterpret_cast<const char*>(data + at + 1), bytes);
    at += 1 + bytes;
    auto entry = runtime::journal::decode(value);
    if (!entry.ok()) continue;
    (void)runtime::journal::encode(*entry);
    (void)tables.restore(*entry);
  }
  (void)tables.end_restore();
  return 0;
}
