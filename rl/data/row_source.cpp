#include "rl/data/row_source.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "rl/data/arrow_library.h"
#include "rl/data/saved_folder.h"
#include "rl/data/text_rows.h"

namespace rl {

namespace fs = std::filesystem;
using runtime::Result;

namespace {

bool is_compressed(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char start[2] = {};
  return in.read(start, sizeof start) && start[0] == '\x1f' && start[1] == '\x8b';  // gzip's mark
}

// A list starts with a bracket; everything else is one row a line.
RowForm json_form(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  for (char c; in.get(c);) {
    if (std::string_view(" \t\r\n\xEF\xBB\xBF").find(c) == std::string_view::npos)
      return c == '[' ? RowForm::kJsonList : RowForm::kJsonLines;
  }
  return RowForm::kJsonLines;
}

std::optional<RowForm> form_of_extension(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".jsonl" || extension == ".ndjson") return RowForm::kJsonLines;
  if (extension == ".json") return RowForm::kJsonList;
  if (extension == ".csv") return RowForm::kCsv;
  if (extension == ".tsv") return RowForm::kTsv;
  if (extension == ".parquet") return RowForm::kParquet;
  if (extension == ".arrow") return RowForm::kArrow;
  return std::nullopt;
}

runtime::Status no_such_form(const std::string& file) {
  return runtime::unimplemented(
      file +
      ": rows are read and written as .parquet, .jsonl, .json, .csv, .tsv, .arrow, or a folder of "
      "save_to_disk; convert it to one of these");
}

}  // namespace

std::string expand_home(const std::string& file) {
  const char* home = std::getenv("HOME");
  return file.starts_with("~/") && home != nullptr ? std::string(home) + file.substr(1) : file;
}

Result<RowForm> row_form_of(const std::string& file) {
  const fs::path path = expand_home(file);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    return runtime::errno_status(error ? error.value() : ENOENT, "data file " + path.string());
  if (fs::is_directory(status)) return RowForm::kSavedFolder;
  if (!fs::is_regular_file(status))
    return runtime::invalid_argument(
        "data file " + path.string() +
        ": a pipe or a device, which cannot be read twice: write it to a file first");
  std::optional<RowForm> form = form_of_extension(path);
  if (!form) return no_such_form(file);
  if (*form != RowForm::kParquet && *form != RowForm::kArrow && is_compressed(path.string()))
    return runtime::invalid_argument("data file " + path.string() +
                                     ": compressed by gzip: unpack it first (gunzip)");
  return *form == RowForm::kJsonList ? json_form(path.string()) : *form;
}

Result<std::unique_ptr<RowSource>> open_rows(const std::string& file,
                                             const RowSourceOptions& options) {
  const Result<RowForm> form = row_form_of(file);
  if (!form.ok()) return form.status();
  if (*form == RowForm::kSavedFolder) return open_saved_folder(file, options);
  if (*form != RowForm::kParquet && *form != RowForm::kArrow)
    return open_text_rows(file, *form, options);
  const Result<ArrowBackend*> arrow = load_arrow();
  if (!arrow.ok()) return arrow.status().with_context(file);
  return (*arrow)->open(file, expand_home(file), *form);
}

Result<std::unique_ptr<RowSink>> create_rows(const std::string& file, const RowType& type) {
  const fs::path path = expand_home(file);
  std::error_code ignored;
  const std::optional<RowForm> form = form_of_extension(path);
  if (!form && (path.has_extension() || path.empty())) return no_such_form(file);
  if (!form) return create_saved_folder(file, type);
  if (*form != RowForm::kParquet && *form != RowForm::kArrow)
    return create_text_rows(file, *form, type);
  const Result<ArrowBackend*> arrow = load_arrow();
  if (!arrow.ok()) return arrow.status().with_context(file);
  return (*arrow)->create(file, path, *form, type);
}

}  // namespace rl
