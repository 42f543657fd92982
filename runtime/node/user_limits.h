// UserLimits: the share of one user on a node of root's that several users submit to.
#pragma once

#include <cstddef>

namespace runtime {

/// For each user but the node's own.
struct UserLimits {
  std::size_t jobs = 64;  // that run or wait for their place
  std::size_t connections = 128;
};

}  // namespace runtime
