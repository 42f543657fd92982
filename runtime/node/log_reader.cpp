#include "runtime/node/log_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {
constexpr std::size_t kChunkBytes = 256 << 10;
}

Result<control::LogChunk> read_log_chunk(const std::filesystem::path& folder, const std::string& name, std::uint64_t offset) {
  std::string file = name.empty() ? "node.log" : name;
  bool plain = file.size() < 100 && file.front() != '.' && std::all_of(file.begin(), file.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.';
  });
  if (!plain) return invalid_argument("'" + name.substr(0, 100) + "' is not the name of a log");
  FileDescriptor fd(::open((folder / file).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return errno_status(errno, "log " + file);
  control::LogChunk chunk;
  chunk.text.resize(kChunkBytes);
  ssize_t got = ::pread(fd.get(), chunk.text.data(), chunk.text.size(), static_cast<off_t>(offset));
  if (got < 0) return errno_status(errno, "log " + file);
  chunk.text.resize(static_cast<std::size_t>(got));
  chunk.next_offset = offset + static_cast<std::uint64_t>(got);
  return chunk;
}

}  // namespace runtime
