// What a run would refuse when it begins is refused where the recipe is read: `aloft train
// --print-config` shows none that cannot be trained.
#include "recipe/recipe_schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "recipe/recipe.h"
#include "recipe_mistakes.h"

namespace aloft {
namespace {

using Set = std::vector<Override>;

void expect_mistake(const Set& set, const char* part) {
  const std::string said = mistakes_of("", set);
  EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST(RecipeSchedule, ThatDoesNotWorkOutIsAMistake) {
  const Override drops{"schedule.kind", "multi-step"};
  expect_mistake({drops}, "milestones must be some updates, rising");
  expect_mistake({drops, {"schedule.milestones", "[5, 3]"}},
                 "schedule.milestones = [5,3] (--set): milestones must be");
  EXPECT_EQ(mistakes_of("", {drops, {"schedule.milestones", "[3, 5]"}}), "none");
  for (const char* kind : {"cosine", "linear", "step", "polynomial"}) {
    const Override falls{"schedule.kind", kind};
    expect_mistake({falls, {"schedule.final_lr", "0.1"}}, "above optimizer.lr = 0.001 (default)");
    EXPECT_EQ(mistakes_of("", {falls, {"schedule.final_lr", "0.001"}}), "none") << kind;
  }
  expect_mistake({{"schedule.kind", "exponential"}, {"schedule.gamma", "0"}}, "gamma must lie");
  expect_mistake({{"schedule.kind", "polynomial"}, {"schedule.power", "0"}}, "power must lie");
  const Override descent{"schedule.kind", "wsd"};
  expect_mistake({descent, {"schedule.decay", "9"}, {"train.steps", "4"}},
                 "decay must not be longer than the run");
  // Beside other mistakes, which may be the reason.
  const std::string both = mistakes_of("", {drops, {"train.batch", "0"}});
  EXPECT_EQ(both.find("milestones"), std::string::npos) << both;
}

// What the data decides is judged when the data is known.
TEST(RecipeSchedule, OfEpochsHasNoLengthYet) {
  const Set wsd = {{"schedule.kind", "wsd"}, {"schedule.decay", "5000"}, {"train.epochs", "2"}};
  Recipe r = parse_recipe("", "r.toml", wsd);
  r.train.steps = 100;
  EXPECT_FALSE(schedule_problem(r));
  try {
    schedule_rule(r);
    FAIL() << "a descent longer than the run";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0715");
  }
  r.train.steps = 6000;
  EXPECT_EQ(schedule_rule(r).total, 6000);
  Set other = wsd;
  other.push_back({"schedule.steps", "100"});
  expect_mistake(other, "decay must not be longer");
}

TEST(RecipeSchedule, AnEarlyUpdateClipsNoGroupAndScalesNoLoss) {
  const std::string early = "[optimizer]\nupdate = \"early\"\nclip_norm = 0\n";
  const std::string group = early + "[[optimizer.groups]]\nparameters = [\"*.bias\"]\n";
  const std::string said = mistakes_of(group + "clip_norm = 2\n");
  EXPECT_NE(said.find("optimizer.groups[0].clip_norm is 2"), std::string::npos) << said;
  EXPECT_EQ(mistakes_of(group + "lr = 0.1\n"), "none");
  for (const char* level : {"adaptive:fp16", "auto:fp16", "adaptive loss_scale=dynamic"}) {
    const std::string scaled = mistakes_of(early, {{"precision", level}});
    EXPECT_NE(scaled.find("cannot skip a step"), std::string::npos) << level << scaled;
  }
  EXPECT_NE(mistakes_of(early, {{"precision", "adaptive:fp16"}}).find("use adaptive:bf16"),
            std::string::npos);
  for (const char* level : {"adaptive", "adaptive:bf16", "auto"})
    EXPECT_EQ(mistakes_of(early, {{"precision", level}}), "none") << level;
  const std::string split =
      mistakes_of("[optimizer]\nmaster = \"split\"\n", {{"precision", "adaptive:fp16"}});
  EXPECT_NE(split.find("use precision adaptive:bf16"), std::string::npos) << split;
}

// What the optimizer would refuse when it is made.
TEST(RecipeSchedule, AMasterOfAFormulaOfTensorsIsWhole) {
  const Override bf16{"precision", "O2:bf16"}, split{"optimizer.master", "split"};
  for (const char* kind : {"muon", "adafactor", "adamp"})
    expect_mistake({bf16, split, {"optimizer.kind", kind}}, "whose masters are f32");
  for (const char* kind : {"adam", "lamb", "novograd"})
    EXPECT_EQ(mistakes_of("", {bf16, split, {"optimizer.kind", kind}}), "none") << kind;
}

}  // namespace
}  // namespace aloft
