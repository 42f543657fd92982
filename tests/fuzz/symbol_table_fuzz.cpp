// A program or library whose symbols the node reads: the file of a user's process may be anything.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include "runtime/observe/symbol_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    __builtin_trap();
  const runtime::SymbolTable table(path.c_str());
  std::size_t functions = 0;
  table.for_each_function([&](std::uintptr_t, std::size_t, runtime::SymbolTable::NamePlace place) {
    if (++functions > 64) return;
    std::array<char, 16> name;
    table.copy_name(place, name);
    (void)table.name(place);
  });
  for (std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{0x40}, std::uint64_t{0x1000}, UINT64_MAX})
    (void)table.address_of(offset);
  return 0;
}
