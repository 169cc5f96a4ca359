// What is chosen by measurement is chosen once: a run that goes on, and one that is to choose as
// another did, take what is recorded, whatever a measurement would say now.
#include "plan/choices.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/choices_json.h"
#include "e2e/refusal.h"
#include "e2e/small_run.h"
#include "recipe/missing_types.h"
#include "run/recorded_choices.h"

namespace aloft::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(Choices, AreMeasuredOnce) {
  int measured = 0;
  const auto measure = [&] { return MeasuredChoice{"tile " + std::to_string(++measured), "fast"}; };
  Choices choices;
  EXPECT_EQ(choices.choose("tile", measure).value, "tile 1");
  EXPECT_EQ(choices.choose("tile", measure).value, "tile 1");
  EXPECT_EQ(choices.choose("pack", measure).value, "tile 2");
  Choices recorded(choices.all());
  EXPECT_EQ(recorded.choose("tile", measure), (MeasuredChoice{"tile 1", "fast"}));
  EXPECT_EQ(measured, 2);
  EXPECT_EQ(recorded.values(),
            (std::map<std::string, std::string>{{"pack", "tile 2"}, {"tile", "tile 1"}}));
  EXPECT_EQ(choices_of_json(json_of(choices))->all(), choices.all());
}

TEST(SettlePrecision, TakesWhatIsRecordedOrSaysWhyNot) {
  const PrecisionRecipe automatic = parse_precision("auto");
  const auto never = []() -> MeasuredRates { throw InternalError("it is measured"); };
  const auto recorded = [](const char* value) {
    const std::string name(kPrecisionChoice);
    return Choices(std::map<std::string, MeasuredChoice>{{name, {value, "it was faster"}}});
  };
  Choices low = recorded("O2:bf16"), wide = recorded("O0"), odd = recorded("O2:bf16 deny_ops=add");
  const PrecisionRecipe taken = settle_precision(automatic, low, {never});
  EXPECT_EQ(print_precision(taken), "O2:bf16");
  EXPECT_EQ(taken.auto_reason, "it was faster");
  EXPECT_EQ(settle_precision(taken, low, {never}), taken);  // not even for a warning
  EXPECT_EQ(settle_precision(automatic, wide, {never}).level, Level::O0);
  EXPECT_EQ(
      print_precision(settle_precision(parse_precision("O1:auto deny_ops=add"), low, {never})),
      "O1:bf16 deny_ops=add");

  const Capability narrow{.stores_bf16 = false};
  const std::string why = what_of([&] { settle_precision(automatic, low, {never}, narrow); });
  for (const char* part : {"E0829", "precision = O2:bf16", "it was faster", "stores bf16", "--out"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
  EXPECT_EQ(settle_precision(automatic, wide, {never}, narrow).level, Level::O0);
  const std::string other = what_of([&] { settle_precision(automatic, odd, {never}); });
  EXPECT_NE(other.find("E0829"), std::string::npos) << other;
  Choices escape = recorded("O7\x1b[2J\nerror");
  const std::string shown = what_of([&] { settle_precision(automatic, escape, {never}); });
  EXPECT_NE(shown.find("precision = O7\\x1b[2J\\nerror"), std::string::npos) << shown;
}

TEST(CheckChoices, RefusesWhatNobodyWouldTake) {
  const auto choices = [](const char* name) {
    return Choices(std::map<std::string, MeasuredChoice>{{name, {"O2:bf16", ""}}});
  };
  const auto said = [&](const char* name, const char* asked) {
    return what_of([&] { check_choices(choices(name), parse_precision(asked)); });
  };
  for (const char* asked : {"auto", "O1:auto"}) EXPECT_EQ(said("precision", asked), "");
  for (const char* asked : {"O2:bf16", "O0", "fp16"})
    EXPECT_NE(said("precision", asked).find("leaves nothing to choose"), std::string::npos);
  EXPECT_NE(said("ti\nle", "auto").find("ti\\nle"), std::string::npos);
  check_choices({}, parse_precision("O0"));
}

TEST(MissingTypes, AreThoseThatThePrecisionNames) {
  use_cpu();
  const auto missing = [](const char* precision, const Capability& here) {
    return missing_types(parse_precision(precision), here);
  };
  using Names = std::vector<std::string>;
  const Capability wide{false, false, false, false}, slow{.computes_bf16 = false};
  EXPECT_EQ(missing("O2:bf16", {}), Names{});
  EXPECT_EQ(missing("O0", wide), Names{});
  EXPECT_EQ(missing("O1:fp16", wide), Names{"f16"});
  EXPECT_EQ(missing("O2:bf16 backward=fp16", wide), (Names{"bf16", "f16"}));
  EXPECT_EQ(missing("O3:bf16", slow), Names{"products of bf16"});
  EXPECT_EQ(missing("O3:fp16", slow), Names{});
  EXPECT_EQ(type_differences({"bf16"}, {"bf16"}), Names{});
  EXPECT_EQ(type_differences({}, {"bf16"}).size(), 1u);
  EXPECT_EQ(type_differences({"fp16"}, {"bf16"}).size(), 2u);
}

class ChosenRun : public SmallRun {
 protected:
  const std::vector<std::string> automatic_ = {"precision.level=auto"};
  static MeasuredRates low_pays() { return {100, 300, "pretended"}; }
  static MeasuredRates low_loses() { return {100, 50, "pretended"}; }

  TrainResult train(const std::string& out, MeasuredRates (*rates)(), bool resume = false,
                    const Choices& choices = {}) {
    aloft::TrainOptions options;
    options.out = folder_ / out;
    options.resume = resume;
    options.quiet = true;
    options.choices = choices;
    options.measure = [this, rates] {
      ++measured_;
      return rates();
    };
    return run_training(recipe(automatic_), options);
  }
  json record(const std::string& out) const {
    return json::parse(read_file(folder_ / out / "run.json", 1 << 26));
  }
  void change(const std::string& out, const json& choices) const {
    json record = this->record(out);
    record["choices"] = choices;
    folder_.put(folder_ / out / "run.json", record.dump());
  }
  // A copy of "straight" as it was behind its first checkpoint.
  void cut(const std::string& out) const {
    fs::copy(folder_ / "straight", folder_ / out, fs::copy_options::recursive);
    for (const char* step : {"step-000008", "step-000012"}) fs::remove_all(checkpoint(out, step));
  }

  int measured_ = 0;
};

TEST_F(ChosenRun, AMeasurementThatHasFlippedChangesNoBit) {
  train("straight", low_pays);
  EXPECT_EQ(measured_, 1);
  const json begun = record("straight");
  EXPECT_EQ(begun["policy"], "O2:bf16");
  EXPECT_EQ(begun["choices"]["precision"]["value"], "O2:bf16");
  const std::string because = begun["choices"]["precision"]["because"];
  EXPECT_NE(because.find("3.00x"), std::string::npos) << because;

  for (const char* out : {"goes_on", "record_lost"}) {
    cut(out);
    if (out == std::string("record_lost")) fs::remove(folder_ / out / "run.json");
    const TrainResult resumed = train(out, low_loses, true);
    EXPECT_EQ(resumed.steps, 8) << out;
    expect_same_state("straight", out);
    EXPECT_EQ(record(out)["choices"], begun["choices"]) << out;
    EXPECT_EQ(record(out)["signature"], begun["signature"]) << out;
  }
  EXPECT_EQ(measured_, 1);

  // It would have been another precision; not so for a run that is to choose as the first did.
  train("anew", low_loses);
  EXPECT_EQ(measured_, 2);
  EXPECT_EQ(record("anew")["choices"]["precision"]["value"], "O0");
  EXPECT_NE(record("anew")["signature"], begun["signature"]);
  train("again", low_loses, false, choices_of_run(folder_ / "straight"));
  EXPECT_EQ(measured_, 2);
  expect_same_state("straight", "again");
  EXPECT_EQ(record("again")["signature"], begun["signature"]);
}

TEST_F(ChosenRun, ARunOfAProgramBeforeRecordedItsChoiceInItsRecipe) {
  train("straight", low_pays);
  cut("before");
  json record = this->record("before");
  record.erase("choices");
  folder_.put(folder_ / "before" / "run.json", record.dump());
  train("before", low_loses, true);
  expect_same_state("straight", "before");
  json straight = this->record("straight")["choices"];
  EXPECT_EQ(straight["precision"]["asked"], "auto");
  straight["precision"].erase("asked");  // which nobody recorded then
  EXPECT_EQ(this->record("before")["choices"], straight);
  EXPECT_EQ(measured_, 1);
}

TEST_F(ChosenRun, ADamagedChoiceIsRefusedByName) {
  train("straight", low_pays);
  cut("run");
  change("run", {{"precision", {{"value", "O7"}, {"because", "it was edited"}}}});
  std::string why = what_of([&] { train("run", low_pays, true); });
  for (const char* part : {"E0829", "precision = O7", "it was edited", "O2:bf16"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
  for (const json& choices : {json::array(), json{{"precision", "O2"}}, json{{"precision", {}}}}) {
    change("run", choices);
    why = what_of([&] { train("run", low_pays, true); });
    EXPECT_NE(why.find("E0643"), std::string::npos) << why;
  }
  EXPECT_EQ(measured_, 1);
  run("named", {"train.steps=1"});
  why = what_of([&] { choices_of_run(folder_ / "named"); });
  EXPECT_NE(why.find("E0829"), std::string::npos) << why;
  change("run", {{"precision", {{"value", "O3:fp16"}, {"because", "it was edited"}}}});
  why = what_of([&] { choices_of_run(folder_ / "run"); });
  EXPECT_NE(why.find("not one that it can have made"), std::string::npos) << why;
}

TEST_F(ChosenRun, WithoutItsDamagedRecordItGoesOn) {
  train("straight", low_pays);
  cut("run");
  change("run", json::array());
  const std::string why = what_of([&] { train("run", low_pays, true); });
  EXPECT_NE(why.find("move it away"), std::string::npos) << why;
  fs::rename(folder_ / "run" / "run.json", folder_ / "run.json.damaged");
  train("run", low_loses, true);
  expect_same_state("straight", "run");
}

}  // namespace
}  // namespace aloft::e2e
