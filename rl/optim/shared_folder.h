// A check that the ranks of a group see the same folder.
#pragma once

#include <filesystem>

#include "rl/comm/communicator.h"
#include "runtime/core/result.h"

namespace rl {

/// Whether all ranks see a file that rank 0 makes in `folder` for it, and removes again. If rank 0
/// is killed meanwhile, it leaves a file that remove_dead_temporaries() removes. The same answer on
/// every rank. False where rank 0 cannot make one. Errors: those of Communicator.
runtime::Result<bool> all_ranks_see(Communicator& communicator,
                                    const std::filesystem::path& folder);

}  // namespace rl
