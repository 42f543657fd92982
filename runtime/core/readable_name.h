// Readable names of types and functions that the compiler has named.
#pragma once

#include <string>

namespace runtime {

/// "std::vector<float, std::allocator<float> >" of "St6vectorIfSaIfEE"; what cannot be read stays
/// as it is.
std::string readable_name(const std::string& mangled);

}  // namespace runtime
