// Runs a fuzz target without libFuzzer, so that g++ builds exercise the decoders in every test run.
// It replays each file or folder named on the command line. Then it mutates them for a bounded
// number of runs from a fixed seed.
//   X_fuzz [-runs=N] [-seed=S] corpus...
// The input in flight is kept in memory; on a crash the last line on stderr is its seed and run,
// which replays it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(stream), {});
}

void mutate(Bytes& bytes, std::mt19937_64& rng, const std::vector<Bytes>& corpus) {
  int edits = 1 + static_cast<int>(rng() % 8);
  for (int i = 0; i < edits; ++i) {
    std::size_t at = bytes.empty() ? 0 : rng() % bytes.size();
    switch (rng() % 7) {
      case 0:
        if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1u << (rng() % 8));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<std::uint8_t>(rng());
        break;
      case 2:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<std::uint8_t>(rng()));
        break;
      case 3:
        if (!bytes.empty()) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 4: bytes.resize(at); break;  // truncation
      case 5:                           // extreme lengths and counts
        for (std::size_t k = 0; k < 8 && at + k < bytes.size(); ++k)
          bytes[at + k] = rng() % 2 ? 0xff : 0x00;
        break;
      case 6: {  // splice in a piece of another input
        const Bytes& other = corpus[rng() % corpus.size()];
        if (other.empty()) break;
        std::size_t from = rng() % other.size(), count = 1 + rng() % 32;
        count = std::min(count, other.size() - from);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     other.begin() + static_cast<std::ptrdiff_t>(from),
                     other.begin() + static_cast<std::ptrdiff_t>(from + count));
        break;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 2000, seed = 1;
  std::vector<Bytes> corpus{{}};
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.rfind("-runs=", 0) == 0) {
      runs = std::strtoull(argument.c_str() + 6, nullptr, 10);
    } else if (argument.rfind("-seed=", 0) == 0) {
      seed = std::strtoull(argument.c_str() + 6, nullptr, 10);
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
        if (entry.is_regular_file()) corpus.push_back(read_file(entry.path()));
      }
    } else if (std::filesystem::exists(argument)) {
      corpus.push_back(read_file(argument));
    }
  }
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  std::mt19937_64 rng(seed);
  for (std::uint64_t run = 0; run < runs; ++run) {
    Bytes bytes = corpus[rng() % corpus.size()];
    mutate(bytes, rng, corpus);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs replayed, %llu mutated, seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed));
}
