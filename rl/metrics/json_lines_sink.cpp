#include "rl/metrics/json_lines_sink.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/weights/atomic_file.h"
#include "runtime/core/json.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

// The lines that stay: complete, readable, and of a step up to `last_step`; none where the run
// begins again. A line that was damaged is gone, and reported.
std::string kept_lines(const std::filesystem::path& path, std::int64_t last_step) {
  std::string kept;
  if (last_step == 0) {  // what is before the first step is behind any checkpoint
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    if (!error && bytes > 0)
      LOG(warn, "{}: replaces the metrics of an earlier run, since this one starts at step 1",
          path.string());
    return kept;
  }
  std::int64_t damaged = 0;
  std::ifstream in(path, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) break;  // no line end: the write was cut short
    const auto json = runtime::parse_json(line);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
      ++damaged;
      continue;
    }
    if (json.contains("phase") || json["step"].get<std::int64_t>() <= last_step)
      kept += line + "\n";
  }
  if (damaged > 0)
    LOG(warn, "{}: skipped {} line(s) that are not records of a step", path.string(), damaged);
  return kept;
}

}  // namespace

runtime::Result<std::unique_ptr<JsonLinesSink>> JsonLinesSink::open(
    const std::filesystem::path& file, std::int64_t last_step) {
  if (runtime::Status made = make_folder_of(file); !made.ok()) return made;
  if (runtime::Status status = write_file_atomically(file, kept_lines(file, last_step));
      !status.ok())
    return status;
  runtime::Result<LogFile> log = LogFile::open(file);
  if (!log.ok()) return log.status();
  return std::unique_ptr<JsonLinesSink>(new JsonLinesSink(std::move(*log)));
}

runtime::Status JsonLinesSink::write(const StepRecord& record) {
  nlohmann::ordered_json data = nlohmann::ordered_json::object();
  for (const auto& [name, value] : record.metrics)
    data[name] = value;  // nlohmann writes what is not finite as null
  nlohmann::ordered_json json = {{"step", record.step},
                                 {"total", record.total},
                                 {"epoch", record.epoch},
                                 {"data", std::move(data)}};
  if (!record.phase.empty()) json["phase"] = record.phase;
  return file_.write(json.dump() + "\n");
}

}  // namespace rl
