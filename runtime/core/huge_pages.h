// Large pages for memory that is about to be filled for the first time.
#pragma once

#include <cstddef>

namespace runtime {

/// Asks the system to back `data` with huge pages, which makes first touching it several times
/// cheaper. For fresh memory about to be written in whole. Ranges below a few megabytes are left
/// alone. Only a hint: never fails, changes no bytes.
void prefer_huge_pages(void* data, std::size_t bytes);

}  // namespace runtime
