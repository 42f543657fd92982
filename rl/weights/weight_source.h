// WeightSource: named tensors in files, read as fp32. Invariant: every tensor listed lies wholly
// inside its file. So a read after a successful open fails only on a wrong name, a wrong output
// size, or a disk that cannot read the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// How a tensor's elements are stored. kQ* are GGUF's block formats, whose rows are whole numbers
/// of blocks.
enum class DType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

/// "F32", "BF16", "Q4_1": the name that files and users use.
std::string_view dtype_name(DType dtype);

/// The smallest unit of a dtype: `elements` numbers in `bytes` bytes. One element for all but the
/// block formats.
struct DTypeBlock {
  std::int64_t elements;
  std::int64_t bytes;
};
DTypeBlock dtype_block(DType dtype);

/// What a file says about one tensor. `shape` is row-major, as in Hugging Face; GGUF's reversed
/// order is undone.
struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::kF32;

  /// Product of the shape; 1 for a scalar.
  std::int64_t element_count() const;
  bool operator==(const TensorInfo&) const = default;
};

/// A set of named tensors in a memory-mapped file or files. Reading converts or de-quantises to
/// fp32. All methods are safe to call from several threads at once. The files must not be truncated
/// while the source lives (replace them by rename, as write_safetensors does).
class WeightSource {
 public:
  WeightSource() = default;
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  virtual ~WeightSource() = default;

  /// All tensors, in file order.
  virtual const std::vector<TensorInfo>& tensors() const = 0;

  /// Null when there is no such tensor. The pointer lives as long as the source.
  virtual const TensorInfo* find(std::string_view name) const = 0;

  /// Converts the whole tensor into `out`, whose size must be the product of its shape.
  /// Errors: kNotFound (no such tensor), kInvalidArgument (wrong size). Cost: one pass over the
  /// stored bytes.
  virtual runtime::Status read_f32(std::string_view name, std::span<float> out) const = 0;

  /// As read_f32, of the elements [first, first + out.size()) in row-major order: one rank's rows,
  /// say. For block formats `first` and the count must be multiples of the block. Errors: as above;
  /// kUnimplemented by default.
  virtual runtime::Status read_f32_range(std::string_view name, std::int64_t first,
                                         std::span<float> out) const;
};

/// How large parts of a file are read. Memory that the page cache takes costs more than a fast
/// disk. But what several processes of a machine read is read once with it, and again without the
/// disk.
enum class WeightReading {
  kThroughPageCache,
  kPastPageCache  // what the cache has comes from it
};

/// Opens a .safetensors file, a `*.safetensors.index.json`, or a model folder that holds
/// `model.safetensors` or an index with its shards. Errors name the file, the tensor and what to
/// do.
runtime::Result<std::unique_ptr<WeightSource>> open_safetensors(
    const std::filesystem::path& folder_or_file,
    WeightReading reading = WeightReading::kThroughPageCache);

/// Opens whatever `model` is: a .gguf file, what open_safetensors takes, or, where there is no
/// safetensors, what open_pytorch takes (pytorch.h).
/// `reading` is for safetensors.
runtime::Result<std::unique_ptr<WeightSource>> open_weights(
    const std::filesystem::path& model, WeightReading reading = WeightReading::kThroughPageCache);

}  // namespace rl
