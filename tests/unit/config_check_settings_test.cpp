// Hyper-parameters of others, read and held against each other: values that are told otherwise and
// are the same, and what another value means.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "files/zip_writer.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/pack.h"
#include "observe/config_check/setting_values.h"
#include "observe/config_check/settings_file.h"
#include "temporary_folder.h"
#include "told_settings.h"

namespace aloft::config_check {
namespace {

using Json = nlohmann::ordered_json;

// What is refused, or "" where nothing is.
std::string saw(const std::string& text, const std::string& name) {
  try {
    static_cast<void>(parse_settings(text, name));
    return "";
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0844");
    return e.what();
  }
}

Level level(const std::vector<Setting>& a, const std::vector<Setting>& b,
            std::string* advice = nullptr) {
  Side x, y;
  x.settings["static"] = a, y.settings["static"] = b;
  const Section s = check_settings(x, y);
  if (advice) *advice = s.findings.at(0).advice;
  return s.findings.at(0).level;
}

struct Both {
  Setting a{"a", nullptr, ""}, b{"b", nullptr, ""};
  bool same() const { return same_value(a, b) && same_value(b, a); }
};

// As JSON or YAML has them.
bool same(Json x, Json y) {
  Both both;
  both.a.value = std::move(x), both.b.value = std::move(y);
  return both.same();
}
// The first as a script has it, and both.
bool same_as_script(const std::string& x, Json y) {
  Both both;
  both.a.value = x, both.b.value = std::move(y);
  both.a.is_untyped = true;
  return both.same();
}
bool same_in_scripts(const std::string& x, const std::string& y) {
  Both both;
  both.a.value = x, both.b.value = y;
  both.a.is_untyped = both.b.is_untyped = true;
  return both.same();
}

TEST(ConfigCheckValues, ListsInAnyNotation) {
  const Json list = {0.9, 0.95};
  for (const char* text : {"[0.9, 0.95]", "(0.90,0.95)", "0.9,0.95", "0.9 0.95", "[0.9 9.5e-1]",
                           " 0.9 ,\t0.95 ", "['0.9', \"0.95\"]", "(0.9, 0.95,)"})
    EXPECT_TRUE(same_as_script(text, list)) << text;
  EXPECT_TRUE(same_in_scripts("0.9,0.95", "0.9 0.95"));
  EXPECT_TRUE(same_in_scripts("[a, b]", "a b"));
  EXPECT_TRUE(same_as_script("a b", {"a", "b"}));
  EXPECT_TRUE(same_as_script("3", Json::array({3})));  // a script has no other list of one
  EXPECT_TRUE(same("[0.9, 0.95]", "0.9,0.95"));
  EXPECT_TRUE(same_as_script("[[1, 2], [3, 4]]", {{1, 2}, {3.0, 4}}));
  EXPECT_FALSE(same_as_script("0.9 0.95", {0.95, 0.9}));
  EXPECT_FALSE(same_as_script("0.9 0.95 1", list));
  EXPECT_FALSE(same_as_script("0.9", list));
  EXPECT_FALSE(same_as_script("", Json::array()));
  EXPECT_FALSE(same_in_scripts("a b", "a,b"));  // a name may have blanks
  EXPECT_FALSE(same_in_scripts("1,5", "1.5"));
  EXPECT_FALSE(same_in_scripts("1,000", "1000"));
  EXPECT_FALSE(same_in_scripts("[3]", "3"));
  EXPECT_FALSE(same(Json::array({3}), 3));
  EXPECT_FALSE(same(Json::array({3}), "3"));
  EXPECT_FALSE(same_in_scripts("[1],[2]", "1,2"));
  EXPECT_FALSE(same_as_script(std::string(100000, '['), list));
}

TEST(ConfigCheckValues, WhatIsQuotedIsNoListOfWords) {
  const Json words = {"a", "b"};
  EXPECT_FALSE(same("a b", words));  // of JSON, or quoted in YAML
  EXPECT_TRUE(same("a,b", words));
  EXPECT_TRUE(same("0.9 0.95", {0.9, 0.95}));
  EXPECT_TRUE(same("a b", "a b"));
  const auto is_list = [&](const std::string& text) {
    const Side side = script("python t.py --x " + text + "\n");
    return same_value(side.settings.at("static").at(0), {"x", words}) &&
           same_value({"x", words}, side.settings.at("static").at(0));
  };
  EXPECT_TRUE(is_list("a b"));
  EXPECT_TRUE(is_list("\"a\" \"b\""));
  EXPECT_TRUE(is_list("\"[a, b]\""));
  EXPECT_FALSE(is_list("\"a b\""));
  EXPECT_EQ(script("python t.py --x='a b'").settings.at("static").at(0).is_quoted, true);
  const Setting numbers = script("python t.py --x '0.9 0.95'").settings.at("static").at(0);
  EXPECT_TRUE(same_value(numbers, {"x", {0.9, 0.95}}));
  // A pack keeps that.
  const TemporaryFolder folder;
  write_pack(folder / "a.zip", script("python t.py --x 'a b' --y a b"));
  const std::vector<Setting> read = read_pack(folder / "a.zip").settings.at("static");
  EXPECT_FALSE(same_value(read.at(0), {"x", words}));
  EXPECT_TRUE(same_value(read.at(1), {"y", words}));
}

TEST(ConfigCheckValues, VersionsAreTexts) {
  const auto are_same = [](const char* key, const Json& x, const Json& y) {
    return same_value({key, x, "", false, {}, true}, {key, y, "", false, {}, true});
  };
  for (const char* key : {"version", "env.torch_version", "torch-version"}) {
    EXPECT_FALSE(are_same(key, "1.10", "1.1")) << key;
    EXPECT_FALSE(are_same(key, "1.10", 1.1)) << key;
    EXPECT_TRUE(are_same(key, "1.10", "1.10")) << key;
    EXPECT_TRUE(are_same(key, "2", 2)) << key;
  }
  EXPECT_TRUE(are_same("conversion", "1.10", "1.1"));
  Side a, b;
  a.packages["torch"] = "1.10", b.packages["torch"] = "1.1";
  EXPECT_EQ(check_packages(a, b).level(), Level::Error);
}

// yaml-cpp makes bytes of these escapes that are not UTF-8.
TEST(ConfigCheckValues, EscapesOfYamlThatAreNoText) {
  for (const char* text : {R"(x: "a\Nb")", R"(x: ["\_"])", R"("\N": 1)"}) try {
      parse_settings(text, "a.yaml");
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("u0085"), std::string::npos) << e.what();
    }
  EXPECT_NO_THROW(parse_settings(R"(x: "a\u0085b")", "a.yaml"));
}

TEST(ConfigCheckValues, InfinityOfYaml) {
  const auto yaml = [](const std::string& text) {
    return parse_settings("x: " + text, "a.yaml").settings.at("static").at(0);
  };
  for (const char* text : {".inf", "+.inf", ".INF", "inf", "\"inf\""}) {
    EXPECT_TRUE(same_value(yaml(text), {"x", "inf", "", false, {}, true})) << text;
    EXPECT_FALSE(same_value(yaml(text), {"x", nullptr})) << text;
    EXPECT_FALSE(same_value(yaml(text), yaml("-.inf"))) << text;
  }
  EXPECT_TRUE(same_value(yaml("-.Inf"), {"x", "-inf", "", false, {}, true}));
  EXPECT_TRUE(same_value(yaml(".nan"), yaml(".NaN")));
  EXPECT_EQ(value_text(yaml(".inf")), "inf");
  EXPECT_TRUE(same_value(
      yaml(".inf"), parse_settings(R"({"x": Infinity})", "a.json").settings.at("static").at(0)));
  const TemporaryFolder folder;
  Side side;
  side.settings["static"] = {yaml(".inf"), {"y", Json::array({1.0, -HUGE_VAL})}};
  write_pack(folder / "a.zip", side);
  const std::vector<Setting> read = read_pack(folder / "a.zip").settings.at("static");
  EXPECT_TRUE(same_value(read.at(0), side.settings["static"][0]));
  EXPECT_TRUE(same_value(read.at(1), side.settings["static"][1]));
}

TEST(ConfigCheckValues, NumbersInAnyNotation) {
  EXPECT_TRUE(same_as_script("0x10", 16));
  EXPECT_TRUE(same_as_script("-0X1f", -31));
  EXPECT_TRUE(same_as_script("1e-4", 0.0001));
  EXPECT_TRUE(same_in_scripts("1e-4", "0.00010"));
  EXPECT_TRUE(same_in_scripts("+1e3", "1000.0"));
  EXPECT_TRUE(same_in_scripts("-0", "0.0"));
  EXPECT_TRUE(same_in_scripts("1e-400", "10E-401"));
  EXPECT_TRUE(same("0.0001", 1e-4));  // quoted in a file
  EXPECT_TRUE(same("inf", "inf"));
  EXPECT_TRUE(same_in_scripts("nan", "nan"));
  EXPECT_FALSE(same_as_script("0x10", 10));
  EXPECT_FALSE(same_in_scripts("0x1g", "0x1G"));
  EXPECT_FALSE(same_in_scripts("1e-400", "0"));
  EXPECT_FALSE(same_in_scripts("1e-400", "1e-401"));
  EXPECT_FALSE(same_in_scripts("0.1", "0.10000000000000002"));
  EXPECT_FALSE(same_in_scripts("1", "0.99999999999999999999"));
  EXPECT_FALSE(same_in_scripts("1e", "1"));
  EXPECT_FALSE(same_in_scripts(".", "0"));
}

// A double has no place for them.
TEST(ConfigCheckValues, WholeNumbersAreComparedExactly) {
  const std::pair<std::string, std::string> cases[] = {
      {"9007199254740993", "9007199254740992"},
      {"9007199254740993", "9007199254740992.0"},
      {"9007199254740993", "9007199254740992.5"},
      {"18446744073709551615", "18446744073709551614"},
      {"122807528840384100672342137672332424406", "122807528840384100672342137672332424407"},
      {"1000000000000000000000000000001", "1e30"}};
  for (const auto& [x, y] : cases) {
    EXPECT_FALSE(same_in_scripts(x, y)) << x;
    EXPECT_TRUE(same_in_scripts(x, x + ".0")) << x;
    for (const char* name : {"a.yaml", "a.json"}) {
      const auto of_file = [name](const std::string& number) {
        return parse_settings("{\"seed\": " + number + "}", name).settings.at("static");
      };
      EXPECT_EQ(level(of_file(x), of_file(y)), Level::Error) << name << ", " << x;
      EXPECT_EQ(level(of_file(x), of_file(x)), Level::Pass) << name << ", " << x;
      EXPECT_TRUE(same_value(of_file(x)[0], {"seed", x + ".0", "", false, {}, true})) << name << x;
    }
  }
  EXPECT_FALSE(same_text("18446744073709551615", "18446744073709551614"));
}

TEST(ConfigCheckValues, TrueAndFalseInAnyWord) {
  for (const char* word : {"yes", "True", "ON", "1"}) {
    EXPECT_TRUE(same_as_script(word, true)) << word;
    EXPECT_TRUE(same(word, true)) << word;
    EXPECT_FALSE(same_as_script(word, false)) << word;
  }
  for (const char* word : {"no", "false", "Off", "0"}) EXPECT_TRUE(same(word, false)) << word;
  EXPECT_TRUE(same(1, true));
  EXPECT_TRUE(same_in_scripts("false", "0"));
  // Only beside one that is true or false.
  EXPECT_FALSE(same("yes", "on"));
  EXPECT_FALSE(same("yes", 1));
  EXPECT_FALSE(same(2, true));
  EXPECT_FALSE(same(1.0, true));
  EXPECT_FALSE(same("truely", true));
  EXPECT_FALSE(same(nullptr, false));
  // --bf16 beside bf16: 1.
  EXPECT_TRUE(same_value({"bf16", true}, {"bf16", 1}));
  EXPECT_FALSE(same_value({"bf16", true}, {"fp16", true}));
}

TEST(ConfigCheckValues, TextsAreTexts) {
  EXPECT_FALSE(same("1.0", "1"));
  EXPECT_FALSE(same(Json::array({"1.0", "2"}), Json::array({"1", "2"})));
  EXPECT_FALSE(same("true", "1"));
  EXPECT_TRUE(same("1.0", 1));
  // A script quotes no numbers, but what names a file is none.
  EXPECT_TRUE(same_in_scripts("1.0", "1"));
  Both both;
  both.a = {"ckpt-path", "1.0"}, both.b = {"ckpt_path", "1"};
  both.a.is_untyped = both.b.is_untyped = true;
  EXPECT_FALSE(both.same());
  // A pack says of ours which texts are of a script; of msprobe's nobody knows.
  const TemporaryFolder folder;
  Side side = script("python t.py --lr 1e-4");
  side.settings["static"].push_back({"version", "1.0"});
  side.settings["static"].push_back({"decides", 1, "", false, false});
  write_pack(folder / "a.zip", side);
  const std::vector<Setting> read = read_pack(folder / "a.zip").settings.at("static");
  EXPECT_TRUE(read.at(0).is_untyped);
  EXPECT_FALSE(read.at(1).is_untyped);
  EXPECT_EQ(read.at(2).is_harmless, std::optional(false));
  ZipWriter zip(folder / "msprobe.zip");
  zip.add("hyperparameters/hyperparameters_static.json", R"({"lr": "1e-4", "bf16": "--seed"})");
  zip.finish();
  const Side theirs = read_pack(folder / "msprobe.zip");
  EXPECT_TRUE(theirs.settings.at("static").at(0).is_untyped);
  EXPECT_EQ(value_of(theirs, "bf16"), "true");  // it takes the option behind a flag for its value
}

TEST(ConfigCheckYaml, OneDocument) {
  const auto problem = [](const std::string& text) { return saw(text, "a.yaml"); };
  EXPECT_NE(problem("lr: 1\n---\nlr: 2\n").find("a second document"), std::string::npos);
  EXPECT_NE(problem("lr: 1\n---\nlr: 2\n").find("a.yaml:2"), std::string::npos);
  EXPECT_NE(problem("---\n---\nlr: 2\n"), "");
  EXPECT_NE(problem("- a\n...\n--- {b: 1}\n"), "");
  EXPECT_EQ(problem("# settings\n---\nlr: 1\n...\n"), "");
  EXPECT_EQ(problem("%YAML 1.2\n---\nlr: 1\n---\n# nothing\n"), "");
  EXPECT_EQ(problem(""), "");
}

TEST(ConfigCheckYaml, AKeyComesOnce) {
  const std::string twice = saw("a: {b: 1}\nlr: 1\nwd: 2\nlr: 3\n", "a.yaml");
  EXPECT_NE(twice.find("\"lr\" twice"), std::string::npos);
  EXPECT_NE(twice.find("a.yaml:4"), std::string::npos);
  EXPECT_NE(twice.find("line 2"), std::string::npos);
  EXPECT_NE(saw("a: {b: 1, b: 1}\n", "a.yml"), "");
  EXPECT_EQ(saw("a: {b: 1}\nc: {b: 1}\n", "a.yaml"), "");
  // JSON's readers take the last.
  EXPECT_EQ(value_of(parse_settings(R"({"lr": 1, "wd": 2, "lr": 3})", "a.json"), "lr"), "3");
}

TEST(ConfigCheckYaml, MergedMappings) {
  const Side side = parse_settings(R"(one: &one {lr: 1, wd: 2}
two: &two {<<: *one, lr: 3}
both: {<<: [*two, *one], eps: 4}
late:
  lr: 5
  <<: *two
"<<": 6
)",
                                   "a.yaml");
  EXPECT_EQ(value_of(side, "two.lr"), "3");
  EXPECT_EQ(value_of(side, "two.wd"), "2");
  EXPECT_EQ(value_of(side, "both.lr"), "3");  // the first of a list
  EXPECT_EQ(value_of(side, "both.wd"), "2");
  EXPECT_EQ(value_of(side, "late.lr"), "5");  // what stands there beats what is taken over
  EXPECT_EQ(value_of(side, "<<"), "6");       // in quotes it is a key like others
  EXPECT_NE(saw("a: &a 1\nb: {<<: *a}\n", "a.yaml").find("no mapping"), std::string::npos);
  EXPECT_NE(saw("a: &a {x: 1}\nb: {<<: *a, <<: *a}\n", "a.yaml"), "");
  EXPECT_NE(saw("b: {<<: *a}\n", "a.yaml"), "");
}

