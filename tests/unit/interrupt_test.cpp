// Signals: the first asks, an echo of it changes nothing, a second one that is meant ends at once.
#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <initializer_list>

namespace aloft {
namespace {

constexpr int kAlive = 7;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// In a process of its own: the signals, so many milliseconds apart; it ends with kAlive where they
// have left it alive and asked for the end.
[[noreturn]] void survive(int milliseconds, std::initializer_list<int> signals, int ignored = 0) {
  for (const int s : kSignals) std::signal(s, s == ignored ? SIG_IGN : SIG_DFL);
  const InterruptScope scope;
  bool is_first = true;
  for (const int s : signals) {
    if (!is_first) ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
    is_first = false;
    std::raise(s);
  }
  ::_exit(InterruptScope::asked() ? kAlive : 1);
}

TEST(InterruptDeathTest, WhatComesTwiceWithinMillisecondsAsksOnce) {
  for (const int s : kSignals) {
    EXPECT_EXIT(survive(0, {s, s, s}), testing::ExitedWithCode(kAlive), "") << s;
    EXPECT_EXIT(survive(0, {s, SIGTERM, SIGHUP}), testing::ExitedWithCode(kAlive), "") << s;
  }
  EXPECT_EXIT(survive(200, {SIGTERM, SIGTERM, SIGHUP}), testing::ExitedWithCode(kAlive), "");
}

TEST(InterruptDeathTest, TheFirstIsAnsweredAtOnce) {
  const auto in_step = [](int signal) {
    const InterruptScope scope;
    InterruptScope::finishes(1204);
    std::raise(signal);
    ::_exit(kAlive);
  };
  EXPECT_EXIT(in_step(SIGINT), testing::ExitedWithCode(kAlive),
              "SIGINT: finishing step 1204, then saving; Ctrl-C again ends now, without saving\n");
  EXPECT_EXIT(in_step(SIGTERM), testing::ExitedWithCode(kAlive),
              "SIGTERM: finishing step 1204, then saving; another one ends now, without saving\n");
  EXPECT_EXIT(survive(0, {SIGINT, SIGINT}), testing::ExitedWithCode(kAlive), "coming to an end");
}

TEST(InterruptDeathTest, ASecondOneThatIsMeantEndsAtOnce) {
  EXPECT_EXIT(survive(100, {SIGINT, SIGINT}), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(survive(100, {SIGTERM, SIGINT}), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(survive(1100, {SIGTERM, SIGTERM}), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(survive(1100, {SIGINT, SIGHUP}), testing::KilledBySignal(SIGHUP), "");
}

TEST(InterruptDeathTest, WhatWasIgnoredStaysIgnoredBehindTheFirst) {
  EXPECT_EXIT(survive(100, {SIGTERM, SIGINT, SIGINT}, SIGINT), testing::ExitedWithCode(kAlive), "");
  EXPECT_EXIT(survive(1100, {SIGINT, SIGTERM}, SIGTERM), testing::ExitedWithCode(kAlive), "");
}

}  // namespace
}  // namespace aloft
