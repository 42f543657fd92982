#include "rl/optim/shared_folder.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/process/file_lock.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::FileLock;
using runtime::Result;

constexpr const char* kWhat = "who sees the checkpoint's folder";
constexpr std::uint64_t kMade = std::uint64_t{1} << 32;  // a number of a file, not of none

// Named as AtomicFile's temporary files are, so that one of a killed rank goes as those do.
fs::path file_of(const fs::path& folder, std::uint64_t number) {
  char id[16];
  std::snprintf(id, sizeof id, "%08x", static_cast<unsigned>(number & (kMade - 1)));
  return folder / ("shared.starling-tmp-" + std::string(id));
}

// The file that others look for; locked, so that no process takes it for a dead rank's.
struct Made {
  std::uint64_t number = 0;  // 0: it could not be made
  FileLock lock = {};
};

Made make_file(const fs::path& folder) {
  const std::uint64_t number =
      kMade | std::stoul(runtime::JobId::random().short_hex(), nullptr, 16);
  auto lock = FileLock::try_file(file_of(folder, number));
  std::error_code error;
  if (!lock.ok() && !fs::exists(file_of(folder, number), error)) return {};
  return {number, lock.ok() ? *std::move(lock) : FileLock()};
}

}  // namespace

Result<bool> all_ranks_see(Communicator& communicator, const fs::path& folder) {
  const bool makes = communicator.rank() == 0;
  const Made made = makes && !folder.empty() ? make_file(folder) : Made();
  const Result<std::vector<std::uint64_t>> numbers = communicator.all_gather(made.number, kWhat);
  std::error_code error;
  if (!numbers.ok()) {
    if (made.number != 0) fs::remove(file_of(folder, made.number), error);
    return numbers.status();
  }
  const std::uint64_t number = numbers->front();
  const bool sees = number != 0 && fs::exists(file_of(folder, number), error);
  const Result<std::vector<std::uint64_t>> seen = communicator.all_gather(sees ? 1 : 0, kWhat);
  if (made.number != 0) fs::remove(file_of(folder, made.number), error);
  if (!seen.ok()) return seen.status();
  return std::ranges::all_of(*seen, [](std::uint64_t rank) { return rank == 1; });
}

}  // namespace rl