TEST(ConfigCheckYaml, OnlyFilesAreRead) {
  const TemporaryFolder folder;
  make_folder(folder / "folder.yaml");
  ASSERT_EQ(::mkfifo((folder / "pipe.yaml").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder / "pipe.sh").c_str(), 0600), 0);
  for (const char* name : {"folder.yaml", "pipe.yaml", "pipe.sh"}) try {
      static_cast<void>(read_settings(folder / name));
      ADD_FAILURE() << name;
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0601") << name;
    }
}

TEST(ConfigCheckMeaning, WhatNamesDataOrWeightsIsNotHarmless) {
  std::string advice;
  for (const char* key : {"data_path", "data.train_file", "tokenizer_path", "checkpoint_path",
                          "model_name_or_path", "checkpoint_dir", "data-dir"}) {
    EXPECT_EQ(level({{key, "a"}}, {{key, "b"}}, &advice), Level::Error) << key;
    EXPECT_NE(advice.find("other data or weights"), std::string::npos) << key;
  }
  for (const char* key : {"update_interval", "lr_decay_interval"})
    EXPECT_EQ(level({{key, 1}}, {{key, 2}}), Level::Error) << key;
  for (const char* key : {"output_dir",
                          "out_dir",
                          "log_interval",
                          "wandb_project",
                          "tensorboard_dir",
                          "save",
                          "save_path",
                          "save_total_limit",
                          "always_save_checkpoint",
                          "logging_dir",
                          "report_to",
                          "local_rank",
                          "master_port",
                          "ddp_timeout",
                          "dataloader_pin_memory",
                          "plot_loss",
                          "push_to_hub",
                          "hub_model_id",
                          "overwrite_cache",
                          "per_device_eval_batch_size",
                          "evaluation_strategy",
                          "data_cache_path"}) {
    EXPECT_EQ(level({{key, "a"}}, {{key, "b"}}, &advice), Level::Pass) << key;
    EXPECT_EQ(advice, "nothing that is learnt depends on it") << key;
  }
}

