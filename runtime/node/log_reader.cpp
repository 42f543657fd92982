#include "runtime/node/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {

constexpr std::size_t kChunkBytes = 256 << 10;

struct Piece {
  FileDescriptor fd;
  std::uint64_t inode = 0;
  int error = 0;
};

Piece open_piece(const std::filesystem::path& path) {
  Piece piece;
  piece.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (!piece.fd || ::fstat(piece.fd.get(), &info) != 0) piece.error = errno;
  else piece.inode = info.st_ino;
  return piece;
}

Result<control::LogChunk> read_piece(const Piece& piece, std::uint64_t offset, const std::string& log) {
  control::LogChunk chunk;
  chunk.text.resize(kChunkBytes);
  const ssize_t got = ::pread(piece.fd.get(), chunk.text.data(), chunk.text.size(), static_cast<off_t>(offset));
  if (got < 0) return errno_status(errno, "log " + log);
  chunk.text.resize(static_cast<std::size_t>(got));
  chunk.next_offset = offset + static_cast<std::uint64_t>(got);
  chunk.file = piece.inode;
  return chunk;
}

}  // namespace

Result<control::LogChunk> read_log_chunk(const std::filesystem::path& folder, const std::string& name, std::uint64_t file, std::uint64_t offset) {
  const std::string log = name.empty() ? "node.log" : name;
  bool plain = log.size() < 100 && log.front() != '.' && std::all_of(log.begin(), log.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.';
  });
  if (!plain) return invalid_argument("'" + name.substr(0, 100) + "' is not the name of a log");
  Piece now = open_piece(folder / log);
  Piece before = open_piece(folder / (log + ".1"));
  if (!now.fd && !before.fd) return errno_status(now.error, "log " + log);
  // Where the reader is: in the older file, or in the newer one; files that are gone are passed over.
  const bool in_older = before.fd && (file == 0 || before.inode == file);
  if (!in_older && now.inode != file) offset = 0;
  if (in_older) {
    auto chunk = read_piece(before, offset, log);
    if (!chunk.ok() || !chunk->text.empty() || !now.fd) return chunk;
    offset = 0;
  }
  if (!now.fd) return control::LogChunk{"", offset, file};
  return read_piece(now, offset, log);
}

}  // namespace runtime
