#include "runtime/call/thrown.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace runtime {
namespace {

template <class Thrown>
Status status_of_thrown(const Thrown& thrown) {
  return status_of(std::make_exception_ptr(thrown));
}

TEST(StatusOfThrown, SaysWhatWasThrown) {
  EXPECT_EQ(status_of_thrown(std::out_of_range("at 7")), task_failed("threw: at 7"));
  EXPECT_EQ(status_of_thrown(std::string("text")), task_failed("threw: text"));
  EXPECT_EQ(status_of_thrown(static_cast<const char*>("words")), task_failed("threw: words"));
  EXPECT_EQ(status_of_thrown(7).code(), ErrorCode::kTaskFailed);
}

TEST(StatusOfThrown, AStatusIsItself) {
  EXPECT_EQ(status_of_thrown(not_found("no such file")), not_found("no such file"));
  EXPECT_EQ(status_of_thrown(Status()).code(), ErrorCode::kTaskFailed) << "yet it was thrown";
}

TEST(StatusOfThrown, WhatSaysNothingIsNamedAllTheSame) {
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  EXPECT_EQ(status_of_thrown(Silent()).code(), ErrorCode::kTaskFailed);
  EXPECT_EQ(status_of_thrown(static_cast<const char*>(nullptr)).code(), ErrorCode::kTaskFailed);
}

TEST(StatusOfThrownDeathTest, TheEndOfAThreadOfTheRuntimeEndsTheProcess) {
  EXPECT_DEATH((void)status_of(nullptr), "pthread_exit");
}

}  // namespace
}  // namespace runtime
