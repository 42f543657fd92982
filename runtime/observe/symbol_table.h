// SymbolTable: the functions of a program or library, from its file.
#pragma once

#include <elf.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// Reads as it goes, and holds nothing of the file but its descriptor. One that is overwritten or
/// cut short meanwhile gives other names or none, where a mapping would end the process. What is
/// malformed is as if it were not there. Allocates nothing but in name(), so that signal handlers
/// may use the rest.
class SymbolTable {
 public:
  explicit SymbolTable(const char* path);

  /// Where a function's name lies; for copy_name() and name().
  using NamePlace = std::uint32_t;

  /// Calls visit(file address, size, place of the name) for each function.
  template <class Visit>
  void for_each_function(Visit&& visit) const {
    std::array<ElfW(Sym), 256> block;
    std::uint64_t next = 0;
    for (std::size_t count; (count = read_symbols(next, block)) > 0; next += count) {
      for (const ElfW(Sym) & symbol : std::span(block).first(count)) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
            symbol.st_name >= names_.bytes)
          continue;
        visit(static_cast<std::uintptr_t>(symbol.st_value),
              static_cast<std::size_t>(symbol.st_size), NamePlace{symbol.st_name});
      }
    }
  }
  /// Cut so that it fits, with a zero after it; `into` is not empty.
  void copy_name(NamePlace place, std::span<char> into) const;
  std::string name(NamePlace place) const;
  /// The address, as symbols have it, of what lies there in the file; nothing when the file is not
  /// loaded from there.
  std::optional<std::uintptr_t> address_of(std::uint64_t file_offset) const;

 private:
  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  void find_tables();
  /// What of it there is: fewer bytes than asked for at the file's end.
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const;
  template <class T>
  bool read(std::uint64_t offset, T& into) const {
    return read(offset, std::as_writable_bytes(std::span(&into, 1))) == sizeof into;
  }
  std::size_t read_symbols(std::uint64_t first, std::span<ElfW(Sym)> into) const;

  FileDescriptor file_;
  Part symbols_, names_, segments_;
};

}  // namespace runtime
