// CleanEnvironment: the environment of a user who has no cluster.
#pragma once

#include <string>

#include "tests/support/temporary_folder.h"

namespace placement {

/// Commands find no cluster and no token for as long as this is there.
class CleanEnvironment {
 public:
  /// Files of the test, and the sessions below it, are in this folder.
  const support::TemporaryFolder& folder() const { return folder_; }

 private:
  const support::TemporaryFolder folder_;
  const support::ScopedVariable root_{"STARLING_SESSION_ROOT", folder_.path().c_str()};
  const support::ScopedVariable address_{"STARLING_ADDRESS", nullptr};
  const support::ScopedVariable token_file_{"STARLING_TOKEN_FILE", nullptr};
  const support::ScopedVariable token_{"STARLING_TOKEN", nullptr};
};

}  // namespace placement
