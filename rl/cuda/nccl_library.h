// NCCL and the CUDA driver, loaded at run time: a program that can use them starts and works
// without them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// What ranks find each other by: one of them makes it, and all join with it.
using NcclId = std::array<char, 128>;

/// The functions that are used of them, with the types of their stable binary interfaces.
struct NcclFunctions {
  struct Id {
    NcclId bytes;
  };  // passed by value, as ncclUniqueId is
  int (*get_version)(int*) = nullptr;
  int (*get_unique_id)(Id*) = nullptr;
  int (*comm_init_rank)(void**, int size, Id, int rank) = nullptr;
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation,
                    void* comm, void* stream) = nullptr;
  int (*comm_destroy)(void*) = nullptr;
  const char* (*get_error_string)(int) = nullptr;
  // Functions of the driver: CUDA's runtime (libcudart) need not be there.
  int (*cu_init)(unsigned) = nullptr;
  int (*cu_device_get)(int*, int) = nullptr;
  int (*cu_primary_context)(void**, int) = nullptr;
  int (*cu_set_context)(void*) = nullptr;
  int (*cu_allocate)(std::uint64_t*, std::size_t) = nullptr;
  int (*cu_free)(std::uint64_t) = nullptr;
  int (*cu_to_device)(std::uint64_t, const void*, std::size_t) = nullptr;
  int (*cu_to_host)(void*, std::uint64_t, std::size_t) = nullptr;
  int (*cu_synchronize)() = nullptr;
  int (*cu_error_string)(int, const char**) = nullptr;
};

/// One rank of a group, on the first GPU that this process may use. Of one thread.
class NcclRank {
 public:
  /// Blocks until all ranks are there, for as long as NCCL likes. `elements`: the most that will be
  /// reduced. The functions must outlive it. Errors: kInternal with NCCL's or the driver's text.
  static runtime::Result<std::unique_ptr<NcclRank>> join(const NcclFunctions& functions,
                                                         const NcclId& id, int rank, int size,
                                                         std::size_t elements);
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;
  ~NcclRank();

  /// To and from the GPU's memory. Errors: kInternal with the driver's text; kInvalidArgument: it
  /// is larger than join() was told.
  runtime::Status write(std::span<const float> values);
  runtime::Status read(std::span<float> values);
  /// Of the first `elements`, in place; returns when it is done. Errors: kInternal with NCCL's
  /// text.
  runtime::Status all_reduce_sum(std::size_t elements);

 private:
  explicit NcclRank(const NcclFunctions& functions) : functions_(functions) {}
  runtime::Status enter(const NcclId& id, int rank, int size, std::size_t elements);

  const NcclFunctions& functions_;
  void* comm_ = nullptr;
  std::uint64_t memory_ = 0;
  std::size_t elements_ = 0;
};

/// Immutable once loaded. The libraries stay loaded for the life of the process: NCCL has its own
/// threads.
class NcclLibrary {
 public:
  struct Names {
    std::string nccl = "libnccl.so.2";
    std::string cuda = "libcuda.so.1";
    // LibTorch's libraries; NCCL's wheel is unpacked next to its own. Empty: there is none.
    std::filesystem::path torch_folder = {};
  };
  /// NCCL is looked for as the loader does, then next to LibTorch. Errors: kUnavailable: a library
  /// is not there, or lacks a function; names it, with the cure.
  static runtime::Result<std::unique_ptr<NcclLibrary>> load(const Names& names);
  /// Loads the NCCL of the LibTorch that this process runs with.
  static runtime::Result<std::unique_ptr<NcclLibrary>> load();

  /// "2.27.3".
  std::string version() const;
  runtime::Result<NcclId> make_id() const;
  /// NcclRank::join with these functions: the library outlives what it returns.
  runtime::Result<std::unique_ptr<NcclRank>> join(const NcclId& id, int rank, int size,
                                                  std::size_t elements) const {
    return NcclRank::join(functions_, id, rank, size, elements);
  }

 private:
  NcclLibrary() = default;
  NcclFunctions functions_;
};

}  // namespace rl
