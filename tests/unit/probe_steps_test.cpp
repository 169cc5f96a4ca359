// Which steps of a run are looked at, and which programs that needs: src/recipe/probe_steps.cpp.
#include <gtest/gtest.h>

#include <set>

#include "recipe/recipe.h"

namespace aloft {
namespace {

using enum Look;

TEST(ProbeSteps, NothingIsLookedAtUnlessItIsAsked) {
  EXPECT_EQ(look_at({}, 0), Nothing);
  EXPECT_EQ(looks_of({}), std::vector<Look>{Nothing});
}

TEST(ProbeSteps, AreThoseThatTheRecipeSays) {
  ProbeSection p{.task = "statistics"};
  for (const std::int64_t step : {0, 1, 17}) EXPECT_EQ(look_at(p, step), Statistics);
  EXPECT_EQ(looks_of(p), std::vector<Look>{Statistics});
  p.every = 10;
  EXPECT_EQ(look_at(p, 20), Statistics);
  EXPECT_EQ(look_at(p, 21), Nothing);
  p.histograms = true;
  EXPECT_EQ(look_at(p, 16), Exponents);  // although 10 does not divide it
  EXPECT_EQ(look_at(p, 20), Statistics);
  p.at = {3, 32};
  EXPECT_EQ(look_at(p, 3), Statistics);
  EXPECT_EQ(look_at(p, 32), Exponents);
  EXPECT_EQ(look_at(p, 20), Nothing);
}

// Other tasks count no exponents, whatever the key says that a recipe has for another one.
TEST(ProbeSteps, CountExponentsOfTasksThatHaveThem) {
  for (const char* task : {"overflow", "acc_check", "structure"}) {
    const ProbeSection p{.task = task, .histograms = true};
    EXPECT_EQ(look_at(p, 16), Statistics) << task;
    EXPECT_EQ(looks_of(p), std::vector<Look>{Statistics}) << task;
  }
}

// The programs are those that some step runs, no more and no less.
TEST(ProbeSteps, NeedTheProgramsThatSomeStepRuns) {
  for (const bool histograms : {false, true})
    for (const std::int64_t every : {1, 2, 3, 4})
      for (const std::int64_t counted : {1, 2, 3, 4})
        for (const std::vector<std::int64_t>& at : {std::vector<std::int64_t>{}, {1, 6}, {0}}) {
          ProbeSection p{.task = "statistics"};
          p.every = every;
          p.histograms = histograms;
          p.histogram_every = counted;
          p.at = at;
          std::set<Look> run;
          for (std::int64_t step = 0; step < 24; ++step) run.insert(look_at(p, step));
          const std::vector<Look> looks = looks_of(p);
          EXPECT_EQ(std::set<Look>(looks.begin(), looks.end()), run)
              << every << " " << histograms << " " << counted << " " << at.size();
          EXPECT_EQ(looks.size(), run.size());
          EXPECT_TRUE(!run.contains(Nothing) || looks.front() == Nothing);
        }
}

// Where the probe looks, the monitor reads of its program; elsewhere it has one of its own.
TEST(ProbeSteps, OfTheMonitorAddOneProgramAtMost) {
  MonitorSection m{.on = true, .every = 10};
  EXPECT_EQ(look_at({}, 10, m), Trends);
  EXPECT_EQ(look_at({}, 11, m), Nothing);
  EXPECT_EQ(looks_of({}, m), (std::vector<Look>{Nothing, Trends}));
  const ProbeSection op{.task = "statistics", .level = "op"};
  EXPECT_EQ(look_at(op, 10, m), Statistics);
  m.on = false;
  EXPECT_EQ(look_at({}, 10, m), Nothing);
}

TEST(ProbeSteps, OfTheMonitorNeedTheProgramsThatSomeStepRuns) {
  for (const char* task : {"none", "statistics"})
    for (const bool histograms : {false, true})
      for (const std::int64_t every : {1, 2, 3, 4})
        for (const std::int64_t counted : {1, 2, 3})
          for (const std::int64_t monitored : {1, 2, 3, 6})
            for (const std::vector<std::int64_t>& at : {std::vector<std::int64_t>{}, {1, 6}}) {
              ProbeSection p{.task = task};
              p.every = every;
              p.histograms = histograms;
              p.histogram_every = counted;
              p.at = at;
              MonitorSection m{.on = true, .every = monitored};
              std::set<Look> run;
              for (std::int64_t step = 0; step < 48; ++step) {
                run.insert(look_at(p, step, m));
                EXPECT_TRUE(!monitors(m, step) || look_at(p, step, m) != Nothing);
              }
              const std::vector<Look> looks = looks_of(p, m);
              EXPECT_EQ(std::set<Look>(looks.begin(), looks.end()), run)
                  << task << every << histograms << counted << monitored << at.size();
              EXPECT_EQ(looks.size(), run.size());
              EXPECT_TRUE(!run.contains(Nothing) || looks.front() == Nothing);
            }
}

}  // namespace
}  // namespace aloft
