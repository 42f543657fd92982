#include "runtime/process/content_hash.h"

#include "runtime/process/file_util.h"

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

Result<std::string> content_hash(const std::filesystem::path& file, std::uint64_t* bytes) {
  ContentHash hash;
  std::uint64_t read = 0;
  Status status = read_blocks(file, [&](std::string_view block) {
    hash.add(block);
    read += block.size();
  });
  if (!status.ok()) return status;
  if (bytes) *bytes = read;
  return hash.finish();
}

}  // namespace runtime
