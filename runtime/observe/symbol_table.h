// SymbolTable: the functions of a program or library, from its file.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace runtime {

/// The file is mapped while this lives. What is malformed in it is as if it were not there. Allocates nothing, so that signal handlers may use it.
class SymbolTable {
 public:
  explicit SymbolTable(const char* path);
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;
  ~SymbolTable();

  /// Names that were visited stay valid for ever.
  void keep() { file_ = {}; }

  /// Calls visit(file address, size, name) for each function.
  template <class Visit>
  void for_each_function(Visit&& visit) const {
    for (const ElfW(Sym)& symbol : symbols_) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names_.size()) continue;
      visit(static_cast<std::uintptr_t>(symbol.st_value), static_cast<std::size_t>(symbol.st_size), names_.data() + symbol.st_name);
    }
  }
  /// The address, as symbols have it, of what lies there in the file; nothing when the file is not loaded from there.
  std::optional<std::uintptr_t> address_of(std::uint64_t file_offset) const;

 private:
  void find_tables(std::span<const std::byte> file);

  std::span<const std::byte> file_;
  std::span<const ElfW(Sym)> symbols_;
  std::span<const char> names_;
  std::span<const ElfW(Phdr)> segments_;
};

}  // namespace runtime
