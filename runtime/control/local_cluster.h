// LocalCluster: a cluster of one node that a driver starts for itself when there is none.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace runtime {

/// Runs `starling start --head --private` as a child, in its own session folder, which no other
/// program looks into. The child dies with this process, however that ends.
class LocalCluster {
 public:
  /// Blocks until the node is up. Points STARLING_SESSION_ROOT of this process at the cluster's
  /// sessions. Errors: kNotFound (no `starling` program next to this one or in PATH), kUnavailable
  /// with what it wrote.
  static Result<std::unique_ptr<LocalCluster>> start(const std::vector<std::string>& arguments,
                                                     std::chrono::milliseconds timeout);
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;
  /// Ends it and waits until it is gone.
  ~LocalCluster();

  const std::string& address() const { return address_; }

 private:
  struct Child;
  LocalCluster(std::unique_ptr<Child> child, std::string address, std::filesystem::path root);

  std::unique_ptr<Child> child_;
  std::string address_;
  std::filesystem::path root_;
};

/// The `starling` program: STARLING_PROGRAM, or next to this program, or in ../bin, or in PATH.
/// Errors: kNotFound.
Result<std::filesystem::path> find_starling_program();

}  // namespace runtime