// Sums may round otherwise; two runs that should learn the same may still be told so.
TEST(ConfigCheckMeaning, WhatMayRoundOtherwise) {
  std::string advice;
  for (const char* key : {"compile", "torch_compile", "device", "ddp_backend",
                          "distributed-backend", "dist_backend"}) {
    EXPECT_EQ(level({{key, "a"}}, {{key, "b"}}, &advice), Level::Warning) << key;
    EXPECT_NE(advice.find("may round otherwise"), std::string::npos) << key;
  }
}

// A worker of a loader draws its own random numbers.
TEST(ConfigCheckMeaning, WorkersMayMatter) {
  std::string advice;
  for (const char* key : {"num_workers", "dataloader-num-workers", "num_parallel_workers",
                          "data.persistent_workers"}) {
    EXPECT_EQ(level({{key, 1}}, {{key, 2}}, &advice), Level::Warning) << key;
    EXPECT_NE(advice.find("set it alike"), std::string::npos) << key;
  }
  EXPECT_EQ(level({{"num_workers", 1}}, {{"num_workers", 1}}), Level::Pass);
}

TEST(ConfigCheckMeaning, EvaluationsThatTheRateGoesBy) {
  std::string advice;
  EXPECT_EQ(level({{"eval_interval", 1}}, {{"eval_interval", 2}}), Level::Pass);
  EXPECT_EQ(level({{"eval_interval", 1}, {"scheduler", "cosine"}}, {{"eval_interval", 2}}),
            Level::Pass);
  EXPECT_EQ(level({{"eval_interval", 1}, {"exp_name", "plateau"}}, {{"eval_interval", 2}}),
            Level::Pass);
  EXPECT_EQ(level({{"eval_interval", 1}},
                  {{"eval_interval", 2}, {"optim.scheduler", "ReduceLROnPlateau"}}, &advice),
            Level::Error);
  EXPECT_NE(advice.find("goes by evaluations"), std::string::npos);
  EXPECT_EQ(level({{"eval_steps", 1}, {"load_best_model_at_end", true}}, {{"eval_steps", 2}}),
            Level::Error);
}

