// Loads libstarling_arrow.so, which alone links Apache Arrow, when Parquet or Arrow is first read:
// what reads neither starts without its 60 MB.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "rl/data/row_source.h"
#include "runtime/core/result.h"

namespace rl {

/// What the library gives. It is built with this program, by the same compiler, so that types of
/// C++ go across.
class ArrowBackend {
 public:
  virtual ~ArrowBackend() = default;
  /// `name` is for messages. kInvalidArgument: damaged, cut off, or not of that form.
  virtual runtime::Result<std::unique_ptr<RowSource>> open(const std::string& name,
                                                           const std::filesystem::path& path,
                                                           RowForm form) = 0;
  /// `form` kParquet, kArrow (a file), or kSavedFolder (a stream: one of the files in such a
  /// folder).
  virtual runtime::Result<std::unique_ptr<RowSink>> create(const std::string& name,
                                                           const std::filesystem::path& path,
                                                           RowForm form, const RowType& type) = 0;
};

/// What both sides must agree on; raise it with every change of the classes above or of RowSource,
/// RowSink, RowType.
inline constexpr int kArrowBackendAbi = 2;

/// The library stays loaded to the program's end. Thread-safe. kUnavailable: it is not in ../lib
/// next to the executable or cannot be loaded (with the loader's reason); kUnimplemented: it
/// belongs to another version.
runtime::Result<ArrowBackend*> load_arrow();

}  // namespace rl
