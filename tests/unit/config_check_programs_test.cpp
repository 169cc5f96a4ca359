// How programs of others say what a recipe says: files of Python, names of schedules, warm-ups as a
// share of the run.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "base/error.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/setting_values.h"
#include "observe/config_check/settings_file.h"

namespace aloft::config_check {
namespace {

using Settings = std::vector<Setting>;

std::string python(const std::string& text, const std::string& key) {
  const Side side = parse_settings(text, "a.py");
  for (const Setting& s : side.settings.at("static"))
    if (s.key == key) return value_text(s);
  return "nothing";
}

// What is refused, or "" where nothing is.
std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_settings(text, "a.py"));
    return "";
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0844");
    return e.what();
  }
}

std::vector<Finding> findings(const Settings& a, const Settings& b) {
  Side x, y;
  x.settings["static"] = a, y.settings["static"] = b;
  return check_settings(x, y).findings;
}

Setting of_recipe(const char* key, nlohmann::ordered_json value) {
  Setting s{key, std::move(value)};
  s.is_harmless = false;
  return s;
}

TEST(ConfigCheckPython, Literals) {
  const std::string text = R"(# nanoGPT
import time
learning_rate = 6e-4 # as in the paper
gradient_accumulation_steps = 5 * 8
max_iters = 600_000
large = 18446744073709551617
decay_lr=True; bias = False
dataset = 'openweb' "text"
betas = (0.9,
         0.95)  # over two lines
pair = 1, 2
rate: float = .5
nothing = None
opt = {"lr": -1e-3, "names": ["a#b", 'c']}
base = 0x10
)";
  for (const auto& [key, value] : {std::pair("learning_rate", "0.0006"),
                                   {"gradient_accumulation_steps", "40"},
                                   {"max_iters", "600000"},
                                   {"large", "18446744073709551617"},
                                   {"decay_lr", "true"},
                                   {"bias", "false"},
                                   {"dataset", "openwebtext"},
                                   {"betas", "[0.9, 0.95]"},
                                   {"pair", "[1, 2]"},
                                   {"rate", "0.5"},
                                   {"nothing", "null"},
                                   {"opt.lr", "-0.001"},
                                   {"opt.names", "[\"a#b\", \"c\"]"},
                                   {"base", "0x10"}})
    EXPECT_EQ(python(text, key), value) << key;
  EXPECT_EQ(parse_settings(text, "a.py").settings.at("static")[0].place, "a.py:3");
}

TEST(ConfigCheckPython, WhatIsNoLiteralIsNotThere) {
  const std::string text = R"(
run = 'ft-' + str(time.time())
lr = 1e-3
lr = base * 2
steps = 10
steps += 5
def train():
    batch = 3
"""
doc = 7
"""
keys = [k for k in globals()]
path = f'{base}/x'
seed = 1
seed = 2
a, b = 1, 2
call(c=3)
d = 1
e = 1
f = 1
g = 1
h = 1
i = 1
j = 1
d, x = 2, 3
e = f = 5
(g, [h]) = 7, [8]
for i in range(3): pass
call(j := 3)
)";
  for (const char* key : {"run", "lr", "steps", "batch", "doc", "keys", "path", "a", "b", "c", "d",
                          "e", "f", "g", "h", "i", "j"})
    EXPECT_EQ(python(text, key), "nothing") << key;
  EXPECT_EQ(python(text, "seed"), "2");
}

TEST(ConfigCheckPython, WhatIsNotClosedIsRefused) {
  EXPECT_NE(refusal("a = 1\nb = 'x\nc = 2\n").find("a.py:2"), std::string::npos);
  EXPECT_NE(refusal("a = 1\n\nb = [1,\n").find("a.py:3"), std::string::npos);
  EXPECT_NE(refusal("a = " + std::string(1000, '[') + std::string(1000, ']')), "");
  EXPECT_NE(refusal("a = '\xff'\n"), "");
  EXPECT_EQ(refusal("\xef\xbb\xbf"
                    "a = 1\r\n"),
            "");
}

