// NCCL by a stand-in of its interface: that ranks find each other and sum, and what is said where
// it cannot be had.
#include "rl/cuda/nccl_library.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

std::string fake() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_nccl.so").string();
}

void expect_unavailable(const NcclLibrary::Names& names, const std::vector<std::string>& parts) {
  auto library = NcclLibrary::load(names);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), runtime::ErrorCode::kUnavailable)
      << library.status().to_string();
  for (const std::string& part : parts)
    EXPECT_NE(library.status().message().find(part), std::string::npos)
        << part << " in: " << library.status().message();
}

TEST(NcclLibrary, WhatIsMissingIsNamedWithItsCure) {
  expect_unavailable({"libnccl-that-is-not-there.so.2", fake()},
                     {"libnccl-that-is-not-there.so.2", "apt-get install libnccl2"});
  expect_unavailable({fake(), "libcuda-that-is-not-there.so.1"},
                     {"libcuda-that-is-not-there.so.1", "--gpus all"});
  expect_unavailable({"libm.so.6", fake()}, {"libm.so.6 has no ncclGetVersion"});
  expect_unavailable({fake(), "libm.so.6"}, {"libm.so.6 has no cuInit"});
}

// As wheels are unpacked: no search path leads there.
TEST(NcclLibrary, IsFoundInTheWheelNextToLibTorch) {
  const support::TemporaryFolder wheels;
  const std::filesystem::path folder = wheels.file("nvidia/nccl/lib");
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(wheels.file("torch/lib"));
  NcclLibrary::Names names{"libnccl-that-is-not-there.so.2", fake(), wheels.file("torch/lib")};
  expect_unavailable(names, {"libnccl-that-is-not-there.so.2", "apt-get install libnccl2"});
  std::filesystem::copy_file(fake(), folder / "libnccl.so.2");
  const auto library = NcclLibrary::load(names);
  ASSERT_TRUE(library.ok()) << library.status().to_string();
  EXPECT_EQ((*library)->version(), "2.27.3");
}

TEST(NcclLibrary, RanksSum) {
  constexpr int kSize = 3;
  constexpr std::size_t kElements = 1000;
  auto library = NcclLibrary::load({fake(), fake()});
  ASSERT_TRUE(library.ok()) << library.status().to_string();
  EXPECT_EQ((*library)->version(), "2.27.3");
  const auto id = (*library)->make_id();
  ASSERT_TRUE(id.ok()) << id.status().to_string();
  std::vector<std::thread> ranks;
  std::vector<std::vector<float>> results(kSize, std::vector<float>(kElements));
  std::vector<runtime::Status> ends(kSize);
  const auto run = [&](int rank) -> runtime::Status {
    auto joined = (*library)->join(*id, rank, kSize, kElements);
    if (!joined.ok()) return joined.status();
    for (int round = 1; round <= 3; ++round) {
      const std::vector<float> values(kElements, static_cast<float>((rank + 1) * round));
      if (runtime::Status status = (*joined)->write(values); !status.ok()) return status;
      if (runtime::Status status = (*joined)->all_reduce_sum(kElements); !status.ok())
        return status;
      std::vector<float>& result = results[static_cast<std::size_t>(rank)];
      if (runtime::Status status = (*joined)->read(result); !status.ok()) return status;
      if (result != std::vector<float>(kElements, static_cast<float>(6 * round)))
        return runtime::internal_error("round " + std::to_string(round) + " is wrong");
    }
    EXPECT_EQ((*joined)->write(std::vector<float>(kElements + 1)).code(),
              runtime::ErrorCode::kInvalidArgument);
    return {};
  };
  for (int rank = 0; rank < kSize; ++rank)
    ranks.emplace_back([&, rank] { ends[static_cast<std::size_t>(rank)] = run(rank); });
  for (std::thread& rank : ranks) rank.join();
  for (const runtime::Status& end : ends) EXPECT_TRUE(end.ok()) << end.to_string();
}

TEST(NcclLibrary, ErrorsAreTheLibrariesOwn) {
  auto library = NcclLibrary::load({fake(), fake()});
  ASSERT_TRUE(library.ok()) << library.status().to_string();
  const auto wrong = (*library)->join(NcclId{}, 0, 1, 1);
  EXPECT_NE(wrong.status().message().find("ncclCommInitRank: NCCL says 'invalid argument'"),
            std::string::npos)
      << wrong.status().message();
  {
    support::ScopedVariable none("FAKE_CUDA_HAS_NO_DEVICE", "1");
    const auto without = (*library)->join(*(*library)->make_id(), 0, 1, 1);
    EXPECT_NE(
        without.status().message().find("cuInit: CUDA says 'no CUDA-capable device is detected'"),
        std::string::npos)
        << without.status().message();
  }
  auto alone = (*library)->join(*(*library)->make_id(), 0, 1, 1);
  ASSERT_TRUE(alone.ok()) << alone.status().to_string();
  support::ScopedVariable breaks("FAKE_NCCL_BREAKS", "1");
  EXPECT_NE((*alone)->all_reduce_sum(1).message().find(
                "ncclAllReduce: NCCL says 'unhandled system error'"),
            std::string::npos);
}

}  // namespace
}  // namespace rl
