#include "runtime/node/content_hash.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {
constexpr std::size_t kDigits = 2 * crypto_generichash_BYTES;
}

std::string ContentHash::finish() {
  unsigned char raw[crypto_generichash_BYTES];
  crypto_generichash_final(&state_, raw, sizeof raw);
  std::string text;
  for (unsigned char byte : raw) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

bool is_content_hash(const std::string& text) {
  return text.size() == kDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Result<std::string> content_hash(const std::filesystem::path& file) {
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_status(errno, file.string());
  ContentHash hash;
  std::vector<char> block(1 << 20);
  while (true) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, file.string());
    if (got == 0) return hash.finish();
    hash.add(std::string_view(block.data(), static_cast<std::size_t>(got)));
  }
}

}  // namespace runtime
