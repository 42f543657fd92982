#include "rl/data/saved_folder.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "rl/data/arrow_library.h"
#include "rl/data/json_text.h"
#include "rl/data/row_type.h"
#include "rl/weights/atomic_file.h"
#include "runtime/core/ids.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

Result<ordered_json> read_json(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return runtime::errno_status(errno, "data file " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return parse_json_text(text.str(), path.string());
}

// A name in these files is a file right next to them, nothing else.
bool is_plain_name(const ordered_json& name) {
  return name.is_string() && !name.get<std::string>().empty() &&
         name.get<std::string>().find('/') == std::string::npos && name != "." && name != "..";
}

Result<std::string> choose_split(const fs::path& folder, const std::string& wanted) {
  const Result<ordered_json> dict = read_json(folder / "dataset_dict.json");
  if (!dict.ok()) return dict.status();
  const std::string where = (folder / "dataset_dict.json").string();
  if (!dict->is_object() || !dict->contains("splits") || !dict->at("splits").is_array() ||
      dict->at("splits").empty())
    return invalid_argument(where + ": it must be an object with a list of 'splits'");
  std::string names;
  for (const ordered_json& split : dict->at("splits")) {
    if (!is_plain_name(split))
      return invalid_argument(where + ": a split must be a folder's name, it is " +
                              json_line(split));
    if (split == wanted) return wanted;
    names += (names.empty() ? "" : ", ") + split.get<std::string>();
  }
  if (dict->at("splits").size() == 1) return names;
  // What is trained on and what is validated on have a few names.
  if (wanted == "validation") {
    for (const char* other : {"val", "valid", "dev", "test", "eval"}) {
      if (std::find(dict->at("splits").begin(), dict->at("splits").end(), other) !=
          dict->at("splits").end())
        return std::string(other);
    }
  }
  return invalid_argument(
      "data folder " + folder.string() + ": " +
      (wanted.empty() ? "it has several splits" : "it has no split '" + wanted + "'") + " (" +
      names + "): name one, as " + (folder / names.substr(0, names.find(','))).string());
}

/// Sources end to end.
class JoinedSource final : public RowSource {
 public:
  explicit JoinedSource(std::vector<std::unique_ptr<RowSource>> parts) : parts_(std::move(parts)) {}

  Result<std::vector<std::int64_t>> block_rows() override {
    std::vector<std::int64_t> rows;
    first_.assign(1, 0);
    for (const auto& part : parts_) {
      const Result<std::vector<std::int64_t>> of_part = part->block_rows();
      if (!of_part.ok()) return of_part;
      rows.insert(rows.end(), of_part->begin(), of_part->end());
      first_.push_back(static_cast<std::int64_t>(rows.size()));
    }
    return rows;
  }

  Result<std::vector<RawRow>> read_block(std::int64_t block) override {
    CHECK(block >= 0);
    CHECK(block < first_.back());
    const auto part = static_cast<std::size_t>(
        std::upper_bound(first_.begin(), first_.end(), block) - first_.begin() - 1);
    return parts_[part]->read_block(block - first_[part]);
  }

  Result<std::vector<RawRow>> next() override {
    for (; at_ < parts_.size(); ++at_) {
      Result<std::vector<RawRow>> rows = parts_[at_]->next();
      if (!rows.ok() || !rows->empty()) return rows;
    }
    return std::vector<RawRow>();
  }

 private:
  std::vector<std::unique_ptr<RowSource>> parts_;
  std::vector<std::int64_t> first_{0};  // block of each part, and the end
  std::size_t at_ = 0;
};

/// One Arrow stream and the two files next to it, in a folder that is renamed into place.
class FolderSink final : public RowSink {
 public:
  FolderSink(fs::path folder, fs::path temporary)
      : folder_(std::move(folder)), temporary_(std::move(temporary)) {}
  ~FolderSink() override {
    rows_.reset();
    std::error_code ignored;
    if (!committed_) fs::remove_all(temporary_, ignored);
  }

  Status open(const RowType& type) {
    const Result<ArrowBackend*> arrow = load_arrow();
    if (!arrow.ok()) return arrow.status();
    Result<std::unique_ptr<RowSink>> rows =
        (*arrow)->create(folder_.string(), temporary_ / kDataFile, RowForm::kSavedFolder, type);
    if (!rows.ok()) return rows.status();
    rows_ = std::move(*rows);
    return Status();
  }

  Status write(const RawRow& row) override { return rows_->write(row); }

  Status commit() override {
    Status status = rows_->commit();
    rows_.reset();
    const ordered_json state = {{"_data_files", {{{"filename", kDataFile}}}},
                                {"_fingerprint", "0000000000000000"},
                                {"_format_columns", nullptr},
                                {"_format_kwargs", ordered_json::object()},
                                {"_format_type", nullptr},
                                {"_output_all_columns", false},
                                {"_split", nullptr}};
    if (status.ok()) status = write_file_atomically(temporary_ / "state.json", state.dump(2));
    if (status.ok())
      status = write_file_atomically(
          temporary_ / "dataset_info.json",
          "{\"citation\": \"\", \"description\": \"\", \"homepage\": \"\", \"license\": \"\"}");
    if (!status.ok()) return status;
    std::error_code error;
    fs::rename(temporary_, folder_, error);
    if (error) return runtime::errno_status(error.value(), "data folder " + folder_.string());
    committed_ = true;
    return Status();
  }

 private:
  static constexpr const char* kDataFile = "data-00000-of-00001.arrow";
  fs::path folder_, temporary_;
  std::unique_ptr<RowSink> rows_;
  bool committed_ = false;
};

}  // namespace

