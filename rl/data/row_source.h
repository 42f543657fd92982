// RowSource: the rows of one file or folder as JSON, whatever form they are stored in; RowSink: the
// other way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

struct RowType;

/// The forms that rows are stored in.
enum class RowForm {
  kJsonLines,
  kJsonList,  // one JSON file that is a list
  kCsv,
  kTsv,
  kParquet,
  kArrow,       // Arrow IPC, as a file or a stream
  kSavedFolder  // what Hugging Face's `save_to_disk` writes
};

/// One row as it is stored, and where, for messages: "train.jsonl:12", "train.parquet: row 12".
struct RawRow {
  nlohmann::ordered_json value;
  std::string where;
  std::string problem = {};  // why a text is no row, with `where`; see keep_unreadable
};

/// Rows in blocks, which are what is read at once: a few hundred lines, a row group of Parquet, a
/// record batch of Arrow. Memory is that of a block. Not thread-safe; stays where it is made.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// The rows of each block. From a file's footer where it has one; a text is read through, once.
  virtual runtime::Result<std::vector<std::int64_t>> block_rows() = 0;

  /// Any block. CHECKs that block_rows() has it. Errors name the file, and the row where there is
  /// one.
  virtual runtime::Result<std::vector<RawRow>> read_block(std::int64_t block) = 0;

  /// The rows in order, block by block, without block_rows(); empty at the end.
  virtual runtime::Result<std::vector<RawRow>> next() = 0;
};

struct RowSourceOptions {
  std::size_t row_bytes_max = 64 << 20;  // of text: a longer row is refused
  std::string split;  // of a folder with several: "train"; with an empty one there must be one only
  bool keep_unreadable = false;  // a line of a text that is no row comes with its `problem`, and
                                 // does not end the reading
};

/// By the name's extension, and where that leaves a choice by the content: ".json" is a list or one
/// row a line. "~/" is expanded. kNotFound: no such file; kInvalidArgument: not of that form,
/// damaged; kUnimplemented: an extension that no form has; kUnavailable: Parquet and Arrow without
/// libstarling_arrow.so.
runtime::Result<std::unique_ptr<RowSource>> open_rows(const std::string& file,
                                                      const RowSourceOptions& options = {});

/// What open_rows() takes `file` for. kNotFound, kUnimplemented as there.
runtime::Result<RowForm> row_form_of(const std::string& file);

/// Writes rows; readers see the file whole or not at all. Destroyed before commit(), it leaves
/// nothing behind.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// kInvalidArgument: the row does not fit the type that the sink was made with.
  virtual runtime::Status write(const RawRow& row) = 0;
  /// Call once, last.
  virtual runtime::Status commit() = 0;
};

/// By the extension of `file`; without one, a folder as `save_to_disk` writes it. `type` is that of
/// all the rows, which is what Parquet, Arrow and CSV have to know first.
runtime::Result<std::unique_ptr<RowSink>> create_rows(const std::string& file, const RowType& type);

/// "~/x" below the home folder.
std::string expand_home(const std::string& file);

}  // namespace rl
