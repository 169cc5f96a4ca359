// How programs of others say what a recipe says: files of Python, names of schedules, warm-ups as a
// share of the run.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace aloft::config_check
