#include "runtime/observe/symbol.h"

#include <link.h>

#include <algorithm>
#include <cstring>

#include "runtime/observe/symbol_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace runtime {

namespace {

/// A loaded program or library: where it lies in memory.
struct Module {
  std::uintptr_t wanted = 0;  // in: an address in it
  const char* path = nullptr;
  std::uintptr_t base = 0;  // added to the file's addresses
  bool found = false;
};

int match_module(dl_phdr_info* info, std::size_t, void* into) {
  auto& module = *static_cast<Module*>(into);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || module.wanted < start ||
        module.wanted >= start + segment.p_memsz)
      continue;
    module.path = info->dlpi_name[0] != '\0' ? info->dlpi_name : "/proc/self/exe";
    module.base = info->dlpi_addr;
    module.found = true;
    return 1;
  }
  return 0;
}

}  // namespace

Symbol symbol_at(std::uintptr_t address) {
  Module module{.wanted = address};
  dl_iterate_phdr(match_module, &module);
  if (!module.found) return {};
  Symbol result{.offset = address - module.base, .module = module.path};
  std::uintptr_t file_address = address - module.base;
  SymbolTable table(module.path);
  table.for_each_function(
      [&](std::uintptr_t start, std::size_t size, SymbolTable::NamePlace place) {
        if (file_address < start || file_address >= start + std::max<std::size_t>(size, 1)) return;
        char name[sizeof result.name];
        table.copy_name(place, name);
        if (result.name[0] != '\0' && std::strcmp(result.name, name) <= 0) return;
        std::memcpy(result.name, name, sizeof name);
        result.offset = file_address - start;
      });
  return result;
}

std::vector<std::string> function_names(std::span<const std::uintptr_t> sorted) {
  std::vector<std::string> names(sorted.size());
  std::size_t at = 0;
  while (at < sorted.size()) {
    Module module{.wanted = sorted[at]};
    dl_iterate_phdr(match_module, &module);
    if (!module.found) {
      ++at;
      continue;
    }
    const SymbolTable table(module.path);
    table.for_each_function([&](std::uintptr_t start, std::size_t, SymbolTable::NamePlace place) {
      auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), start + module.base);
      if (first == last) return;
      const std::string name = table.name(place);
      for (; first != last; ++first) {
        std::string& known = names[static_cast<std::size_t>(first - sorted.begin())];
        if (known.empty() || name < known) known = name;
      }
    });
    // On to the first address outside this module.
    for (++at; at < sorted.size(); ++at) {
      Module next{.wanted = sorted[at]};
      dl_iterate_phdr(match_module, &next);
      if (!next.found || next.base != module.base) break;
    }
  }
  return names;
}

std::uint64_t program_fingerprint() {
  std::uint64_t hash = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        auto& result = *static_cast<std::uint64_t*>(into);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
          result =
              XXH3_64bits_withSeed(reinterpret_cast<const void*>(info->dlpi_addr + segment.p_vaddr),
                                   segment.p_memsz, result);
        }
        return 1;  // the first entry is the program
      },
      &hash);
  return hash;
}

}  // namespace runtime