// An example's length is data.length where a recipe says it; its model may have a longer context.
TEST(ConfigCheckLengths, ARecipesLengthIsWhatProgramsCallABlock) {
  const Settings recipe = {of_recipe("model.context", 1024), of_recipe("data.length", 512)};
  for (const char* key : {"block_size", "seq_length", "max_seq_length", "cutoff_len"}) {
    const std::vector<Finding> all = findings(recipe, {{key, 512}});
    ASSERT_EQ(all.size(), 2u) << key;
    EXPECT_EQ(all[1].b_name, key);
    EXPECT_EQ(all[1].level, Level::Pass) << key;
    EXPECT_EQ(findings(recipe, {{key, 1024}}).at(1).level, Level::Error) << key;
    // Without it examples are as long as the context.
    const Settings whole = {of_recipe("model.context", 1024), of_recipe("data.length", 0)};
    EXPECT_EQ(findings(whole, {{key, 1024}}).at(0).b_name, key);
    EXPECT_EQ(findings(whole, {{key, 512}}).at(0).level, Level::Error) << key;
  }
  EXPECT_EQ(findings(recipe, {{"n_positions", 1024}}).at(0).b_name, "n_positions");
}

// What a model's folder says is not missing on a side that names the same model.
TEST(ConfigCheckModels, TheFolderThatTheOtherSideNamesToo) {
  Setting layers = of_recipe("model.layers", 12);
  layers.place = "/models/gpt2/config.json";
  const Settings recipe = {of_recipe("model.init", "/models/gpt2"), layers};
  for (const auto& [name, level, count] : {std::tuple("/models/gpt2", Level::Pass, 1u),
                                           {"openai-community/gpt2", Level::Warning, 1u},
                                           {"models/gpt2/", Level::Warning, 1u},
                                           {"gpt2-large", Level::Error, 2u}}) {
    const std::vector<Finding> all = findings(recipe, {{"model_name_or_path", name}});
    ASSERT_EQ(all.size(), count) << name;
    EXPECT_EQ(all[0].level, level) << name;
    EXPECT_EQ(all[0].matched, "synonym") << name;
  }
}

TEST(ConfigCheckSchedules, NamesOfOtherPrograms) {
  for (const auto& [own, other] : {std::pair("cosine", "WarmupCosineLR"),
                                   {"linear", "WarmupDecayLR"},
                                   {"constant", "WarmupLR"},
                                   {"cosine-restarts", "cosine_with_restarts"},
                                   {"wsd", "warmup_stable_decay"},
                                   {"inverse-sqrt", "inverse_sqrt"},
                                   {"cosine", "torch.optim.lr_scheduler.CosineAnnealingLR"}}) {
    for (const char* key : {"lr_scheduler_type", "scheduler.type", "lr_decay_style"}) {
      const auto found = findings({{"schedule.kind", own}}, {{key, other}});
      ASSERT_EQ(found.size(), 1u) << key;
      EXPECT_EQ(found[0].level, Level::Pass) << other;
    }
    EXPECT_EQ(findings({{"schedule.kind", "step"}}, {{"scheduler.type", other}})[0].level,
              Level::Error);
  }
  EXPECT_FALSE(same_value({"schedule.kind", "cosine"}, {"scheduler.type", "linear"}));
}

// A recipe without schedule.steps has the schedule fall over the whole run.
TEST(ConfigCheckSchedules, HowLongTheRateFalls) {
  Settings recipe = {of_recipe("schedule.steps", 0), of_recipe("train.steps", 600)};
  for (const char* key : {"lr_decay_iters", "total_num_steps", "scheduler.params.total_num_steps"})
    for (const auto& [value, level] : {std::pair(600, Level::Pass), {500, Level::Error}}) {
      const auto found = findings(recipe, {{key, value}});
      EXPECT_EQ(found[0].a_name, "schedule.steps");
      EXPECT_EQ(found[0].b_name, key);
      EXPECT_EQ(found[0].level, level);
    }
  recipe[0].value = 500;
  EXPECT_EQ(findings(recipe, {{"lr_decay_iters", 500}})[0].level, Level::Pass);
}