// Where the one side knows that it is learnt, the other's word is not enough.
TEST(ConfigCheckMeaning, LengthsOfRuns) {
  const auto steps = [](Json count, std::optional<bool> is_harmless) {
    return std::vector<Setting>{{"train.steps", std::move(count), "", false, is_harmless}};
  };
  std::string advice;
  EXPECT_EQ(level(steps(1, true), steps(2, true), &advice), Level::Warning);
  EXPECT_NE(advice.find("end before the other"), std::string::npos);
  EXPECT_EQ(level(steps(1, true), steps(2, false), &advice), Level::Error);
  EXPECT_NE(advice.find("schedule"), std::string::npos);
  EXPECT_EQ(level(steps(1, true), {{"max_steps", 2}}), Level::Error);
  EXPECT_EQ(level({{"epochs", 1}}, {{"num_epochs", 2}}), Level::Error);
  EXPECT_EQ(level({{"warmup", 1}}, {{"lr_warmup_iters", 2}}), Level::Error);
}

TEST(ConfigCheckMeaning, DataThatNobodyHasLookedAt) {
  Side a, b;
  a.settings["static"] = {{"data.text", "a.txt", "", false, true}};
  b.settings["static"] = {{"data.text", "b.txt", "", false, true}};
  EXPECT_EQ(check_settings(a, b).level(), Level::Error);
  a.batches.resize(1), b.batches.resize(1);
  EXPECT_EQ(check_settings(a, b).level(), Level::Warning);
  EXPECT_NE(check_settings(a, b).findings[0].advice.find("batches"), std::string::npos);
}

