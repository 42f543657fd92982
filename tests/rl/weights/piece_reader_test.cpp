#include "rl/weights/piece_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <vector>

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;

TEST(ReadPieces, ReadsEachOnceOnAnyNumberOfThreads) {
  for (const std::size_t helpers : {0U, 1U, 3U, 50U}) {
    std::vector<std::atomic<int>> reads(20);
    EXPECT_TRUE(read_pieces(reads.size(), helpers, [&](std::size_t i) {
                  ++reads[i];
                  return Status();
                }).ok());
    for (const std::atomic<int>& count : reads) EXPECT_EQ(count, 1) << helpers;
  }
  EXPECT_TRUE(read_pieces(0, 3, [](std::size_t) { return runtime::internal_error("read"); }).ok());
}

TEST(ReadPieces, AFailureIsReturnedOnceAllAreThrough) {
  std::atomic<int> reads{0};
  const Status failed = read_pieces(10, 2, [&](std::size_t i) {
    ++reads;
    return i == 4 ? runtime::not_found("the fifth") : Status();
  });
  EXPECT_EQ(failed.code(), ErrorCode::kNotFound);
  EXPECT_EQ(reads, 10);
}

TEST(ReadPieces, WantOfMemoryIsAnError) {
  const Status failed = read_pieces(3, 1, [](std::size_t) -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(failed.code(), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace rl