TEST(ConfigCheckSchedules, AWarmUpAsAShareOfTheRun) {
  const auto found = [](int warmup, const Settings& program) {
    return findings({of_recipe("schedule.warmup", warmup)}, program).at(0);
  };
  const Finding right = found(100, {{"warmup_ratio", 0.1}, {"max_steps", 1000}});
  EXPECT_EQ(right.level, Level::Pass);
  EXPECT_EQ(right.b_value, "0.1 x 1000 = 100");
  EXPECT_EQ(found(99, {{"warmup_ratio", 0.1}, {"max_steps", 1000}}).level, Level::Error);
  // Rounded up, as transformers does; a product that is whole but for its rounding is that number.
  EXPECT_EQ(found(4, {{"warmup_ratio", 0.1}, {"max_steps", 31}}).level, Level::Pass);
  EXPECT_EQ(found(3, {{"warmup_ratio", 0.1}, {"max_steps", 30}}).level, Level::Pass);
  // Steps that are said come before a share.
  EXPECT_EQ(found(7, {{"warmup_ratio", 0.1}, {"max_steps", 1000}, {"warmup_steps", 7}}).level,
            Level::Pass);
  EXPECT_EQ(found(0, {{"warmup_ratio", 0}, {"warmup_steps", 0}}).level, Level::Pass);
  // Of how many steps, nobody says.
  const Finding unknown = found(100, {{"num_train_epochs", 3}, {"warmup_ratio", 0.1}});
  EXPECT_EQ(unknown.level, Level::Warning);
  EXPECT_EQ(unknown.advice,
            "B does not say of how many steps: A's warm-up of 100 is that share of 1000 steps; "
            "check that B makes as many");
  // Of both sides a share: a number like others.
  EXPECT_EQ(findings({{"warmup_ratio", 0.1}}, {{"warmup-ratio", 0.1}})[0].level, Level::Pass);
  // Megatron's is of the steps in which the rate falls.
  EXPECT_EQ(
      found(50, {{"lr_warmup_fraction", 0.1}, {"lr_decay_iters", 500}, {"train_iters", 900}}).level,
      Level::Pass);
}

TEST(ConfigCheckSchedules, WhatTheProgramThatStartsItFillsIn) {
  const Settings recipe = {of_recipe("optimizer.lr", 0.001), of_recipe("schedule.warmup", 10),
                           of_recipe("train.steps", 100), of_recipe("train.batch", 4)};
  for (const char* key : {"optimizer.params.lr", "scheduler.params.warmup_num_steps",
                          "scheduler.params.total_num_steps", "train_micro_batch_size_per_gpu"})
    for (const Finding& f : findings(recipe, {{key, "auto"}})) {
      EXPECT_NE(f.level, Level::Error) << key;
      EXPECT_EQ(f.advice.find("to auto"), std::string::npos) << f.advice;
    }
}

TEST(ConfigCheckForms, ARecipeWithoutALowTypeHasNone) {
  const auto found =
      findings({of_recipe("precision.level", "O0"), of_recipe("precision.type", "bf16")},
               {of_recipe("precision.level", "O2"), of_recipe("precision.type", "f16")});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].a_name, "precision.level");
}

// A length in epochs of 0 is none: the recipe says its steps.
TEST(ConfigCheckForms, NoEpochs) {
  Setting none = of_recipe("train.epochs", 0.0);
  for (const bool is_default : {true, false}) {
    none.is_default = is_default;
    for (const Finding& f : findings({none}, {{"num_train_epochs", 3}})) {
      EXPECT_EQ(f.level, Level::Warning);
      EXPECT_EQ(f.a_name, "");
    }
  }
}

// The finding that has such a name on a side.
Finding of(const std::vector<Finding>& all, const std::string& name) {
  for (const Finding& f : all)
    if (f.a_name == name || f.b_name == name) return f;
  Finding none;
  none.advice = "nothing is said of " + name;
  return none;
}

