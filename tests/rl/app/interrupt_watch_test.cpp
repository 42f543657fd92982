// Each test in a child, whose signals they are. The exit codes name the expectation that failed.
#include "rl/app/interrupt_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "tests/support/expect_failure.h"
#include "tests/support/in_child.h"

namespace rl {
namespace {

constexpr int kKilled = -1;  // of in_child(): by a signal

struct Watched {
  int code = 0;
  std::string said;  // on stderr
};

Watched watched(const std::function<int(const InterruptWatch&)>& body, bool saves = true) {
  ::testing::internal::CaptureStderr();
  const int code = support::in_child([&] {
    ::signal(SIGHUP, SIG_DFL);  // whatever started the tests
    const InterruptWatch watch(saves);
    return body(watch);
  });
  return {code, ::testing::internal::GetCapturedStderr()};
}

TEST(InterruptWatch, TheFirstSignalIsNotedAndTold) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const Watched once = watched([signal](const InterruptWatch& watch) {
      if (watch.interrupted()) return 1;
      ::raise(signal);
      return watch.interrupted() ? 0 : 2;
    });
    EXPECT_EQ(once.code, 0) << signal;
    EXPECT_EQ(once.said,
              "\ninterrupted: stopping after this step with a checkpoint; a second signal ends the "
              "run at once\n")
        << signal;
  }
  const Watched unsaved = watched(
      [](const InterruptWatch&) {
        ::raise(SIGINT);
        return 0;
      },
      /*saves=*/false);
  EXPECT_NE(unsaved.said.find("without a checkpoint"), std::string::npos) << unsaved.said;
}

TEST(InterruptWatch, TheSecondOneEndsTheProcess) {
  for (const int second : {SIGINT, SIGTERM}) {
    const Watched twice = watched([second](const InterruptWatch&) {
      ::raise(SIGTERM);
      ::raise(second);
      return 0;
    });
    EXPECT_EQ(twice.code, kKilled) << second;
    EXPECT_EQ(twice.said.find("interrupted"), twice.said.rfind("interrupted")) << "told once";
  }
}

TEST(InterruptWatch, ALostReaderOrTerminalIsNoWishToEndAtOnce) {
  const Watched lost = watched([](const InterruptWatch& watch) {
    for (const int signal : {SIGPIPE, SIGPIPE, SIGHUP, SIGHUP}) ::raise(signal);
    return watch.interrupted() ? 0 : 1;
  });
  EXPECT_EQ(lost.code, 0);
  const Watched then = watched([](const InterruptWatch&) {
    ::raise(SIGPIPE);
    ::raise(SIGINT);
    return 0;
  });
  EXPECT_EQ(then.code, kKilled) << "a user's signal behind it is one";
}

TEST(InterruptWatch, ASignalThatIsPassedOnToTheGroupCountsOnce) {
  const Watched both = watched([](const InterruptWatch& watch) {
    ::raise(SIGINT);
    pass_on_signal(::getpid(), SIGINT);
    return watch.interrupted() ? 0 : 1;
  });
  EXPECT_EQ(both.code, 0);
  const Watched first_passed_on = watched([](const InterruptWatch&) {
    pass_on_signal(::getpid(), SIGTERM);
    ::raise(SIGTERM);
    return 0;
  });
  EXPECT_EQ(first_passed_on.code, 0);
  const Watched twice = watched([](const InterruptWatch&) {
    pass_on_signal(::getpid(), SIGTERM);
    ::raise(SIGTERM);
    pass_on_signal(::getpid(), SIGTERM);
    return 0;
  });
  EXPECT_EQ(twice.code, kKilled);
}

TEST(InterruptWatch, WhatNohupIgnoresStaysIgnored) {
  const int code = support::in_child([] {
    ::signal(SIGHUP, SIG_IGN);
    const InterruptWatch watch(true);
    ::raise(SIGHUP);
    return watch.interrupted() ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(InterruptWatch, AfterwardsSignalsEndTheProcessAndALostReaderDoesNot) {
  const auto after = [](int signal) {
    return support::in_child([signal] {
      { const InterruptWatch watch(true); }
      ::raise(signal);
      return 0;
    });
  };
  EXPECT_EQ(after(SIGINT), kKilled);
  EXPECT_EQ(after(SIGTERM), kKilled);
  EXPECT_EQ(after(SIGPIPE), 0);
  const int again = support::in_child([] {
    {
      const InterruptWatch watch(true);
      ::raise(SIGPIPE);
    }
    const InterruptWatch next(true);
    return next.interrupted() ? 1 : 0;
  });
  EXPECT_EQ(again, 0) << "the next command begins as new";
}

TEST(InterruptWatch, WhatWasCutSaysHowToGoOn) {
  const auto cut = [](bool saves, ResumeMode mode) {
    const InterruptWatch watch(saves);
    return watch.cut(3, 10, mode);
  };
  using runtime::ErrorCode;
  support::expect_failure(cut(true, ResumeMode::kAuto), ErrorCode::kCancelled,
                          {"interrupted after step 3 of 10", "; the same command continues"});
  support::expect_failure(cut(true, ResumeMode::kDisable), ErrorCode::kCancelled,
                          {"with trainer.resume_mode=auto continues"});
  EXPECT_EQ(cut(false, ResumeMode::kAuto).message(), "interrupted after step 3 of 10");
}

}  // namespace
}  // namespace rl
