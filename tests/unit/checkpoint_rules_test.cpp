// The rules of saving that need no disk: what is healthy, what stays, when it is time, what a
// manifest says.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "checkpoint/best_validation.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/health.h"
#include "checkpoint/keep_policy.h"
#include "models/gpt2.h"
#include "models/model_json.h"
#include "train/saver.h"

namespace aloft {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Health, FollowsTheLoss) {
  Health h(scalar::no_scaler());
  EXPECT_EQ(h.problem(), "");
  h.step(4.0, 1, false);
  EXPECT_EQ(h.problem(), "");
  EXPECT_EQ(h.problem(9.0), "");  // twice the first one plus one
  EXPECT_NE(h.problem(9.1).find("far above the 4"), std::string::npos);
  EXPECT_NE(h.problem(kNan).find("NaN"), std::string::npos);
  EXPECT_NE(h.problem(kInf).find("infinite"), std::string::npos);
  h.step(54112, 1, false);
  EXPECT_NE(h.problem(), "");
  h.step(3.0, 1, false);
  EXPECT_EQ(h.problem(2.5), "");
  EXPECT_EQ(h.start_loss(), 4.0);
}

// A negative log-likelihood of a density, say.
TEST(Health, ALossBelowZeroMayRiseToo) {
  Health h(scalar::no_scaler());
  for (const double loss : {-5.0, -4.0, 0.9}) {
    h.step(loss, 1, false);
    EXPECT_EQ(h.problem(), "");
  }
  h.step(1.1, 1, false);
  EXPECT_NE(h.problem().find("far above the -5"), std::string::npos);
}

TEST(Health, ARunThatEndsAboveItsStartHasLearntNothing) {
  EXPECT_EQ(setback_of_loss(9.0, {}, {}), "");
  EXPECT_EQ(setback_of_loss(9.0, 5.6, 5.55), "");  // chance
  const auto says = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  const std::string start = " loss of 7.5 and began with a training loss of 5.55";
  says(setback_of_loss(7.0, 7.5, 5.55), "a validation" + start);
  says(setback_of_loss(7.5, {}, 5.55), "a training" + start);
}

TEST(Health, AValidationLossAboveTheTrainingLossAtTheStartIsNoSetback) {
  EXPECT_EQ(setback_of_loss(2.4, 5.53, 5.4), "");  // validation holds something harder
  EXPECT_EQ(setback_of_loss(5.4, 5.53, 5.4), "");  // a run of one step
  const std::string far = setback_of_loss(2.4, 7.5, 5.4);
  EXPECT_EQ(far.find("learnt nothing"), std::string::npos) << far;
  EXPECT_NE(far.find("validation loss of 7.5"), std::string::npos) << far;
  EXPECT_NE(far.find("training loss of 2.4"), std::string::npos) << far;
}

TEST(Health, ASetbackIsOfTheWeightsThatTheRunEndsWith) {
  Health h(scalar::no_scaler());
  h.step(5.4, 1, false);
  const auto ends = [&](double validation, std::optional<double> now) {
    return h.setback(5.4, validation, [=] { return now; });
  };
  EXPECT_EQ(ends(5.53, 5.3), "");
  EXPECT_NE(ends(20.0, 19.0).find("learnt nothing"), std::string::npos);  // by its one update
  EXPECT_EQ(ends(20.0, 5.3).find("learnt nothing"), std::string::npos);
  EXPECT_NE(ends(20.0, {}), "");
}

TEST(Health, ARunThatIsResumedIsMeasuredByItsOwnStart) {
  Health h(scalar::no_scaler(), 4.0);
  h.step(20.0, 1, false);
  EXPECT_NE(h.problem(), "");
}

// Its loss says nothing about weights that it left as they were.
TEST(Health, AStepThatWasSkippedCountsOnlyWhereTheStateIsUnknown) {
  Health h(scalar::no_scaler());
  h.step(4.0, 1, false);
  h.step(kNan, 1, true);
  EXPECT_EQ(h.problem(3.9), "");
  EXPECT_NE(h.problem(), "");
}

