// Records: the stream of frames, encrypted and authenticated piece by piece (AES-256-GCM). Each
// direction of a connection has its own key and record counter, so that records
// cannot be dropped, replayed, reordered or reflected. docs/wire.md describes the bytes. Private to
// runtime/transport.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/core/result.h"
#include "runtime/transport/aes_gcm.h"
#include "runtime/transport/noise.h"

namespace runtime {

inline constexpr std::size_t kRecordHeaderBytes = 4;  // the text's size
inline constexpr std::size_t kRecordTagBytes = AesGcm::kTagBytes;
inline constexpr std::size_t kRecordOverheadBytes = kRecordHeaderBytes + kRecordTagBytes;
inline constexpr std::size_t kRecordTextMax = 64 << 10;
/// After this many records (64 GiB at most) the key is replaced by one derived from it.
inline constexpr std::uint64_t kRecordsPerKey = 1 << 20;

/// AES-256-GCM under one direction's key, which changes as records are counted.
class RecordCipher {
 public:
  using Use = AesGcm::Use;

  /// `cipher`: of that use; null: the fastest.
  RecordCipher(const SymmetricKey& key, Use use, std::uint64_t records_per_key = kRecordsPerKey,
               std::unique_ptr<AesGcm> cipher = nullptr);
  RecordCipher(const RecordCipher&) = delete;
  RecordCipher& operator=(const RecordCipher&) = delete;
  ~RecordCipher();

  /// Writes one record with all of `text`, 1 to kRecordTextMax bytes in pieces, to the beginning of
  /// `out`, which has room for it. Returns the record's size.
  std::size_t seal(std::span<const iovec> text, std::span<std::byte> out);

  /// The size of the text of the record that begins with these bytes.
  /// Errors: kInvalidArgument for a size that no record has.
  static Result<std::size_t> text_bytes(std::span<const std::byte, kRecordHeaderBytes> header);
  /// Opens the next record, header and tag included, into pieces that hold its text exactly. False:
  /// it is not the one that the peer sealed; what the pieces hold then is garbage.
  [[nodiscard]] bool open(std::span<const std::byte> record, std::span<const iovec> text);

 private:
  void begin_record(std::span<const std::byte, kRecordHeaderBytes> header);

  SymmetricKey key_;
  const Use use_;
  const std::uint64_t records_per_key_;
  std::uint64_t records_ = 0;  // under this key
  const std::unique_ptr<AesGcm> cipher_;
};

}  // namespace runtime
