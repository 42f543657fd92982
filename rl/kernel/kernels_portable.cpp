// The kernels in plain C++.
#include "rl/kernel/kernel_table.h"
#include "rl/kernel/lanes_portable.h"
#include "rl/kernel/make_table.h"

namespace rl::kernel {

const KernelTable& portable_kernels() {
  static constexpr KernelTable kTable = make_table<PortableLanes>();
  return kTable;
}

}  // namespace rl::kernel
