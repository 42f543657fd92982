#include "rl/cuda/cuda_library.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace rl {
namespace {

const std::filesystem::path kBuilt =
    std::filesystem::path(STARLING_BIN_DIR).parent_path() / "lib/libstarling_cuda.so";

TEST(CudaLibrary, MissingFileNamesItAndTheCure) {
  auto library = CudaLibrary::load("/nowhere/libstarling_cuda.so");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), runtime::ErrorCode::kUnavailable);
  EXPECT_NE(library.status().message().find("/nowhere/libstarling_cuda.so"), std::string::npos);
  EXPECT_NE(library.status().message().find("GPU=1"), std::string::npos);
}

TEST(CudaLibrary, RefusesALibraryOfAnotherKind) {
  auto library = CudaLibrary::load("libm.so.6");
  ASSERT_FALSE(library.ok());
  EXPECT_NE(library.status().message().find("not Starling's"), std::string::npos)
      << library.status().message();
}

// Loading needs no device: the library is linked with the static CUDA runtime. What runs on a
// device is tested with one.
TEST(CudaLibrary, LoadsWhereItWasBuilt) {
  if (!std::filesystem::exists(kBuilt))
    GTEST_SKIP() << "built without nvcc or without STARLING_GPU";
  auto library = CudaLibrary::load(kBuilt);
  ASSERT_TRUE(library.ok()) << library.status().to_string();
  EXPECT_TRUE((*library)->status(0, "nothing").ok());
  EXPECT_NE((*library)->status(2, "allocate").message().find("out of memory"), std::string::npos);
  EXPECT_NE((*library)->target_logprobs(nullptr, nullptr, nullptr, 1, 0, 1.0f, nullptr), 0);
}

}  // namespace
}  // namespace rl