TEST(Health, TheSearchOfALossScaleIsHealthyAndHopelessSkipsAreNot) {
  Health search(scalar::dynamic_scaler());
  double scale = 65536;
  for (int i = 0; i < 16; ++i, scale /= 2) search.step(4.0, scale, true);
  EXPECT_EQ(search.problem(4.0), "");
  for (int i = 0; i <= kStraySkips; ++i) search.step(4.0, 1, true);  // it can fall no further
  EXPECT_NE(search.problem(4.0).find("5 steps in a row"), std::string::npos);
  const auto [start, skips] = search.kept();
  Health resumed(scalar::dynamic_scaler(), start, skips);
  EXPECT_EQ(resumed.problem(4.0), search.problem(4.0));
  search.step(4.0, 1, false);
  EXPECT_EQ(search.problem(4.0), "");

  Health lost(scalar::dynamic_scaler());
  lost.step(4.0, 65536, false);
  for (int i = 0; i <= kStraySkips; ++i) lost.step(kNan, 65536 >> i, true);
  EXPECT_NE(lost.problem(4.0), "");  // no scale is found where the loss itself is not finite
}

// An optimizer without a loss scale, and gradients that a GradScaler divides.
TEST(Health, TheSearchOfALoopsOwnScalerIsHealthyToo) {
  Health search(scalar::no_scaler());
  for (double scale = 65536; scale > 1; scale /= 2) {
    search.step(4.0, scale, true);
    EXPECT_EQ(search.problem(4.0), "") << scale;
  }
  for (int i = 0; i <= kStraySkips; ++i) search.step(4.0, 1.0 / (2 << i), true);
  EXPECT_NE(search.problem(4.0).find("5 steps in a row"), std::string::npos);
  for (const double loss : {4.0, kNan}) {  // a scale that stays, and losses that no scale helps
    Health lost(scalar::no_scaler());
    lost.step(4.0, 65536, false);
    for (int i = 0; i <= kStraySkips + 1; ++i)
      lost.step(loss, std::isnan(loss) ? 65536 >> i : 65536, true);
    EXPECT_NE(lost.problem(4.0), "") << loss;
  }
}

TEST(Health, AValidationLossThatIsNotFiniteIsAProblemUntilOneIs) {
  Health h(scalar::no_scaler());
  h.step(4.0, 1, false);
  h.validation(kNan);
  EXPECT_NE(h.problem(4.0).find("validation"), std::string::npos);
  h.validation(100.0);  // a model that knows its text too well is healthy
  EXPECT_EQ(h.problem(4.0), "");
}

using Steps = std::vector<std::int64_t>;

TEST(KeepPolicy, TheNewestStay) {
  EXPECT_EQ(checkpoints_to_remove({{1}, {2}, {3}, {4}}, {.newest = 2, .best = 0}, 4),
            (Steps{1, 2}));
  EXPECT_EQ(checkpoints_to_remove({{4}, {2}, {3}, {1}}, {.newest = 1, .best = 0}, 4),
            (Steps{1, 2, 3}));
  EXPECT_EQ(checkpoints_to_remove({{1}, {2}}, {.newest = 0, .best = 0}, 2), Steps{});
  EXPECT_EQ(checkpoints_to_remove({}, {}, 2), Steps{});
}

TEST(KeepPolicy, TheNewestHealthyOneStaysBesideAnyNumberOfOthers) {
  EXPECT_EQ(checkpoints_to_remove({{1}, {2}, {3, false}, {4, false}}, {.newest = 1, .best = 0}, 4),
            (Steps{1, 3}));
  EXPECT_EQ(checkpoints_to_remove({{3, false}, {4, false}}, {.newest = 1}, 4), (Steps{3}));
  EXPECT_EQ(checkpoints_to_remove({{2}, {3, false}, {4}}, {.newest = 1, .best = 0}, 4),
            (Steps{2, 3}));
}