// Hugging Face's max_steps of -1 leaves the length to the epochs.
TEST(ConfigCheckUnset, LengthsInEpochs) {
  const Settings recipe = {of_recipe("train.steps", 10), of_recipe("train.epochs", 0.0)};
  for (const Setting& none : {Setting{"max_steps", -1},
                              {"max_steps", 0},
                              {"max_steps", nullptr},
                              {"max-steps", "-1", "", false, {}, true}}) {
    const auto found = findings(recipe, {none, {"num_train_epochs", 3}});
    ASSERT_EQ(found.size(), 1u);  // the epochs are said there
    EXPECT_EQ(found[0].level, Level::Warning);
    EXPECT_EQ(found[0].advice, "B's " + none.key +
                                   " is not set, num_train_epochs = 3 decides: see that it comes "
                                   "to 10");
    EXPECT_EQ(findings({none}, {{"max_steps", -1}})[0].level, Level::Pass);
    EXPECT_EQ(findings({{"lr", 1}, none}, {{"lr", 1}}).size(), 1u);  // it says nothing
  }
  EXPECT_EQ(of(findings(recipe, {{"max_steps", -1}}), "max_steps").advice,
            "B's max_steps is not set, the number of epochs decides: see that it comes to 10");
  // Where steps are there, they overrule them.
  const auto steps = findings(recipe, {{"max_steps", 10}, {"num_train_epochs", 3.0}});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].level, Level::Pass);
  // A recipe in epochs has no steps of its own, and its schedule's are those.
  const Settings epochs = {of_recipe("train.steps", 400), of_recipe("train.epochs", 3.0),
                           of_recipe("schedule.steps", 0)};
  const auto same = findings(epochs, {{"max_steps", -1}, {"num_train_epochs", 3}});
  ASSERT_EQ(same.size(), 2u);
  EXPECT_EQ(same[0].level, Level::Pass);
  EXPECT_EQ(same[1].level, Level::Pass);
  EXPECT_EQ(of(findings(epochs, {{"lr_decay_iters", 500}}), "schedule.steps").advice,
            "A's schedule.steps is not set, train.epochs = 3.0 decides: see that it comes to 500");
}

TEST(ConfigCheckUnset, WhatIsOff) {
  const auto level_of = [](const char* key, const nlohmann::ordered_json& value, const char* other,
                           const nlohmann::ordered_json& second) {
    return findings({of_recipe(key, value)}, {{other, second}})[0].level;
  };
  for (const char* name :
       {"max_grad_norm", "gradient_clipping", "clip-grad", "grad_clip", "gradient_clip_val"})
    for (const nlohmann::ordered_json& off : {nlohmann::ordered_json(0), {0.0}, {-1}, {nullptr}}) {
      const nlohmann::ordered_json value = off.is_array() ? off[0] : off;
      EXPECT_EQ(level_of("optimizer.clip_norm", 0.0, name, value), Level::Pass) << name << value;
      EXPECT_EQ(level_of("optimizer.clip_norm", 1.0, name, value), Level::Error) << name << value;
    }
  const Finding clip = findings({of_recipe("optimizer.clip_norm", 1.0)}, {{"grad_clip", -1}})[0];
  EXPECT_EQ(clip.b_value, "-1 (0)");
  EXPECT_EQ(clip.advice, "set A's optimizer.clip_norm to 0, or B's grad_clip to 1.0");
  EXPECT_EQ(clip.row.at(4), "-1");  // msprobe's column has what stands there
  EXPECT_EQ(level_of("precision.loss_scale", "dynamic", "fp16.loss_scale", 0), Level::Pass);
  EXPECT_EQ(level_of("precision.loss_scale", "dynamic", "loss_scale", nullptr), Level::Pass);
  EXPECT_EQ(level_of("precision.loss_scale", "dynamic", "loss_scale", 1024), Level::Error);
  EXPECT_EQ(level_of("schedule.warmup", 0, "lr_warmup_iters", nullptr), Level::Pass);
  EXPECT_EQ(level_of("schedule.warmup", 5, "warmup_steps", nullptr), Level::Error);
  EXPECT_EQ(level_of("train.accumulate", 1, "gradient_accumulation_steps", "None"), Level::Pass);
  EXPECT_EQ(level_of("train.accumulate", 2, "gradient_accumulation_steps", "None"), Level::Error);
  EXPECT_EQ(level_of("model.window", 0, "sliding_window", nullptr), Level::Pass);
  EXPECT_EQ(level_of("model.window", 0, "sliding_window", 4096), Level::Error);
}

