// Names of functions, from the symbol tables of the program and its libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace runtime {

/// The symbol that an address lies in.
struct Symbol {
  char name[2048] = {};  // mangled, cut; empty: unknown
  std::uintptr_t offset =
      0;  // of the address behind the symbol's start, or behind the module's without a name
  const char* module = nullptr;  // path of the program or library; null: the address is in none
};

/// Looks up one address. Allocates nothing. Async-signal-safe as far as dl_iterate_phdr is.
Symbol symbol_at(std::uintptr_t address);

/// The mangled names of the functions that start exactly at these sorted addresses; empty where
/// none does. One pass per module. Of several names of one function it is the first in alphabetical
/// order. Not for signal handlers.
std::vector<std::string> function_names(std::span<const std::uintptr_t> sorted);

/// A hash of the program's code, as it lies in memory: equal for equal programs.
std::uint64_t program_fingerprint();

}  // namespace runtime
