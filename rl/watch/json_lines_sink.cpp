#include "rl/watch/json_lines_sink.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace rl {
namespace {

// The lines that stay: complete, readable, and of a step up to `last_step`; none where the run begins anew.
std::string kept_lines(const std::filesystem::path& path, std::int64_t last_step) {
  std::string kept;
  if (last_step == 0) return kept;  // what is before the first step is behind any checkpoint
  std::ifstream in(path, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) break;  // no line end: the write was cut short
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    if (json.contains("phase") || json["step"].get<std::int64_t>() <= last_step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

runtime::Result<std::unique_ptr<JsonLinesSink>> JsonLinesSink::open(const std::filesystem::path& file, std::int64_t last_step) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) return runtime::errno_status(error.value(), "making the folder of " + file.string());
  const std::string kept = kept_lines(file, last_step);
  const std::filesystem::path fresh = file.string() + ".tmp";
  std::FILE* out = std::fopen(fresh.c_str(), "wb");
  if (out == nullptr) return runtime::errno_status(errno, "writing " + fresh.string());
  const bool written = std::fwrite(kept.data(), 1, kept.size(), out) == kept.size() && std::fflush(out) == 0;
  if (!written || std::rename(fresh.c_str(), file.c_str()) != 0) {
    const int reason = errno;
    std::fclose(out);
    std::remove(fresh.c_str());
    return runtime::errno_status(reason, "writing " + file.string());
  }
  return std::unique_ptr<JsonLinesSink>(new JsonLinesSink(out, file));
}

JsonLinesSink::~JsonLinesSink() { std::fclose(file_); }

runtime::Status JsonLinesSink::write(const StepRecord& record) {
  nlohmann::ordered_json data = nlohmann::ordered_json::object();
  for (const auto& [name, value] : record.metrics) data[name] = value;  // nlohmann writes what is not finite as null
  nlohmann::ordered_json json = {{"step", record.step}, {"total", record.total}, {"epoch", record.epoch}, {"data", std::move(data)}};
  if (!record.phase.empty()) json["phase"] = record.phase;
  const std::string line = json.dump() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0) {
    return runtime::errno_status(errno, "writing " + path_.string());
  }
  return {};
}

}  // namespace rl
