// ATen's exceptions as errors, by kind.
#include "rl/model/guarded.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <new>
#include <stdexcept>

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;

constexpr c10::SourceLocation kHere{"function", "file", 1};

template <class Exception, class... Args>
Status told(Args... args) {
  return guarded<void>("a pass", [&] { throw Exception(args...); });
}

TEST(Guarded, MemoryThatIsGoneIsAnother) {
  EXPECT_EQ(told<c10::OutOfMemoryError>(kHere, "CUDA out of memory").code(),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(told<std::bad_alloc>().code(), ErrorCode::kResourceExhausted);
  const Status host =
      guarded<at::Tensor>("a pass", [] { return at::empty({std::int64_t{1} << 60}); }).status();
  EXPECT_EQ(host.code(), ErrorCode::kResourceExhausted) << host.to_string();
}

TEST(Guarded, ADeviceThatHasFailedEndsTheProcess) {
  const Status lost = told<c10::AcceleratorError>(kHere, 700, "an illegal memory access");
  EXPECT_EQ(lost.code(), ErrorCode::kInternal);
  EXPECT_EQ(lost.message(),
            "a pass: an illegal memory access; the device is lost to this process, which must end");
}

TEST(Guarded, TheProcessOfAnActorEndsWithItsDevice) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto lose = [] {
    end_process_with_its_device();
    (void)told<c10::OutOfMemoryError>(kHere, "CUDA out of memory");  // the device goes on
    (void)told<c10::AcceleratorError>(kHere, 700, "an illegal memory access");
    ::_exit(0);
  };
  EXPECT_EXIT(lose(), ::testing::ExitedWithCode(1),
              "a pass: an illegal memory access; the device is lost to this process");
}

TEST(Guarded, EverythingElseIsABug) {
  const Status shapes =
      guarded<at::Tensor>("a pass", [] { return at::ones({2}).add(at::ones({3})); }).status();
  EXPECT_EQ(shapes.code(), ErrorCode::kInternal);
  EXPECT_NE(shapes.message().find("a pass: The size of tensor a (2)"), std::string::npos)
      << shapes.message();
  EXPECT_EQ(told<std::runtime_error>("odd").message(), "a pass: odd");
}

TEST(Guarded, WhatIsReturnedIsReturned) {
  EXPECT_EQ(*guarded<int>("a pass", [] { return 3; }), 3);
  const auto refused = guarded<int>(
      "a pass", []() -> runtime::Result<int> { return runtime::invalid_argument("no"); });
  EXPECT_EQ(refused.status().message(), "no");
  EXPECT_TRUE(guarded<void>("a pass", [] {}).ok());
  EXPECT_EQ(guarded<void>("a pass", [] { return runtime::not_found("nothing"); }).code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rl
