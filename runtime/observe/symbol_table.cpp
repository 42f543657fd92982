#include "runtime/observe/symbol_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace runtime {

namespace {

bool lies_in(const ElfW(Shdr)& section, std::span<const std::byte> file) {
  return section.sh_offset <= file.size() && section.sh_size <= file.size() - section.sh_offset;
}

}  // namespace

SymbolTable::SymbolTable(const char* path) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // whatever lies there now: a pipe would be waited for
  if (fd < 0) return;
  struct stat info{};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    void* mapped = ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped != MAP_FAILED) file_ = {static_cast<const std::byte*>(mapped), static_cast<std::size_t>(info.st_size)};
  }
  ::close(fd);
  find_tables(file_);
}

SymbolTable::~SymbolTable() {
  if (!file_.empty()) ::munmap(const_cast<std::byte*>(file_.data()), file_.size());
}

std::optional<std::uintptr_t> SymbolTable::address_of(std::uint64_t file_offset) const {
  for (const ElfW(Phdr)& segment : segments_) {
    if (segment.p_type != PT_LOAD || file_offset < segment.p_offset || file_offset - segment.p_offset >= segment.p_filesz) continue;
    return static_cast<std::uintptr_t>(file_offset - segment.p_offset + segment.p_vaddr);
  }
  return std::nullopt;
}

void SymbolTable::find_tables(std::span<const std::byte> file) {
  auto header = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
  if (file.size() < sizeof *header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
  if (header->e_phoff <= file.size() && header->e_phnum <= (file.size() - header->e_phoff) / sizeof(ElfW(Phdr))) {
    segments_ = {reinterpret_cast<const ElfW(Phdr)*>(file.data() + header->e_phoff), header->e_phnum};
  }
  if (header->e_shoff > file.size() || header->e_shnum > (file.size() - header->e_shoff) / sizeof(ElfW(Shdr))) return;
  std::span sections(reinterpret_cast<const ElfW(Shdr)*>(file.data() + header->e_shoff), header->e_shnum);
  for (unsigned type : {SHT_SYMTAB, SHT_DYNSYM}) {  // the second is all that a stripped file has
    for (const ElfW(Shdr)& section : sections) {
      if (section.sh_type != type || section.sh_link >= sections.size()) continue;
      const ElfW(Shdr)& strings = sections[section.sh_link];
      if (!lies_in(section, file) || !lies_in(strings, file) || strings.sh_size == 0) continue;
      symbols_ = {reinterpret_cast<const ElfW(Sym)*>(file.data() + section.sh_offset), section.sh_size / sizeof(ElfW(Sym))};
      names_ = {reinterpret_cast<const char*>(file.data() + strings.sh_offset), strings.sh_size};
      return;
    }
  }
}

}  // namespace runtime
