#include "rl/data/python_dataset.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "rl/data/json_text.h"
#include "rl/data/python_child.h"
#include "rl/data/python_programs.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::Status;

Status read_python_rows(const PythonDataset& dataset, const std::vector<std::string>& files,
                        std::int64_t rows_max, const std::function<Status(RawRow)>& take) {
  constexpr const char* kKey = "data.custom_cls";
  std::error_code error;
  if (!dataset.path.starts_with("pkg://") && !std::filesystem::is_regular_file(dataset.path, error))
    return runtime::not_found(std::string(kKey) + ".path: there is no file " + dataset.path);
  const std::string who = dataset.path + ": " + dataset.name;
  const ordered_json setup{{"path", dataset.path},     {"name", dataset.name},
                           {"model", dataset.model},   {"files", files},
                           {"config", dataset.config}, {"max_samples", rows_max}};
  runtime::Result<PythonChild> child =
      PythonChild::start(kDatasetProgram, setup, "data.custom_cls.path");
  if (!child.ok()) return child.status();
  for (std::int64_t number = 1;; ++number) {
    const std::optional<std::string_view> line = child->line();
    if (!line)
      return runtime::invalid_argument(who + ": the process that makes the rows ended after " +
                                       std::to_string(number - 1) +
                                       " of them (data.custom_cls); what it printed is above");
    const std::string where = who + " row " + std::to_string(number);
    runtime::Result<ordered_json> parsed = parse_json_text(*line, where);
    if (!parsed.ok()) return parsed.status();
    ordered_json& row = *parsed;
    if (!row.is_object()) return runtime::invalid_argument(where + " is not a JSON object");
    if (row.size() == 1 && row.contains("end")) return {};
    if (row.size() == 1 && row.contains("error") && row["error"].is_string())
      return runtime::invalid_argument(who +
                                       " (data.custom_cls): " + row["error"].get<std::string>());
    if (const Status taken = take({std::move(row), where}); !taken.ok()) return taken;
  }
}

}  // namespace rl