// The example of a run whose best model was pruned.
TEST(KeepPolicy, TheBestStayAndSoDoThoseOfEvery) {
  const std::vector<KeptCheckpoint> run = {{200, true, 2.3},  {400, true, 2.04}, {600, true, 2.04},
                                           {1000, true, 2.4}, {1100, true, 2.5}, {1200, true, 2.6}};
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 3, .best = 1}, 1200), (Steps{200, 600}));
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 1, .best = 2}, 1200), (Steps{200, 1000, 1100}));
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 1, .best = 0, .every = 600}, 1200),
            (Steps{200, 400, 1000, 1100}));
  EXPECT_EQ(
      checkpoints_to_remove({{1, false, 0.1}, {2, true, 3}, {3}, {4}}, {.newest = 1, .best = 1}, 4),
      (Steps{1, 3}));  // what diverged is never the best
}

// A run that may go back has two places for it, whatever stops and the clock have saved since.
TEST(KeepPolicy, PlacesToGoBackToStay) {
  const std::vector<KeptCheckpoint> run = {{100}, {200}, {300}, {310}, {320}, {330}};
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 2, .best = 0, .back = 2, .back_every = 100}, 330),
            (Steps{100, 310}));
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 1, .best = 0, .back = 2}, 330),
            (Steps{100, 200, 300, 310}));
  EXPECT_EQ(checkpoints_to_remove({{100}, {200, false}, {300}, {400, false}},
                                  {.newest = 1, .best = 0, .back = 2, .back_every = 100}, 400),
            (Steps{200}));
}

// While it is not past its trouble, what lies before the place that it went back to is all of it.
TEST(KeepPolicy, WhatLiesBeforeTheRunsReturnStays) {
  const std::vector<KeptCheckpoint> run = {{100}, {200}, {300}, {400}, {500}};
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 1, .best = 0, .gone_back_to = 200}, 500),
            (Steps{300, 400}));
}

TEST(KeepPolicy, WhatWasKeptForGoodStaysUnderOtherRules) {
  std::vector<KeptCheckpoint> run = {{100}, {150}, {200}, {250, false}, {300}};
  for (KeptCheckpoint& c : run) c.for_good = c.step < 300 && c.step != 150;
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 1, .best = 0}, 300), (Steps{150, 250}));
}

// Losses on other data say nothing about which is better: each has its best.
TEST(KeepPolicy, TheBestOfEachValidationDataStay) {
  const std::vector<KeptCheckpoint> run = {
      {1, true, 0.5, false, "old"}, {2, true, 0.4, false, "old"}, {3, true, 2.5, false, "new"},
      {4, true, 2.4, false, "new"}, {5, true, 2.6, false, "new"}, {6}};
  EXPECT_EQ(checkpoints_to_remove(run, {.newest = 1, .best = 1}, 6), (Steps{1, 3, 5}));
}

TEST(KeepPolicy, WhatWasJustSavedStays) {
  EXPECT_EQ(checkpoints_to_remove({{3}, {12}}, {.newest = 1, .best = 0}, 3), Steps{});
}

TEST(Saving, ByTheClockAndNeverMostOfTheTime) {
  EXPECT_FALSE(is_due_by_clock(299, 5, 0.1));
  EXPECT_TRUE(is_due_by_clock(300, 5, 0.1));
  EXPECT_FALSE(is_due_by_clock(1e9, 0, 0.1));
  EXPECT_FALSE(is_due_by_clock(399, 5, 20));  // saving takes long: 1 part in 20 at most
  EXPECT_TRUE(is_due_by_clock(400, 5, 20));
}

