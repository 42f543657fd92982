// A spilled extent's file with any content: read back as it was written, or refused.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/store/spill_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using runtime::object_detail::SpillFolder;
  static const std::string path = "/tmp/starling-fuzz-spill-" + std::to_string(::getpid());
  static auto folder = SpillFolder::open(path);
  if (!folder.ok() || size == 0) return 0;
  // The first byte is how much is expected; the rest is the file. A good one with bytes changed is
  // a near miss that random bytes never are.
  const std::size_t expected = data[0];
  const std::vector<std::byte> good(expected, std::byte{7});
  if (!(*folder)->write(1, good).ok()) return 0;
  std::FILE* file = std::fopen((path + "/1.spill").c_str(), "r+b");
  if (file == nullptr) std::abort();
  std::fseek(file, size % 2 == 0 ? 0 : static_cast<long>(size % (expected + 32)), SEEK_SET);
  std::fwrite(data + 1, 1, size - 1, file);
  std::fclose(file);
  std::vector<std::byte> out(expected);
  const runtime::Status status = (*folder)->read(1, out);
  if (status.ok() && out != good) std::abort();
  if (!status.ok() && status.code() != runtime::ErrorCode::kObjectLost) std::abort();
  (*folder)->remove(1);
  return 0;
}
