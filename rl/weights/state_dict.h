// The pickle inside a PyTorch file, read as what it has to be: a dictionary of names and tensors. A
// pickle is a program that may call any function of Python. Here is an interpreter that knows the
// few instructions and names that torch.save writes for tensors. It refuses all others by name, so
// that nothing in a file can run. LibTorch's own unpickler resolves class names through its
// compiler's type parser, builds objects with hooks and trusts counts. It is meant for files that
// the reader's own program wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/weights/weight_source.h"
#include "runtime/core/result.h"

namespace rl {

/// A tensor as the pickle describes it: a view of a storage, which is a file of the archive. Sizes
/// in elements of info.dtype. Invariant: the view lies inside [0, storage_count) and is no larger
/// than it.
struct PickledTensor {
  TensorInfo info;
  std::string storage;  // the file's name below data/
  std::int64_t storage_count = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t>
      strides;  // as many as dimensions; of a dimension of one element it means nothing
};

/// The tensors of a pickled state dict, in its order. `name` is the file for error messages.
/// Errors: kInvalidArgument (damaged; not a dictionary of tensors; the same name twice),
/// kUnimplemented (an instruction, a class or a dtype beyond tensors, by name). Nothing is
/// executed. Allocates in proportion to the pickle.
runtime::Result<std::vector<PickledTensor>> parse_state_dict(std::span<const std::byte> pickle,
                                                             std::string_view name);

}  // namespace rl