TEST(BestValidation, CountsWhatIsNotBetter) {
  std::optional<BestValidation> best;
  best = after_evaluation(best, kNan, 1);
  EXPECT_FALSE(best || patience_is_over(best, 1));
  best = after_evaluation(best, 2.0, 2);
  EXPECT_EQ(best, (BestValidation{2.0, 2, 0}));
  best = after_evaluation(best, 2.0, 4);
  best = after_evaluation(best, kNan, 6);
  EXPECT_EQ(best, (BestValidation{2.0, 2, 2}));
  EXPECT_TRUE(patience_is_over(best, 2));
  EXPECT_FALSE(patience_is_over(best, 3) || patience_is_over(best, 0));
  EXPECT_EQ(after_evaluation(best, 1.9, 8), (BestValidation{1.9, 8, 0}));
  EXPECT_EQ(after_evaluation(best, 2.1, 7, false), best);  // one more, at the end of a run
  EXPECT_EQ(after_evaluation(best, 1.9, 7, false), (BestValidation{1.9, 7, 0}));
}

TEST(CheckpointNames, OnlyThoseThatSavingWrites) {
  EXPECT_EQ(step_in_name("step-000012"), 12);
  EXPECT_EQ(step_in_name("step-1234567"), 1234567);
  for (const char* other :
       {"step-", "step-12", "step-0000012", "step-000012.aside-1", "step-00001x", "step--00012",
        ".step-000012", "step-99999999999999999999"})
    EXPECT_EQ(step_in_name(other), std::nullopt) << other;
}

Manifest example() {
  Manifest m;
  m.meta.run = "0123456789abcdef";
  m.meta.step = 400;
  m.meta.data_position = 40;
  m.meta.tokens = 25600;
  m.meta.time_s = 12.062500000000001;
  m.meta.policy = "O2:fp16";
  m.meta.missing_types = {"f16"};
  m.meta.model = {{"family", "gpt2"}, {"norm_eps", 1e-5}};
  m.meta.problem = "the loss is NaN";
  m.meta.last_loss = 2.5;
  m.meta.start_loss = 4.158883083359672;
  m.meta.validation_loss = 2.04;
  m.meta.best = {2.04, 400, 0};
  m.meta.draws = {{{"h.0.drop", "dropout"}, 2}, {{"", "random_normal"}, 1}};
  m.files = {{"model.safetensors", {4096, 0xfedcba9876543210}}, {"state.safetensors", {0, 7}}};
  return m;
}

TEST(ManifestText, ReadsBackAsItWas) {
  const Manifest m = example(), again = parse_manifest(manifest_text(m), "there");
  EXPECT_EQ(manifest_text(again), manifest_text(m));
  EXPECT_EQ(again.files, m.files);
  EXPECT_EQ(again.meta.best, m.meta.best);
  EXPECT_EQ(again.meta.start_loss, m.meta.start_loss);
  EXPECT_EQ(again.meta.draws, m.meta.draws);
  EXPECT_EQ(again.meta.missing_types, m.meta.missing_types);
  EXPECT_EQ(again.meta.data_position, 40u);
  EXPECT_FALSE(again.meta.healthy());
}

TEST(ManifestText, BytesOfAPathThatAreNotUtf8AreReplacedBeforeTheyAreHashed) {
  Manifest m = example();
  m.meta.recipe["data"]["text"] = nlohmann::json::array({"caf\xe9.txt"});
  m.meta.data["tokenizer"] = "\xff";
  const std::string text = manifest_text(m);
  const Manifest again = parse_manifest(text, "there");
  EXPECT_EQ(manifest_text(again), text);
  EXPECT_EQ(again.meta.recipe["data"]["text"][0], "caf\xef\xbf\xbd.txt");
}