// RMSprop's weight of the old squares is alpha in PyTorch and rho in TensorFlow.
TEST(ConfigCheckForms, NumbersOfRmsprop) {
  const std::vector<Setting> recipe = {
      {"optimizer.alpha", 0.9}, {"optimizer.eps", 0.001}, {"optimizer.momentum", 0.5}};
  const auto level_of = [&](const char* name, const char* value) {
    Side x, y;
    x.settings["static"] = recipe, y.settings["static"] = {{name, value}};
    for (const Finding& f : check_settings(x, y).findings)
      if (!f.a_name.empty() && !f.b_name.empty()) return f.level;
    return Level::Warning;  // no pair
  };
  for (const char* name : {"rho", "rmsprop-alpha", "rmsprop_decay", "optimizer.rho"}) {
    EXPECT_EQ(level_of(name, "0.9"), Level::Pass) << name;
    EXPECT_EQ(level_of(name, "0.99"), Level::Error) << name;
  }
  EXPECT_EQ(level_of("opt-eps", "0.001"), Level::Pass);
  EXPECT_EQ(level_of("rmsprop_momentum", "0.5"), Level::Pass);
}

// One number of a list is what another program has a name of its own for.
TEST(ConfigCheckForms, BetasOneByOne) {
  const std::vector<Setting> betas = {{"optimizer.betas", Json::array({0.9, 0.95})}};
  const std::vector<Setting> right = {{"adam_beta1", "0.9"}, {"adam_beta2", "0.95"}};
  const std::vector<Setting> wrong = {{"adam_beta1", "0.9"}, {"adam_beta2", "0.999"}};
  const auto levels = [](const std::vector<Setting>& a, const std::vector<Setting>& b) {
    Side x, y;
    x.settings["static"] = a, y.settings["static"] = b;
    std::vector<Level> all;
    for (const Finding& f : check_settings(x, y).findings) all.push_back(f.level);
    return all;
  };
  EXPECT_EQ(levels(betas, right), (std::vector{Level::Pass, Level::Pass}));
  EXPECT_EQ(levels(right, betas), (std::vector{Level::Pass, Level::Pass}));
  EXPECT_EQ(levels(betas, wrong), (std::vector{Level::Pass, Level::Error}));
  EXPECT_EQ(levels({{"betas", "(0.9, 0.999)"}}, wrong), (std::vector{Level::Pass, Level::Pass}));
  EXPECT_EQ(levels(betas, betas), (std::vector{Level::Pass}));
}