TEST(ConfigCheckUnset, WhatAnotherSettingHas) {
  const Settings heads = {of_recipe("model.heads", 8), of_recipe("model.kv_heads", 0)};
  const auto kv = [&](const Settings& b) { return of(findings(heads, b), "model.kv_heads"); };
  EXPECT_EQ(kv({{"num_attention_heads", 8}, {"num_key_value_heads", nullptr}}).level, Level::Pass);
  EXPECT_EQ(kv({{"num_attention_heads", 8}, {"num_key_value_heads", 8}}).level, Level::Pass);
  EXPECT_EQ(kv({{"num_attention_heads", 8}, {"num_key_value_heads", 2}}).advice,
            "set A's model.kv_heads to 2, or B's num_key_value_heads to 8");
  // Megatron's arguments have a number of groups, whether there are any or not.
  const Settings megatron = {{"num_attention_heads", 8}, {"num_query_groups", 1}};
  EXPECT_EQ(kv(megatron).level, Level::Error);
  Settings plain = megatron;
  plain.push_back({"group_query_attention", false});
  EXPECT_EQ(kv(plain).level, Level::Pass);
  // The rate falls over the run.
  const Settings recipe = {of_recipe("schedule.steps", 500), of_recipe("train.steps", 500)};
  const auto falls = [&](int steps) {
    return of(findings(recipe, {{"train_iters", steps}, {"lr_decay_iters", nullptr}}),
              "lr_decay_iters");
  };
  EXPECT_EQ(falls(500).level, Level::Pass);
  EXPECT_EQ(falls(600).level, Level::Error);
  EXPECT_EQ(falls(600).b_value, "null (600)");
  EXPECT_EQ(
      findings({{"seed", 3}, {"data_seed", nullptr}}, {{"seed", 3}, {"data_seed", 3}})[1].level,
      Level::Pass);
}

TEST(ConfigCheckUnset, NoSeed) {
  const auto found = [](const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
    return findings({{"seed", a}}, {{"seed", b}})[0];
  };
  EXPECT_EQ(found(nullptr, 42).level, Level::Error);
  EXPECT_NE(found(nullptr, 42).advice.find("give both one"), std::string::npos);
  EXPECT_EQ(found(-1, nullptr).level, Level::Warning);  // alike, and never the same
  EXPECT_EQ(found(0, 0).level, Level::Pass);
}

TEST(ConfigCheckUnset, WarmUps) {
  const auto found = [](int warmup, const Settings& program) {
    return findings({of_recipe("schedule.warmup", warmup)}, program).at(0);
  };
  // transformers 5: below 1 a share.
  EXPECT_EQ(found(50, {{"warmup_steps", 0.05}, {"max_steps", 1000}}).level, Level::Pass);
  EXPECT_EQ(found(51, {{"warmup_steps", 0.05}, {"max_steps", 1000}}).level, Level::Error);
  EXPECT_EQ(found(50, {{"warmup_steps", 50}, {"warmup_ratio", nullptr}}).level, Level::Pass);
  EXPECT_EQ(found(50, {{"warmup_steps", 0}, {"warmup_ratio", 0.05}, {"max_steps", -1}}).level,
            Level::Warning);
  // A share of some steps is one step at least.
  const Finding none = found(0, {{"warmup_ratio", 0.1}, {"max_steps", -1}});
  EXPECT_EQ(none.level, Level::Error);
  EXPECT_EQ(none.advice, "give both a warm-up of as many steps");
  // Steps come before a share on either side.
  const auto both = findings({{"warmup_steps", 7}, {"warmup_ratio", 0.1}},
                             {{"warmup_steps", 7}, {"warmup_ratio", 0.2}});
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].level, Level::Pass);
  EXPECT_EQ(findings({{"warmup_ratio", 0.1}}, {{"warmup_ratio", 0.2}})[0].level, Level::Error);
  EXPECT_EQ(findings({{"warmup_ratio", 0.1}}, {{"warmup_proportion", 0.1}})[0].level, Level::Pass);
  // transformers' "constant" makes none.
  const Finding constant = found(10, {{"warmup_steps", 10}, {"lr_scheduler_type", "constant"}});
  EXPECT_EQ(constant.level, Level::Error);
  EXPECT_NE(constant.advice.find("constant_with_warmup"), std::string::npos);
  EXPECT_EQ(found(10, {{"warmup_steps", 10}, {"lr_scheduler_type", "constant_with_warmup"}}).level,
            Level::Pass);
}

