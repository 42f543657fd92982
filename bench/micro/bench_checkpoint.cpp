// The cost of writing and loading a model's weights, compared with the disk itself.
//
//   bench_checkpoint [--mib 2048] [--rounds 3] [--folder FOLDER] [--json]
//
//   plain    pwrite of as many bytes past the page cache, in blocks of 4 MiB, and fsync
//   alone    the whole model by one writer (save_model_folder), as `starling export` has it
//   parts_N  a checkpoint by N ranks, each its part of the same files (write_part), with its
//            manifest of hashes, until it has its name (CheckpointWriter)
//   verify   comparing it with the manifest, of files that are not in the page cache
//   load_N   N ranks, each its part (Parameters::load), of a file that is not in the page cache
//
// All run in turns. Figures are medians over the rounds. Ratios are to the plain bandwidth of the
// same round: written to plain writing, loaded to plain reading. Ranks are threads.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/figures.h"
#include "bench/support/model_of_size.h"
#include "bench/support/options.h"
#include "bench/support/take.h"
#include "bench/support/timing.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/model/save.h"
#include "rl/model/tensor_span.h"
#include "rl/optim/learner_part.h"
#include "rl/optim/optimizer_shards.h"
#include "rl/weights/page_cache.h"
#include "rl/weights/safetensors.h"

namespace {

namespace fs = std::filesystem;
using bench::Clock;

constexpr std::size_t kBlockBytes = 4 << 20;
constexpr std::int64_t kStep = 1;
const fs::path kModel = "actor/huggingface";  // of the checkpoint

// Moves `bytes` between a file and memory past the page cache.
double seconds_of_plain(const fs::path& file, std::size_t bytes, bool writes) {
  const rl::DirectBlock block = rl::allocate_direct_block(kBlockBytes);
  std::fill_n(block.get(), kBlockBytes, std::byte{1});
  const auto start = Clock::now();
  const int fd = ::open(file.c_str(), O_DIRECT | (writes ? O_WRONLY | O_CREAT : O_RDONLY), 0666);
  if (fd < 0) bench::fail("opening " + file.string());
  if (writes) (void)::fallocate(fd, 0, 0, static_cast<off_t>(bytes));
  for (std::size_t at = 0; at < bytes; at += kBlockBytes) {
    const auto offset = static_cast<off_t>(at);
    const ssize_t moved = writes ? ::pwrite(fd, block.get(), kBlockBytes, offset)
                                 : ::pread(fd, block.get(), kBlockBytes, offset);
    if (moved <= 0) bench::fail("moving " + file.string());
  }
  if (writes && ::fsync(fd) != 0) bench::fail("syncing " + file.string());
  ::close(fd);
  return bench::seconds_since(start);
}

void drop_from_cache(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY);
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

double seconds_of_ranks(int ranks, const std::function<void(int)>& work) {
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&work, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
  return bench::seconds_since(start);
}

double seconds_of_parts(const rl::ModelConfig& config, const rl::Parameters& parameters, int ranks,
                        const fs::path& run) {
  const std::vector<rl::ArenaRange> homes = rl::moment_homes(parameters.arena_size(), ranks);
  const rl::PackedRanges all({{0, parameters.arena_size()}});
  const auto start = Clock::now();
  rl::CheckpointWriter writer = bench::take(rl::CheckpointWriter::begin(run, kStep));
  seconds_of_ranks(ranks, [&](int rank) {
    const rl::PackedRanges home({homes[static_cast<std::size_t>(rank)]});
    (void)bench::take(rl::write_part({.rank = rank,
                                      .config = config,
                                      .trained = parameters.specs(),
                                      .home = home,
                                      .kept = all,
                                      .weights = rl::elements_of(parameters.arena()),
                                      .optimizer = {},
                                      .optimizer_name = "none"},
                                     writer.folder() / kModel.parent_path()));
  });
  (void)bench::take(writer.commit({kModel / rl::kSafetensorsFile}));
  return bench::seconds_since(start);
}

double seconds_of_verifying(const fs::path& checkpoint) {
  const auto start = Clock::now();
  if (const runtime::Status whole = rl::verify_checkpoint(checkpoint); !whole.ok())
    bench::fail(whole.to_string());
  return bench::seconds_since(start);
}

double seconds_of_loading(const rl::ModelConfig& config, std::int64_t elements, int ranks,
                          const fs::path& model) {
  const std::vector<rl::ArenaRange> homes = rl::moment_homes(elements, ranks);
  return seconds_of_ranks(ranks, [&](int rank) {
    rl::LoadOptions options;
    options.only = rl::RangeSet{homes[static_cast<std::size_t>(rank)]};
    (void)bench::take(rl::Parameters::load(config, model, options));
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t mib = 2048, rounds = 3;
  std::string named = (fs::temp_directory_path() / "bench_checkpoint").string();
  bool json = false;
  bench::read_options(
      argc, argv,
      {{"--mib", &mib}, {"--rounds", &rounds}, {"--folder", &named}, {"--json", &json}});
  const fs::path folder = named;
  fs::create_directories(folder);
  const rl::ModelConfig config = bench::model_of_size(static_cast<std::int64_t>(mib));
  const rl::Parameters parameters = rl::Parameters::random(config, 1);
  const std::size_t bytes =
      static_cast<std::size_t>(parameters.arena_size()) * sizeof(float) / kBlockBytes * kBlockBytes;
  std::map<std::string, std::vector<double>> seconds, ratios;
  const auto note = [&](const std::string& name, double taken, double plain) {
    seconds[name].push_back(taken);
    ratios[name].push_back(plain / taken);
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    const double writing = seconds_of_plain(folder / "plain", bytes, /*writes=*/true);
    const double reading = seconds_of_plain(folder / "plain", bytes, /*writes=*/false);
    fs::remove(folder / "plain");
    note("plain_write", writing, writing);
    note("plain_read", reading, reading);
    const auto start = Clock::now();
    const runtime::Status saved = rl::save_model_folder(config, parameters, folder / "alone");
    if (!saved.ok()) bench::fail(saved.to_string());
    note("alone", bench::seconds_since(start), writing);
    fs::remove_all(folder / "alone");
    const fs::path checkpoint = rl::checkpoint_path(folder / "run", kStep);
    for (const int ranks : {1, 2, 4}) {
      note("parts_" + std::to_string(ranks),
           seconds_of_parts(config, parameters, ranks, folder / "run"), writing);
      drop_from_cache(checkpoint / kModel / rl::kSafetensorsFile);
      note("load_" + std::to_string(ranks),
           seconds_of_loading(config, parameters.arena_size(), ranks, checkpoint / kModel),
           reading);
      if (ranks == 1) {
        drop_from_cache(checkpoint / kModel / rl::kSafetensorsFile);
        note("verify", seconds_of_verifying(checkpoint), reading);
      }
      fs::remove_all(folder / "run");
    }
  }
  fs::remove_all(folder);
  nlohmann::ordered_json figures{{"mib", static_cast<double>(bytes >> 20)}};
  for (const auto& [name, taken] : seconds) {
    figures[name + "_s"] = bench::median(taken);
    if (!name.starts_with("plain")) figures[name + "_ratio"] = bench::median(ratios[name]);
  }
  bench::print_figures(figures, json);
  return 0;
}
