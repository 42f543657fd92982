#include "rl/metrics/wandb_sink.h"

#include <algorithm>
#include <boost/crc.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>

#include "rl/metrics/protobuf.h"
#include "rl/metrics/unix_seconds.h"
#include "rl/weights/atomic_file.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

// Fields of wandb_internal.proto.
enum Record { kNumber = 1, kHistory = 2, kRun = 17, kExit = 18, kHeader = 21 };
enum Run { kId = 1, kProject = 3, kConfig = 4, kDisplayName = 8, kStartTime = 17 };
enum Exit { kCode = 1, kRuntime = 2 };
enum Header { kVersion = 1 };
enum Version { kProducer = 1, kMinConsumer = 2 };
enum History { kItem = 1, kHistoryStep = 2 };
enum Config { kUpdate = 1 };
enum Item { kKey = 1, kNestedKey = 2, kValueJson = 16 };

// The log's form.
constexpr std::int64_t kBlockBytes = 32 * 1024;
constexpr std::int64_t kHeadBytes = 7;
enum class Piece : char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };
constexpr char kMagic[] = ":W&B\xE1\xBE\x00";

std::string piece_bytes(Piece piece, std::string_view data) {
  boost::crc_32_type crc;
  crc.process_byte(static_cast<unsigned char>(piece));
  crc.process_bytes(data.data(), data.size());
  const auto sum = static_cast<std::uint32_t>(crc.checksum());
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(sum >> (8 * i));
  for (int i = 0; i < 2; ++i) bytes += static_cast<char>(data.size() >> (8 * i));
  bytes += static_cast<char>(piece);
  return bytes.append(data);
}

// Eight of a-z0-9, as wandb makes them.
std::string new_id() {
  std::random_device device;
  std::uniform_int_distribution<std::size_t> letter(0, 35);
  std::string id;
  while (id.size() < 8) id += "abcdefghijklmnopqrstuvwxyz0123456789"[letter(device)];
  return id;
}

bool is_id(const std::string& id) {
  return id.size() == 8 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

Result<std::string> run_id(const std::filesystem::path& file) {
  std::string id;
  std::ifstream(file) >> id;
  if (is_id(id)) return id;
  id = new_id();
  if (Status made = make_folder_of(file); !made.ok()) return made;
  if (Status status = write_file_atomically(file, id + "\n"); !status.ok()) return status;
  return id;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::localtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d_%H%M%S", &parts);
  return text;
}

// The JSON of Python, which has numbers that are none.
std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return ordered_json(value).dump();
}

ProtobufMessage history_item(const std::string& name, const std::string& json) {
  return ProtobufMessage().text(kNestedKey, name).text(kValueJson, json);
}

}  // namespace

Result<std::unique_ptr<WandbSink>> WandbSink::open(const WandbOptions& options) {
  const std::filesystem::path folder = options.folder / "wandb";
  const Result<std::string> id = run_id(
      (options.run_folder.empty() ? options.folder : options.run_folder) / "wandb" / "run_id");
  if (!id.ok()) return id.status();
  const double begin = unix_seconds();
  const auto run_folder = [&](double time) {
    return folder / ("offline-run-" + time_text(time) + "-" + *id);
  };
  double named = begin;
  std::error_code ignored;
  while (std::filesystem::exists(run_folder(named), ignored))
    named += 1;  // started twice within a second
  Result<LogFile> file = LogFile::create(run_folder(named) / ("run-" + *id + ".wandb"));
  if (!file.ok()) return file.status();
  std::unique_ptr<WandbSink> sink(new WandbSink(std::move(*file)));
  Status status = sink->file_.write(std::string_view(kMagic, kHeadBytes));
  sink->position_ = kHeadBytes;
  const ProtobufMessage version =
      ProtobufMessage().text(kProducer, "0.18.0").text(kMinConsumer, "0.13.0");
  if (status.ok())
    status = sink->append(ProtobufMessage()
                              .integer(kNumber, sink->records_++)
                              .message(kHeader, ProtobufMessage().message(kVersion, version))
                              .bytes());
  ProtobufMessage config;
  for (const auto& [key, value] : options.config.items())
    config.message(kUpdate, ProtobufMessage().text(kKey, key).text(kValueJson, value.dump()));
  const auto whole = static_cast<std::int64_t>(begin);
  const ProtobufMessage started = ProtobufMessage().integer(1, whole).integer(
      2, static_cast<std::int64_t>((begin - static_cast<double>(whole)) * 1e9));
  ProtobufMessage run;
  run.text(kId, *id)
      .text(kProject, options.project)
      .message(kConfig, config)
      .text(kDisplayName, options.name)
      .message(kStartTime, started);
  if (status.ok())
    status = sink->append(
        ProtobufMessage().integer(kNumber, sink->records_++).message(kRun, run).bytes());
  if (!status.ok()) return status;
  return sink;
}

WandbSink::WandbSink(LogFile file) : file_(std::move(file)), begin_(unix_seconds()) {}

WandbSink::~WandbSink() {
  const ProtobufMessage exit = ProtobufMessage().integer(kCode, 0).integer(
      kRuntime, static_cast<std::int64_t>(unix_seconds() - begin_));
  (void)append(ProtobufMessage()
                   .integer(kNumber, records_++)
                   .message(kExit, exit)
                   .bytes());  // a run without it is shown as crashed, no more
}

Status WandbSink::write(const StepRecord& record) {
  ProtobufMessage history;
  for (const auto& [name, value] : record.metrics)
    history.message(kItem, history_item(name, json_number(value)));
  // A warm start counts its own steps, which would collide with those of RL.
  if (record.phase.empty())
    history.message(kItem, history_item("_step", std::to_string(record.step)));
  history.message(kItem, history_item("_timestamp", json_number(unix_seconds())))
      .message(kItem, history_item("_runtime", json_number(unix_seconds() - begin_)));
  if (record.phase.empty())
    history.message(kHistoryStep, ProtobufMessage().integer(1, record.step));
  return append(ProtobufMessage().integer(kNumber, records_++).message(kHistory, history).bytes());
}

// LevelDB's log: a record that does not fit into what is left of a block goes on in the next one.
Status WandbSink::append(std::string_view message) {
  std::string bytes;
  bool first = true;
  do {
    std::int64_t room = kBlockBytes - (position_ + std::ssize(bytes)) % kBlockBytes;
    if (room < kHeadBytes) {
      bytes.append(static_cast<std::size_t>(room), '\0');
      room = kBlockBytes;
    }
    const std::string_view data = message.substr(0, static_cast<std::size_t>(room - kHeadBytes));
    message.remove_prefix(data.size());
    const bool last = message.empty();
    bytes += piece_bytes(
        first ? (last ? Piece::kFull : Piece::kFirst) : (last ? Piece::kLast : Piece::kMiddle),
        data);
    first = false;
  } while (!message.empty());
  const Status written = file_.write(bytes);
  if (written.ok()) position_ += std::ssize(bytes);
  return written;
}

}  // namespace rl
