// Links between ranks that are threads of one process: copies from memory to memory.
#pragma once

#include <memory>
#include <vector>

#include "rl/comm/links.h"

namespace rl {

/// One end for each of `size` ranks. An end that is destroyed is a rank that is gone.
std::vector<std::unique_ptr<Links>> make_thread_links(int size);

}  // namespace rl