// An update of as many examples, in other micro-batches.
TEST(ConfigCheckUnset, HowAnUpdateIsCut) {
  const auto cut = [](int batch, int accumulate) {
    return Settings{of_recipe("train.batch", batch), of_recipe("train.accumulate", accumulate)};
  };
  for (const Finding& f : findings(cut(8, 4), cut(16, 2))) {
    EXPECT_EQ(f.level, Level::Warning);
    EXPECT_TRUE(f.advice.starts_with(
        "32 examples an update on both sides, cut into other micro-batches: "));
  }
  for (const Finding& f : findings(cut(8, 4), cut(16, 4)))
    EXPECT_EQ(f.level, f.a_name == "train.batch" ? Level::Error : Level::Pass);
  const auto transformers = [](int batch) {
    return Settings{{"per_device_train_batch_size", batch}};
  };
  EXPECT_EQ(findings(cut(8, 4), transformers(32))[0].level, Level::Warning);  // it takes 1
  EXPECT_EQ(findings(cut(8, 4), transformers(16))[0].level, Level::Error);
  EXPECT_EQ(findings(cut(8, 4), {{"batch_size", 32}})[0].level, Level::Error);  // nobody knows
}

// nanoGPT: decay_lr is its word for a cosine.
TEST(ConfigCheckUnset, ARateThatStays) {
  const auto recipe = [](const char* kind, int warmup) {
    return Settings{of_recipe("schedule.kind", kind), of_recipe("schedule.warmup", warmup)};
  };
  Settings program = {{"decay_lr", true}, {"warmup_iters", 10}};
  for (const Finding& f : findings(recipe("cosine", 10), program)) EXPECT_EQ(f.level, Level::Pass);
  EXPECT_EQ(findings(recipe("linear", 10), program)[0].level, Level::Error);
  program = {{"decay_lr", false}, {"warmup_iters", 10}, {"lr_decay_iters", 5}, {"min_lr", 1}};
  const auto found = findings(recipe("constant", 0), program);
  ASSERT_EQ(found.size(), 2u);
  for (const Finding& f : found) EXPECT_EQ(f.level, Level::Pass);
  EXPECT_NE(findings(recipe("constant", 10), program)[1].advice.find("decay_lr"),
            std::string::npos);
}

// A recipe's rate falls to a tenth unless it says how far, transformers' to nothing.
TEST(ConfigCheckUnset, WhereTheRateEnds) {
  Settings recipe = {of_recipe("optimizer.lr", 0.001), of_recipe("schedule.kind", "cosine"),
                     of_recipe("schedule.final_lr", -1.0)};
  EXPECT_EQ(of(findings(recipe, {{"min_lr", 0.0001}}), "min_lr").level, Level::Pass);
  EXPECT_EQ(of(findings(recipe, {{"min_lr", 0}}), "min_lr").advice,
            "set A's schedule.final_lr to 0, or B's min_lr to 0.0001");
  recipe[2].is_default = true;
  const Settings transformers = {{"num_train_epochs", 1}, {"lr_scheduler_type", "cosine"}};
  EXPECT_EQ(of(findings(recipe, transformers), "schedule.final_lr").advice,
            "B does not say it: transformers takes 0 unless it is told");
  recipe[1].value = "step";
  EXPECT_EQ(of(findings(recipe, {{"min_lr", 0}}), "min_lr").level, Level::Pass);
}

TEST(ConfigCheckUnset, WhatAProgramTakesThatIsNotTold) {
  Setting decay = of_recipe("optimizer.weight_decay", 0.01),
          clip = of_recipe("optimizer.clip_norm", 1.0);
  decay.is_default = clip.is_default = true;
  const Settings recipe = {of_recipe("train.batch", 8), decay, clip};
  const auto found = findings(recipe, {{"num_train_epochs", 3}});
  EXPECT_EQ(of(found, "optimizer.weight_decay").level, Level::Warning);
  EXPECT_EQ(of(found, "optimizer.weight_decay").advice,
            "B does not say it: transformers takes 0 unless it is told");
  EXPECT_EQ(of(found, "train.batch").level, Level::Pass);
  EXPECT_EQ(of(found, "optimizer.clip_norm").advice, "nothing is said of optimizer.clip_norm");
  // Of a program that nobody knows, nothing is known.
  EXPECT_EQ(findings(recipe, {{"x", 1}})[0].advice, "B does not say it: check what it is there");
  EXPECT_EQ(findings(recipe, {{"x", 1}}).size(), 2u);
}

