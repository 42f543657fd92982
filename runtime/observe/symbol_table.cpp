#include "runtime/observe/symbol_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace runtime {

namespace {

constexpr std::size_t kSymbolBytesMax = 64 << 10;  // templates have long ones

}  // namespace

SymbolTable::SymbolTable(const char* path) {
  file_.reset(::open(path, O_RDONLY | O_CLOEXEC |
                               O_NONBLOCK));  // whatever lies there now: a pipe would be waited for
  struct stat info {};
  if (!file_ || ::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) file_.reset();
  if (file_) find_tables();
}

std::size_t SymbolTable::read(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    if (offset + done > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) ||
        offset + done < offset)
      break;
    const ssize_t got = ::pread(file_.get(), into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t SymbolTable::read_symbols(std::uint64_t first, std::span<ElfW(Sym)> into) const {
  const std::uint64_t count = symbols_.bytes / sizeof(ElfW(Sym));
  if (first >= count) return 0;
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), count - first)));
  return read(symbols_.offset + first * sizeof(ElfW(Sym)), std::as_writable_bytes(into)) /
         sizeof(ElfW(Sym));
}

void SymbolTable::copy_name(NamePlace place, std::span<char> into) const {
  std::size_t size =
      place < names_.bytes
          ? static_cast<std::size_t>(std::min<std::uint64_t>(names_.bytes - place, into.size() - 1))
          : 0;
  size = read(names_.offset + place, std::as_writable_bytes(into.first(size)));
  into[size] = '\0';
}

std::string SymbolTable::name(NamePlace place) const {
  std::string text(256, '\0');
  while (true) {
    copy_name(place, text);
    const std::size_t size = std::strlen(text.data());
    if (size + 1 < text.size() || text.size() >= kSymbolBytesMax) {
      text.resize(size);
      return text;
    }
    text.resize(4 * text.size());
  }
}

std::optional<std::uintptr_t> SymbolTable::address_of(std::uint64_t file_offset) const {
  ElfW(Phdr) segment;
  for (std::uint64_t at = 0; at < segments_.bytes && read(segments_.offset + at, segment);
       at += sizeof segment) {
    if (segment.p_type != PT_LOAD || file_offset < segment.p_offset ||
        file_offset - segment.p_offset >= segment.p_filesz)
      continue;
    return static_cast<std::uintptr_t>(file_offset - segment.p_offset + segment.p_vaddr);
  }
  return std::nullopt;
}

void SymbolTable::find_tables() {
  ElfW(Ehdr) header;
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  segments_ = {header.e_phoff, header.e_phnum * sizeof(ElfW(Phdr))};
  const auto read_section = [&](std::size_t index, ElfW(Shdr) & into) {
    return index < header.e_shnum && read(header.e_shoff + index * sizeof into, into);
  };
  ElfW(Shdr) section, strings;
  for (unsigned type : {SHT_SYMTAB, SHT_DYNSYM}) {  // the second is all that a stripped file has
    for (std::size_t i = 0; read_section(i, section); ++i) {
      if (section.sh_type != type || !read_section(section.sh_link, strings) ||
          strings.sh_size == 0)
        continue;
      symbols_ = {section.sh_offset, section.sh_size};
      names_ = {strings.sh_offset, strings.sh_size};
      return;
    }
  }
}

}  // namespace runtime
