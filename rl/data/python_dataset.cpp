#include "rl/data/python_dataset.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "rl/data/python_child.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::Status;

// Rows are told one a line; the last line is {"end": true}, or {"error": ...}.
constexpr const char* kDatasetProgram = R"python(
def tokenizer_of(model):
    try:
        from transformers import AutoTokenizer
        return AutoTokenizer.from_pretrained(model)
    except Exception:
        return None


def row_of(item, number):
    if not isinstance(item, dict):
        raise TypeError(f"row {number} is a {type(item).__name__}, not a dict")
    row = {key: plain(value) for key, value in item.items()}
    row = {key: value for key, value in row.items() if value is not None}
    if "raw_prompt" in row:
        row["prompt"] = row.pop("raw_prompt")
    return row


def main():
    setup = json.loads(sys.argv[1])
    made = load_class(setup["path"], setup["name"])
    given = {"data_files": setup["files"], "tokenizer": tokenizer_of(setup["model"]), "processor": None, "config": config_of(setup["config"]), "max_samples": setup["max_samples"]}
    taken = inspect.signature(made).parameters
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in taken.values()):
        given = {name: value for name, value in given.items() if name in taken}
    rows = made(**given)
    items = (rows[i] for i in range(len(rows))) if hasattr(rows, "__getitem__") and hasattr(rows, "__len__") else iter(rows)
    for number, item in enumerate(items, 1):
        if 0 <= setup["max_samples"] < number:
            break
        told.write(json.dumps(row_of(item, number)) + "\n")
    told.write('{"end": true}\n')


try:
    main()
except BaseException as error:
    told.write(json.dumps({"error": reasons(error)}) + "\n")
told.flush()
)python";

}  // namespace

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
    ordered_json row = runtime::parse_json<ordered_json>(*line);
    if (!row.is_object())
      return runtime::invalid_argument(who + ": row " + std::to_string(number) +
                                       " is no JSON object");
    if (row.size() == 1 && row.contains("end")) return {};
    if (row.size() == 1 && row.contains("error") && row["error"].is_string())
      return runtime::invalid_argument(who +
                                       " (data.custom_cls): " + row["error"].get<std::string>());
    if (const Status taken = take({std::move(row), who + " row " + std::to_string(number)});
        !taken.ok())
      return taken;
  }
}

}  // namespace rl