std::string of_yaml(const std::string& word) {
  const Side side = parse_settings("a: " + word, "a.yaml");
  return value_text(side.settings.at("static").at(0));
}

// As PyYAML 6.0.4 reads them: of YAML 1.1.
TEST(ConfigCheckYaml11, NumbersOfYaml11) {
  for (const auto& [word, value] : {std::pair("017", "15"),
                                    {"-017", "-15"},
                                    {"00", "0"},
                                    {"0_", "0"},
                                    {"0b11", "3"},
                                    {"-0b11", "-3"},
                                    {"1_000", "1000"},
                                    {"+1_0", "10"},
                                    {"1_", "1"},
                                    {"1_0.5_0", "10.5"},
                                    {"0x1_0", "0x10"},
                                    {"1:30", "90"},
                                    {"-1:30", "-90"},
                                    {"1:00:00", "3600"},
                                    {"1:3", "63"},
                                    {"60:30", "3630"},
                                    {"190:20:30.15", "685230.15"},
                                    {"1:5.", "65.0"},
                                    {"0.1", "0.1"},
                                    {"08.5", "8.5"},
                                    {"1_000_000_000_000_000_000_000", "1000000000000000000000"}})
    EXPECT_EQ(of_yaml(word), value) << word;
  for (const char* word :
       {"08", "0o17", "1:60", "_1", "0b", "0b2", "1:2:x", "0B1", "9999999999999999999:30"}) {
    EXPECT_EQ(of_yaml(word), word);
  }
  // In quotes they are texts.
  EXPECT_EQ(of_yaml("'017'"), "017");
}

NamedTensor matrix(const char* name, std::int64_t rows, std::int64_t columns, bool is_turned,
                   float first) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      values[static_cast<std::size_t>(is_turned ? c * rows + r : r * columns + c)] =
          first + static_cast<float>(r * columns + c);
  const std::vector<std::int64_t> shape =
      is_turned ? std::vector{columns, rows} : std::vector{rows, columns};
  return {name, facts_of(DType::F32, shape, std::as_bytes(std::span(values)))};
}

// nanoGPT's checkpoint has linear layers and its head, transformers' folder of the same weights
// projections as [in, out] and a tied head that is not there.
TEST(ConfigCheckWeights, ACheckpointBesideItsConversion) {
  const auto section = [](bool is_square_turned, bool is_wide_turned, float head) {
    Side own, folder;
    own.weights = {{0,
                    0,
                    {matrix("_orig_mod.transformer.h.0.c_attn.weight", 6, 2, false, 1),
                     matrix("_orig_mod.transformer.h.0.c_proj.weight", 2, 2, false, 50),
                     matrix("_orig_mod.transformer.wte.weight", 3, 2, false, 70),
                     matrix("_orig_mod.lm_head.weight", 3, 2, false, head)}}};
    folder.weights = {{0,
                       0,
                       {matrix("transformer.h.0.c_attn.weight", 6, 2, is_wide_turned, 1),
                        matrix("transformer.h.0.c_proj.weight", 2, 2, is_square_turned, 50),
                        matrix("transformer.wte.weight", 3, 2, false, 70)}}};
    folder.weights[0].tensors[0].is_turned = folder.weights[0].tensors[1].is_turned = true;
    folder.weights[0].tensors[2].is_turned = false;
    const Section s = check_weights(own, folder);
    EXPECT_EQ(check_weights(folder, own).level(), s.level());
    return s;
  };
  EXPECT_EQ(section(true, true, 70).level(), Level::Pass);
  EXPECT_EQ(section(true, true, 71).level(), Level::Warning);  // a head of its own
  // A square one that the conversion has forgotten.
  const Section forgotten = section(false, true, 70);
  EXPECT_EQ(forgotten.level(), Level::Error);
  EXPECT_EQ(forgotten.findings.at(0).level, Level::Pass);
  EXPECT_NE(forgotten.findings.at(1).advice.find("should be its transpose"), std::string::npos);
  // Where none that shows it is turned, a transposed one is an error as elsewhere.
  EXPECT_EQ(section(true, false, 70).findings.at(1).level, Level::Error);
}

}  // namespace
}  // namespace aloft::config_check