// Every byte, with every bit flipped: it is refused, or says what it said.
TEST(ManifestText, NoFlippedBitIsBelieved) {
  const std::string text = manifest_text(example());
  int refused = 0;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      try {
        EXPECT_EQ(manifest_text(parse_manifest(damaged, "there")), text) << at << " " << bit;
      } catch (const DataError& e) {
        EXPECT_EQ(e.code(), "E0641");
        ++refused;
      }
    }
  EXPECT_GT(refused, static_cast<int>(text.size()) * 5);
  for (std::size_t cut = 0; cut + 2 < text.size(); ++cut)
    EXPECT_THROW(parse_manifest(text.substr(0, cut), "there"), DataError) << cut;
}

std::string refusal_of(const nlohmann::json& j) {
  try {
    parse_manifest(j.dump(), "there");
  } catch (const DataError& e) {
    return e.what();
  }
  return "";
}

// Of a program before this one: no hash of itself, no health; types and ranges hold all the same.
TEST(ManifestText, TheFormatBeforeIsReadAndItsRangesHold) {
  nlohmann::json old = nlohmann::json::parse(manifest_text(example()));
  old["format"] = 1;
  EXPECT_NE(refusal_of(old).find("xxh3"), std::string::npos);  // who has a hash is held to it
  for (const char* key :
       {"xxh3", "run", "problem", "last_loss", "start_loss", "validation_loss", "best"})
    old.erase(key);
  const CheckpointMeta meta = parse_manifest(old.dump(), "there").meta;
  EXPECT_EQ(meta.data_position, 40u);
  EXPECT_TRUE(meta.healthy() && meta.run.empty() && !meta.best);
  const std::pair<const char*, nlohmann::json> wrong[] = {{"data_position", -1},
                                                          {"data_position", 1e300},
                                                          {"data_position", 40.0},
                                                          {"data_position", "40"},
                                                          {"data_position", UINT64_MAX},
                                                          {"step", -1},
                                                          {"step", nullptr},
                                                          {"tokens", -5},
                                                          {"time_s", "long"},
                                                          {"time_s", -1},
                                                          {"policy", 7},
                                                          {"files", nlohmann::json::array()},
                                                          {"format", 0},
                                                          {"format", 3},
                                                          {"format", 1e9}};
  for (const auto& [key, value] : wrong) {
    nlohmann::json bad = old;
    bad[key] = value;
    EXPECT_NE(refusal_of(bad).find(key), std::string::npos) << key << " " << value;
  }
  for (const char* key :
       {"step", "data_position", "tokens", "time_s", "policy", "model", "files"}) {
    nlohmann::json bad = old;
    bad.erase(key);
    EXPECT_NE(refusal_of(bad).find(key), std::string::npos) << key;
  }
}

TEST(ModelJson, EveryNumberHasItsRange) {
  models::Gpt2Config c;
  c.layers = 2;
  c.heads = 4;
  c.dim = 32;
  const nlohmann::json good = models::json_of(models::spec_of("gpt2", c));
  EXPECT_EQ(models::json_of(models::model_of_json(good)), good);
  const std::pair<const char*, nlohmann::json> wrong[] = {
      {"layers", 1000000000}, {"layers", 0},      {"heads", 3},      {"heads", -4},
      {"dim", 1e18},          {"dim", 1.5},       {"vocab", -1},     {"vocab", UINT64_MAX},
      {"context", nullptr},   {"context", "256"}, {"hidden", -1},    {"dropout", 1},
      {"norm_eps", 0},        {"bias", "yes"},    {"family", "bert"}};
  for (const auto& [key, value] : wrong) {
    nlohmann::json bad = good;
    bad[key] = value;
    EXPECT_THROW(models::model_of_json(bad), DataError) << key << " " << value;
  }
  EXPECT_THROW(models::model_of_json(nlohmann::json::array()), DataError);
  try {  // a program's own loop describes no model
    models::model_of_json(nlohmann::json());
    ADD_FAILURE();
  } catch (const DataError& e) {
    EXPECT_NE(std::string_view(e.what()).find("models::load_state()"), std::string_view::npos);
  }
}

}  // namespace
}  // namespace aloft
