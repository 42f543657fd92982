#include "rl/metrics/tensorboard_sink.h"

#include <unistd.h>

#include <boost/crc.hpp>

#include "rl/metrics/protobuf.h"
#include "rl/metrics/unix_seconds.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Fields of tensorflow.Event and what it holds.
enum Event { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum Summary { kValue = 1 };
enum Value { kTag = 1, kSimpleValue = 2 };
enum SessionLog { kStatus = 1 };
constexpr std::int64_t kSessionStart = 1;

// CRC-32C, turned and shifted so that a checksum of bytes that hold checksums is still one.
std::uint32_t masked_checksum(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const auto sum = static_cast<std::uint32_t>(crc.checksum());
  return (sum >> 15 | sum << 17) + 0xa282ead8U;
}

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// TFRecord: length, its checksum, the bytes, theirs.
std::string framed(const std::string& bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  return length + little_endian(masked_checksum(length)) + bytes +
         little_endian(masked_checksum(bytes));
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

Result<std::unique_ptr<TensorBoardSink>> TensorBoardSink::open(const std::filesystem::path& folder,
                                                               std::int64_t last_step) {
  // TensorBoard reads files in the order of their names. A process that opens two within a second
  // numbers them.
  const std::string name = "events.out.tfevents." +
                           std::to_string(static_cast<std::int64_t>(unix_seconds())) + "." +
                           host_name() + "." + std::to_string(::getpid());
  std::error_code ignored;
  int number = 0;
  while (std::filesystem::exists(folder / (name + "." + std::to_string(number)), ignored)) ++number;
  Result<LogFile> file = LogFile::create(folder / (name + "." + std::to_string(number)));
  if (!file.ok()) return file.status();
  // From this step on TensorBoard forgets what earlier files say. A run that begins may validate as
  // its step 0.
  const std::int64_t first = last_step == 0 ? 0 : last_step + 1;
  ProtobufMessage start;
  start.real(kWallTime, unix_seconds())
      .integer(kStep, first)
      .message(kSessionLog, ProtobufMessage().integer(kStatus, kSessionStart));
  const Status written = file->write(framed(ProtobufMessage()
                                                .real(kWallTime, unix_seconds())
                                                .text(kFileVersion, "brain.Event:2")
                                                .bytes()) +
                                     framed(start.bytes()));
  if (!written.ok()) return written;
  return std::unique_ptr<TensorBoardSink>(new TensorBoardSink(std::move(*file)));
}

Status TensorBoardSink::write(const StepRecord& record) {
  ProtobufMessage summary;
  for (const auto& [name, value] : record.metrics) {
    summary.message(
        kValue, ProtobufMessage().text(kTag, name).real(kSimpleValue, static_cast<float>(value)));
  }
  ProtobufMessage event;
  event.real(kWallTime, unix_seconds()).integer(kStep, record.step).message(kSummary, summary);
  return file_.write(framed(event.bytes()));
}

}  // namespace rl