TEST(ConfigCheckForms, TypesInOtherWords) {
  const auto type = [](const Setting& a, const Setting& b) { return level({a}, {b}); };
  EXPECT_EQ(type({"bf16.enabled", true}, {"mixed_precision", "bf16"}), Level::Pass);
  EXPECT_EQ(type({"fp16.enabled", true}, {"trainer.precision", "16-mixed"}), Level::Pass);
  EXPECT_EQ(type({"fp16.enabled", true}, {"precision", "bf16-mixed"}), Level::Error);
  EXPECT_EQ(type({"fp16", false}, {"torch_dtype", "float32"}), Level::Pass);
  EXPECT_EQ(type({"fp16", "true"}, {"precision", "32-true"}), Level::Error);
  std::string advice;
  EXPECT_EQ(level({{"fp16", true}}, {{"bf16", true}}, &advice), Level::Error);
  EXPECT_EQ(advice, "A computes in f16, B in bf16: set both to one type");
  // Weights in f32, products in bf16: the low type is the one that is computed in.
  EXPECT_EQ(level({{"dtype", "float32"}, {"bf16", true}}, {{"precision", "bf16-mixed"}}),
            Level::Pass);
}

TEST(ConfigCheckForms, LastPartsThatSayNothingAlone) {
  Side a, b;
  a.settings["static"] = {{"optimizer.kind", "adamw"}, {"precision.type", "bf16"}};
  b.settings["static"] = {{"optimizer.type", "AdamW"}, {"scheduler.type", "WarmupLR"}};
  const std::vector<Finding> all = check_settings(a, b).findings;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].b_name, "optimizer.type");
  EXPECT_EQ(all[0].level, Level::Pass);  // AdamW is adamw
  EXPECT_EQ(all[1].b_name, "");          // the type of numbers is no optimizer's
  EXPECT_EQ(all[2].b_name, "scheduler.type");
}

TEST(ConfigCheckForms, NamesOfOptimizers) {
  for (const char* name : {"adamw", "AdamW", "torch.optim.AdamW", "adamw_torch_fused", "adamw_hf"})
    EXPECT_TRUE(same_value({"optimizer.kind", "adamw"}, {"optim", name})) << name;
  EXPECT_FALSE(same_value({"optimizer.kind", "adamw"}, {"optim", "adam"}));
  for (const char* name : {"rmsprop", "RMSprop", "torch.optim.RMSprop", "nn.RMSProp"})
    EXPECT_TRUE(same_value({"optimizer.kind", "rmsprop"}, {"opt", name})) << name;
  EXPECT_FALSE(same_value({"file", "adamw"}, {"file", "AdamW"}));
}

}  // namespace
}  // namespace aloft::config_check