Result<std::unique_ptr<RowSource>> open_saved_folder(const std::string& name,
                                                     const RowSourceOptions& options) {
  fs::path folder = expand_home(name);
  std::string shown = name;
  std::error_code ignored;
  if (fs::exists(folder / "dataset_dict.json", ignored)) {
    const Result<std::string> split = choose_split(folder, options.split);
    if (!split.ok()) return split.status();
    folder /= *split;
    shown = (fs::path(name) / *split).string();
  }
  if (!fs::exists(folder / "state.json", ignored)) {
    return invalid_argument("data file " + folder.string() +
                            ": is a folder, and not one of save_to_disk: it has neither state.json "
                            "nor dataset_dict.json");
  }
  const Result<ordered_json> state = read_json(folder / "state.json");
  if (!state.ok()) return state.status();
  const std::string where = (folder / "state.json").string();
  if (!state->is_object() || !state->contains("_data_files") ||
      !state->at("_data_files").is_array())
    return invalid_argument(where + ": it must be an object with a list of '_data_files'");
  if (state->contains("_indices_data_files") && state->at("_indices_data_files").is_array() &&
      !state->at("_indices_data_files").empty()) {
    return runtime::unimplemented(
        where + ": rows chosen by an index file: save it again after flatten_indices()");
  }
  const Result<ArrowBackend*> arrow = load_arrow();
  if (!arrow.ok()) return arrow.status().with_context(name);
  std::vector<std::unique_ptr<RowSource>> parts;
  for (const ordered_json& file : state->at("_data_files")) {
    if (!file.is_object() || !file.contains("filename") || !is_plain_name(file.at("filename")))
      return invalid_argument(where +
                              ": '_data_files' must be a list of objects with a 'filename'");
    const std::string data = file.at("filename").get<std::string>();
    if (!fs::exists(folder / data, ignored))
      return runtime::not_found("data file " + (folder / data).string() +
                                ": it is missing, and state.json names it");
    Result<std::unique_ptr<RowSource>> part =
        (*arrow)->open((fs::path(shown) / data).string(), folder / data, RowForm::kArrow);
    if (!part.ok()) return part;
    parts.push_back(std::move(*part));
  }
  return std::unique_ptr<RowSource>(std::make_unique<JoinedSource>(std::move(parts)));
}

Result<std::unique_ptr<RowSink>> create_saved_folder(const std::string& name, const RowType& type) {
  const fs::path folder = expand_home(name);
  std::error_code error;
  if (fs::exists(folder, error))
    return invalid_argument("data folder " + folder.string() +
                            ": it is there already: remove it or name another");
  const fs::path temporary = folder.string() + ".partial-" + runtime::JobId::random().short_hex();
  if (!fs::create_directory(temporary, error))  // one that is there is not ours
    return runtime::errno_status(error ? error.value() : EEXIST,
                                 "data folder " + temporary.string());
  auto sink = std::make_unique<FolderSink>(folder, temporary);
  const Status status = sink->open(type);
  if (!status.ok()) return status;
  return std::unique_ptr<RowSink>(std::move(sink));
}

}  // namespace rl
