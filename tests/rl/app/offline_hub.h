// A hub's cache on a machine that fetches nothing.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace rl {

/// The environment's cache while it lives, and no hub to fetch from.
class OfflineHub {
 public:
  /// Copies a model's folder to where the cache has that revision of `name`, which is without an
  /// organisation. Returns the path.
  std::filesystem::path add(const std::string& name, const std::string& revision,
                            const std::filesystem::path& model) const {
    const std::filesystem::path hub = folder_.path() / ("models--" + name);
    const std::string commit(40, revision == "main" ? 'a' : 'b');
    std::filesystem::create_directories(hub / "refs");
    std::ofstream(hub / "refs" / revision) << commit;
    std::filesystem::create_directories(hub / "snapshots");
    std::filesystem::copy(model, hub / "snapshots" / commit);
    return hub / "snapshots" / commit;
  }

 private:
  const support::TemporaryFolder folder_;
  const support::ScopedVariable cache_{"HF_HUB_CACHE", folder_.path().c_str()};
  const support::ScopedVariable offline_{"HF_HUB_OFFLINE", "1"};
};

}  // namespace rl
