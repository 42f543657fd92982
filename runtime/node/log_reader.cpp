#include "runtime/node/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "runtime/process/log_position.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

namespace {

constexpr std::size_t kLogChunkBytes = 256 << 10;

struct Piece {
  FileDescriptor fd;
  std::uint64_t identity = 0;
  std::uint64_t bytes = 0;
  std::uint64_t begins_at = 0;  // bytes of the log before it, as far as is known
  int error = 0;
};

Piece open_piece(const std::filesystem::path& path) {
  Piece piece;
  piece.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info;
  if (!piece.fd || ::fstat(piece.fd.get(), &info) != 0)
    piece.error = errno;
  else
    piece.identity = log_file_identity(piece.fd.get()),
    piece.bytes = static_cast<std::uint64_t>(info.st_size);
  return piece;
}

/// The log may be rotated between the looks at its files: then the position is of the file before.
void place(Piece& now, Piece& before, const std::filesystem::path& path) {
  const auto known = read_log_position(path);
  if (known && before.fd && known->file == before.identity)
    before.begins_at = known->bytes_before;
  else if (known && before.fd && known->file == now.identity)
    before.begins_at = known->bytes_before - std::min(known->bytes_before, before.bytes);
  if (known && known->file == now.identity)
    now.begins_at = known->bytes_before;
  else if (before.fd)
    now.begins_at = before.begins_at + before.bytes;
}

Result<control::LogChunk> read_piece(const Piece& piece, std::uint64_t offset,
                                     const std::string& log) {
  control::LogChunk chunk;
  chunk.text.resize(kLogChunkBytes);
  const ssize_t got =
      ::pread(piece.fd.get(), chunk.text.data(), chunk.text.size(), static_cast<off_t>(offset));
  if (got < 0) return errno_status(errno, "log " + log);
  chunk.text.resize(static_cast<std::size_t>(got));
  chunk.next_offset = offset + static_cast<std::uint64_t>(got);
  chunk.file = piece.identity;
  chunk.position = piece.begins_at + offset;
  return chunk;
}

}  // namespace

Result<control::LogChunk> read_log_chunk(const std::filesystem::path& folder,
                                         const std::string& name, std::uint64_t file,
                                         std::uint64_t offset) {
  const std::string log = name.empty() ? "node.log" : name;
  bool plain = log.size() < 100 && log.front() != '.' &&
               std::all_of(log.begin(), log.end(),
                           [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '.'; });
  if (!plain) return invalid_argument("'" + name.substr(0, 100) + "' is not the name of a log");
  Piece now = open_piece(folder / log);
  Piece before = open_piece(folder / (log + ".1"));
  if (!now.fd && !before.fd) return errno_status(now.error, "log " + log);
  place(now, before, folder / log);
  // Where the reader is: in the newer file, or in the older one. If its file is gone, it is at the
  // beginning of what is left.
  const bool in_newer = now.fd && file != 0 && now.identity == file;
  const bool in_older = before.fd && !in_newer;
  if (!in_newer && !(in_older && before.identity == file)) offset = 0;
  if (in_older) {
    auto chunk = read_piece(before, offset, log);
    if (!chunk.ok() || !chunk->text.empty() || !now.fd) return chunk;
    offset = 0;
  }
  if (!now.fd) return control::LogChunk{"", offset, file, 0};
  return read_piece(now, offset, log);
}

}  // namespace runtime
