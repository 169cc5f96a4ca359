// Recipes: what a user writes, what overrides do to it, and what is said about mistakes.
#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu_backend.h"
#include "base/cache_folder.h"
#include "base/error.h"
#include "files/toml_text.h"
#include "frontend/eager.h"
#include "infer/draw_texts.h"
#include "precision/recipe_json.h"
#include "recipe/recipe_json.h"
#include "recipe/recipe_unused.h"
#include "recipe/resume_changes.h"
#include "recipe/run_length.h"
#include "recipe_mistakes.h"
#include "temporary_folder.h"
#include "train/session.h"

namespace aloft {
namespace {

constexpr const char* kRecipe = R"([model]
layers = 2
dim = 32
heads = 2
[data]
text = ["a.txt"]
tokenizer = "char"
[precision]
level = "O2:bf16"
[optimizer]
lr = 1e-2
[schedule]
kind = "cosine"
warmup = 4
[train]
steps = 40
)";

TEST(Recipe, PassesThatMayBeLeftOutAreNamed) {
  const Recipe r = parse_recipe("[train]\nskip_passes = [\"fuse-elementwise\", \"cse\"]", "r.toml");
  EXPECT_EQ(r.train.skip_passes, (std::vector<std::string>{"fuse-elementwise", "cse"}));
  for (const char* name : {"fuse", "differentiate"}) {
    const std::string said = mistakes_of("[train]\nskip_passes = [\"" + std::string(name) + "\"]");
    EXPECT_NE(said.find(std::string("'") + name + "' is no pass that may be left out"),
              std::string::npos)
        << said;
  }
}

TEST(Recipe, ListsEveryMistakeInTheOrderOfTheFileWithTheNearestName) {
  const std::string said = mistakes_of(R"([train]
steps = 1.5
bach = 2
[model]
dim = 33
heads = 4
[precision]
levle = "O2"
[optimizer]
kind = "adma"
[frobnicate]
x = 1
)",
                                       {{"data.txt", "a"}});
  std::size_t at = 0;
  for (const char* line :
       {"the recipe has 7 mistakes", "r.toml:2 train.steps: need a whole number, got 1.5",
        "r.toml:3 train.bach: no such key; did you mean train.batch?",
        "r.toml:6 model.heads: 4 heads do not divide dim 33", "r.toml:8 precision.levle",
        "r.toml:10 optimizer.kind: need one of adadelta, adafactor, ", " (did you mean adam?)",
        "r.toml:12 frobnicate.x: no such key\n",
        "--set data.txt: no such key; did you mean data.text"}) {
    const std::size_t found = said.find(line, at);
    EXPECT_NE(found, std::string::npos) << line << "\n" << said;
    if (found != std::string::npos) at = found;
  }
}

TEST(Recipe, NamesWhatWasMeantByAShortOrAForeignWord) {
  const std::pair<const char*, const char*> words[] = {
      {"lr", "optimizer.lr"},
      {"train.lr", "optimizer.lr"},
      {"learning_rate", "optimizer.lr"},
      {"model.kind", "model.family"},
      {"optimizer.learning-rate", "optimizer.lr"},
      {"steps", "train.steps or schedule.steps or profile.steps"},
      {"train.max_iters", "train.steps"},
      {"batch_size", "train.batch"},
      {"n_layer", "model.layers"},
      {"num_hidden_layers", "model.layers"},
      {"num_epochs", "train.epochs"},
      {"batchh", "train.batch"},
      {"modle.dim", "model.dim"},
      {"data.tokenizer.size", "data.tokenizer.vocab"},
      {"precison", "precision"}};
  for (const auto& [written, meant] : words) {
    const std::string said = mistakes_of("", {{written, "1"}});
    EXPECT_NE(said.find(std::string("did you mean ") + meant + "?"), std::string::npos) << said;
  }
  for (const char* far : {"x", "zzz", "frobnicate.qq"})
    EXPECT_EQ(mistakes_of("", {{far, "1"}}).find("did you mean"), std::string::npos) << far;
}

TEST(Recipe, CountsInStepsOrInEpochs) {
  const std::string both = mistakes_of("[train]\nsteps = 5\nepochs = 2\n");
  EXPECT_NE(both.find("r.toml:3 train.epochs: train.steps (r.toml:2) says how long the run is"),
            std::string::npos)
      << both;
  EXPECT_NE(mistakes_of("", {{"train.steps", "5"}, {"train.epochs", "2"}}).find("leave one"),
            std::string::npos);
  // The command line beats the file, either way.
  Recipe r = parse_recipe("[train]\nsteps = 5\n", "r.toml", {{"train.epochs", "2.5"}});
  EXPECT_EQ(r.train.epochs, 2.5);
  r.model.settings["context"] = std::int64_t{16};
  r.train.batch = 4;
  r.train.accumulate = 3;
  settle_length(r, windows_of(r, 16 * 100 + 1));  // 100 windows: 250 of them, 12 a step
  EXPECT_EQ(r.train.steps, 21);
  EXPECT_EQ(r.origin.at("train.steps"), "train.epochs");
  EXPECT_DOUBLE_EQ(epochs_of(r, windows_of(r, 16 * 100 + 1)), 2.52);
  settle_length(r, windows_of(r, 3));
  EXPECT_EQ(r.train.steps, 1);
  // Where it goes on: with the same batch to the same end, with another one to the same windows.
  for (std::int64_t step : {0, 1, 7, 20, 21}) {
    settle_length(r, windows_of(r, 1601), {step, static_cast<std::uint64_t>(12 * step)});
    EXPECT_EQ(r.train.steps, 21) << step;
  }
  settle_length(r, windows_of(r, 1601), {10, 24});  // by batches of 2 and 4: 226 windows are left
  EXPECT_EQ(r.train.steps, 10 + 19);
  // What is behind the run counts as it was.
  EXPECT_DOUBLE_EQ(epochs_of(r, windows_of(r, 1601), {10, 24}), (24 + 19 * 12) / 100.0);
  settle_length(r, windows_of(r, 1601), {300, 300});  // beyond the end
  EXPECT_EQ(r.train.steps, 300);
  r = parse_recipe("[train]\nepochs = 2\n", "r.toml", {{"train.steps", "7"}});
  settle_length(r, windows_of(r, 1601));
  EXPECT_EQ(r.train.steps, 7);
  EXPECT_NE(mistakes_of("[train]\nepochs = -1\n").find("train.epochs"), std::string::npos);
  EXPECT_NE(mistakes_of("[train]\nepochs = \"2\"\n").find("train.epochs"), std::string::npos);
}

TEST(Recipe, WhatHasNoEffectOrCannotBeIsAMistake) {
  const auto expect = [](const std::vector<Override>& set, const std::string& part) {
    const std::string said = mistakes_of("", set);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  const Override none{"data.validation", "0"}, every{"train.eval_every", "5"};
  expect({none, every, {"train.patience", "3"}}, "train.patience counts evaluations");
  expect({none, {"train.keep_best", "3"}}, "train.keep_best counts evaluations");
  expect({{"data.train_tokens", "a.bin"}, {"train.keep_best", "3"}}, "data.validation_tokens");
  EXPECT_EQ(parse_recipe("", "r.toml", {none, {"train.keep_best", "0"}}).train.keep_best, 0);
  expect({{"train.sample_every", "3"}, {"train.sample_tokens", "0"}}, "train.sample_every does");
  expect({{"data.train_tokens", "a.bin"}, {"data.tokenizer.kind", "char"}},
         "data.tokenizer.kind makes a tokenizer of text");
  expect({{"data.tokenizer.vocab", "256"}}, "data.tokenizer.vocab: 256; need 257 or more");
  expect({{"data.tokenizer.kind", "gpt2"}}, "need data.tokenizer.path");
  expect({{"optimizer.lr", "nan"}}, "optimizer.lr: need 0 to 1000000, got nan");
  expect({{"model.size", "gpt2-124m"}, {"model.dim", "64"}},
         "--set model.heads: 12 heads of model.size gpt2-124m do not divide dim 64");
  expect({{"precision", "{level = \"O2:fp16\", loss_scale = {init = 1e9}}"}}, "init is 1e+09, min");
}

TEST(Recipe, WhatAnotherKeySwitchesOffIsAMistake) {
  struct Pair {
    Override off, key;
    const char* said;
  };
  const Pair pairs[] = {
      {{"data.validation", "0"}, {"train.eval_every", "5"}, " counts evaluations; there are none"},
      {{"data.validation", "0"}, {"train.eval_batches", "5"}, " counts evaluations; there are"},
      {{"data.train_tokens", "a.bin"}, {"train.eval_every", "5"}, " counts evaluations; there are"},
      {{"data.train_tokens", "a.bin"}, {"data.cache", "c"}, " is where text is packed"},
      {{"train.keep_checkpoints", "0"},
       {"train.keep_best", "2"},
       " does nothing where train.keep_"},
      {{"train.keep_checkpoints", "0"}, {"train.keep_every", "9"}, " does nothing where train.kee"},
      {{"train.mode", "eager"}, {"train.skip_passes", "cse"}, " does nothing where train.mode is"},
      {{"schedule.kind", "step"}, {"schedule.steps", "9"}, " does nothing where schedule.kind is"},
      {{"optimizer.weight_decay", "0"}, {"optimizer.no_decay", "w*"}, " does nothing where optim"}};
  for (const auto& [off, key, said] : pairs) {
    const std::string mistake = mistakes_of("", {off, key});
    EXPECT_NE(mistake.find("--set " + key.key + said), std::string::npos) << key.key << mistake;
    // The key alone is right, and what a file says of it is left in peace by the command line.
    const Override on{"schedule.kind", "cosine"};  // of schedule.steps
    EXPECT_EQ(mistakes_of("", {on, key}), "none") << key.key;
    const bool is_number = key.value.find_first_not_of("0123456789") == std::string::npos;
    const std::string file = key.key + " = " + (is_number ? key.value : "\"" + key.value + "\"");
    EXPECT_EQ(mistakes_of(file, {off}), "none") << key.key;
    EXPECT_NE(
        print_config(parse_recipe(file, "r.toml", {off})).find("# " + key.key + " is not used"),
        std::string::npos)
        << key.key;
  }
}

// Its default's value is no less meant; what is off asks for nothing.
TEST(Recipe, ADefaultThatNothingReadsIsAMistakeToo) {
  const Override defaults[] = {{"schedule.gamma", "0.1"},
                               {"schedule.step_size", "1000"},
                               {"optimizer.momentum", "0.9"},
                               {"data.tokenizer.vocab", "4096"}};
  const Override byte{"data.tokenizer.kind", "byte"};
  for (const Override& d : defaults) {
    const std::string said = mistakes_of("", {byte, d});
    EXPECT_NE(said.find("--set " + d.key + " does nothing where"), std::string::npos) << said;
    const std::string in_file =
        mistakes_of("data.tokenizer.kind = \"byte\"\n" + d.key + " = " + d.value);
    EXPECT_NE(in_file.find("r.toml:2 " + d.key + " does nothing"), std::string::npos) << in_file;
  }
  EXPECT_NE(
      mistakes_of("[data]\ntrain_tokens = \"a.bin\"\nvalidation = 0.05\n").find("divides text"),
      std::string::npos);
  EXPECT_EQ(
      mistakes_of("[optimizer]\nnesterov = false\n[train]\nsample_tokens = 0\nsample_every = 0\n"
                  "[schedule]\nsteps = 0\n[data]\nvalidation = 0\n"),
      "none");
}

TEST(Recipe, WhatIsPrintedLeavesOutWhatNothingReads) {
  for (const char* key :
       {"optimizer.kind=sgd", "optimizer.kind=momentum", "schedule.kind=step", "data.validation=0",
        "train.keep_checkpoints=0", "train.sample_tokens=0", "data.train_tokens=/a.bin",
        "optimizer.weight_decay=0", "optimizer.lr=0", "data.tokenizer.path=/t",
        "data.tokenizer.kind=char", "model.size=gpt2-medium"}) {
    const Recipe r = parse_recipe("", "r.toml", {parse_override(key)});
    const std::string printed = print_config(r);
    EXPECT_EQ(mistakes_of(printed), "none") << key << "\n" << printed;
    EXPECT_EQ(json_of(parse_recipe(printed, "printed.toml")), json_of(r)) << printed;
  }
}

// As torch.optim.SGD: none by default.
TEST(Recipe, SgdReadsItsMomentum) {
  const auto momentum = [](const std::string& text) {
    const OptimizerSpec spec =
        optimizer_spec(parse_recipe("[optimizer]\nkind = " + text, "r.toml"));
    const AttrValue* momentum = spec.rule.options.find("momentum");
    EXPECT_EQ(spec.rule.states().size(), momentum ? 1u : 0u);
    return momentum ? std::get<double>(*momentum) : 0;
  };
  EXPECT_EQ(momentum("\"sgd\"\n"), 0);
  EXPECT_EQ(momentum("\"sgd\"\nmomentum = 0.9\nnesterov = true\n"), 0.9);
  EXPECT_EQ(momentum("\"momentum\"\n"), 0.9);
  EXPECT_EQ(momentum("\"momentum\"\nmomentum = 0\n"), 0);
  EXPECT_NE(mistakes_of("[optimizer]\nkind = \"sgd\"\nnesterov = true\n").find("above 0"),
            std::string::npos);
}

TEST(Recipe, TheNumbersOfASizeComeFromIt) {
  const std::vector<const char*> numbers = {"layers", "heads", "dim", "context", "vocab"};
  const Recipe file = parse_recipe("[model]\nsize = \"gpt2-medium\"\nheads = 8\n", "r.toml");
  const Recipe set = parse_recipe("", "r.toml", {{"model.size", "gpt2-medium"}});
  for (const std::string name : numbers) {
    EXPECT_EQ(file.origin.at("model." + name),
              name == "heads" ? "r.toml:3" : "r.toml:2 model.size");
    EXPECT_EQ(set.origin.at("model." + name), "--set model.size");
  }
}

TEST(Recipe, ARateOfNothingEndsAtNothing) {
  const Override cosine{"schedule.kind", "cosine"}, end{"schedule.final_lr", "1e-4"};
  const std::string said = mistakes_of("", {cosine, end, {"optimizer.lr", "0"}});
  EXPECT_NE(said.find("schedule.final_lr is a part of optimizer.lr, which is 0"), std::string::npos)
      << said;
  EXPECT_EQ(mistakes_of("", {cosine, end}), "none");
}

TEST(Recipe, EveryKeyIsReadByARunAndSomeByNothingElse) {
  Recipe recipe;
  std::vector<std::string> run_only;
  for (const RecipeField& f : recipe_fields(recipe))
    if (!is_read_by_a_step(f.key)) run_only.emplace_back(f.key);
  EXPECT_EQ(run_only.size(), 35u);  // each name there is a key's
  for (const char* key : {"train.eval_every", "train.keep_best", "data.sampling"})
    EXPECT_NE(std::find(run_only.begin(), run_only.end(), key), run_only.end()) << key;
  EXPECT_TRUE(is_read_by_a_step("train.batch") && is_read_by_a_step("data.validation"));
  EXPECT_TRUE(is_read_for_tokens("data.validation") && !is_read_for_tokens("train.batch"));
}

TEST(Recipe, EveryKeyThatIsNotFreeSaysWhatItMeansForARunThatGoesOn) {
  constexpr std::size_t kRoom = 96;  // on a line of its own, indented by 4
  for (const models::ModelFamily& family : models::families())
    for (Recipe recipe = parse_recipe("", "r.toml", {{"model.family", std::string(family.name)}});
         const RecipeField& f : recipe_fields(recipe)) {
      EXPECT_EQ(meaning_on_resume(f).empty(), f.on_resume == OnResume::Free) << f.key;
      EXPECT_LE(meaning_on_resume(f).size(), kRoom) << f.key;
    }
}

TEST(Recipe, TheOrderOfTheCommandLineMeansNothing) {
  const Override type{"precision.type", "fp16"};
  for (const char* key : {"precision.level", "precision"}) {
    const Override level{key, "O2"}, other{key, "O2:bf16"};
    for (const std::vector<Override>& set : {std::vector{type, level}, std::vector{level, type}})
      EXPECT_EQ(print_precision(parse_recipe("", "r.toml", set).precision), "O2:f16") << key;
    for (const std::vector<Override>& set : {std::vector{type, other}, std::vector{other, type}})
      EXPECT_NE(mistakes_of("", set).find("the level names a type already"), std::string::npos)
          << key;
  }
  // What the file says is replaced.
  EXPECT_EQ(print_precision(parse_recipe("[precision]\ntype = \"fp16\"\n", "r.toml",
                                         {{"precision.level", "O2:bf16"}})
                                .precision),
            "O2:bf16");
}

TEST(Recipe, WrongSizesAndHostileTextAreMistakesLikeOthers) {
  EXPECT_NE(mistakes_of("[model]\nsize = \"gpt2-9m\"\n").find("gpt2-124m"), std::string::npos);
  EXPECT_THROW(parse_recipe("", "r.toml", {{"model.family", "\xff\xfe"}}), UserError);
  EXPECT_NE(mistakes_of("", {{"optimizer.lr", "nan"}}).find("optimizer.lr"), std::string::npos);
  EXPECT_NE(mistakes_of("[optimizer]\nbetas = [0.9]\n").find("two numbers"), std::string::npos);
}

TEST(Recipe, OverridesAreTomlOrBareText) {
  const Recipe r = parse_recipe(kRecipe, "r.toml",
                                {{"precision.level", "O2:fp16"},
                                 {"data.text", "[\"x.txt\", \"y/**/*.md\"]"},
                                 {"optimizer.betas", "[0.9, 0.95]"},
                                 {"train.mode", "eager"},
                                 {"model.bias", "false"},
                                 {"data.tokenizer", "byte"}});
  EXPECT_EQ(r.precision, parse_precision("O2:fp16"));
  EXPECT_EQ(r.data.text, (std::vector<std::string>{"x.txt", "y/**/*.md"}));
  EXPECT_EQ(r.optimizer.options.at("betas"), SettingValue(std::vector{0.9, 0.95}));
  EXPECT_EQ(r.train.mode, "eager");
  EXPECT_EQ(r.model.settings.at("bias"), SettingValue(false));
  EXPECT_EQ(r.data.tokenizer.kind, "byte");
  EXPECT_THROW(parse_override("train.steps"), UserError);
  const Recipe table =
      parse_recipe(kRecipe, "r.toml",
                   {{"data.tokenizer", "{kind = \"bpe\", vocab = 512}"}, {"train", "{seed = 9}"}});
  EXPECT_EQ(table.data.tokenizer.kind, "bpe");
  EXPECT_EQ(table.data.tokenizer.settings.at("vocab"), SettingValue(std::int64_t{512}));
  EXPECT_EQ(table.train.seed, 9);
}

// What --print-config shows is itself the recipe, and says where each value is from.
TEST(Recipe, ThePrintedConfigLoadsAsTheSameRecipe) {
  for (const char* precision : {"O0", "O1:fp16", "O2:fp16 loss_scale=128",
                                "O2:bf16 backward=fp16 deny_ops=matmul,linear"}) {
    const Recipe r = parse_recipe(kRecipe, "r.toml", {{"precision", precision}});
    const Recipe again = parse_recipe(print_config(r), "printed.toml");
    EXPECT_EQ(json_of(r), json_of(again)) << print_config(r);
  }
  const Recipe epochs = parse_recipe(kRecipe, "r.toml", {{"train.epochs", "2"}});
  EXPECT_EQ(json_of(parse_recipe(print_config(epochs), "printed.toml")), json_of(epochs));
  const std::string text = print_config(parse_recipe(kRecipe, "r.toml", {{"train.steps", "7"}}));
  // "key = value", padding, "# origin".
  const auto shows = [](const std::string& text, const std::string& key, const std::string& end) {
    for (std::size_t at = 0; (at = text.find("\n" + key + " = ", at)) != std::string::npos; ++at) {
      const std::size_t stop = text.find('\n', at + 1);
      if (text.substr(at, stop - at).ends_with(" # " + end)) return true;
    }
    return false;
  };
  EXPECT_TRUE(shows(text, "steps", "--set")) << text;
  EXPECT_TRUE(shows(text, "layers", "r.toml:2")) << text;
  EXPECT_TRUE(shows(text, "level", "r.toml:9")) << text;
  EXPECT_TRUE(shows(text, "type", "r.toml:9")) << text;
  EXPECT_TRUE(shows(text, "heads", "r.toml:4") && shows(text, "context", "default")) << text;
  const std::string set =
      print_config(parse_recipe(kRecipe, "r.toml", {{"precision.level", "O2:fp16"}}));
  EXPECT_TRUE(shows(set, "level", "--set") && shows(set, "type", "--set")) << set;
}

TEST(Recipe, ParameterGroupsAreTablesOfTheirOwn) {
  const std::string text = R"([[optimizer.groups]]
parameters = ["wte.*", "wpe.*"]
lr = 1e-4
[[optimizer.groups]]
parameters = "*.bias"
weight_decay = 0.5
)";
  const Recipe r = parse_recipe(text, "r.toml");
  const std::vector<ParameterGroup> want = {{{"wte.*", "wpe.*"}, 1e-4, {}}, {{"*.bias"}, {}, 0.5}};
  EXPECT_EQ(r.optimizer.groups, want);
  EXPECT_EQ(optimizer_spec(r).groups, want);
  const std::string printed = print_config(r);
  EXPECT_EQ(parse_recipe(printed, "printed.toml").optimizer.groups, want) << printed;
  EXPECT_NE(printed.find("# r.toml:"), std::string::npos) << printed;
  EXPECT_EQ(json_of(r)["optimizer"]["groups"][0]["lr"], 1e-4);
  const Recipe set =
      parse_recipe(text, "r.toml", {{"optimizer.groups", "[{parameters=[\"wte.*\"], lr=0.5}]"}});
  EXPECT_EQ(set.optimizer.groups, (std::vector<ParameterGroup>{{{"wte.*"}, 0.5, {}}}));
}

// One that stands before another keeps its parameters from it; the last would do nothing.
TEST(Recipe, AGroupHasARateOrADecayOrKeepsParametersFromAnother) {
  const char* const spare = "[[optimizer.groups]]\nparameters = [\"wte.*\"]\n";
  const char* const rest = "[[optimizer.groups]]\nparameters = [\"*\"]\nlr = 1e-4\n";
  EXPECT_EQ(mistakes_of(std::string(spare) + rest), "none");
  const std::string said = mistakes_of(std::string(rest) + spare);
  EXPECT_NE(said.find("optimizer.groups[1]: does nothing; need one of lr,"), std::string::npos)
      << said;
}

TEST(Recipe, MistakesInGroupsHaveTheirLines) {
  const std::string said = mistakes_of(R"([[optimizer.groups]]
paramters = ["wte.*"]
lr = -1
[[optimizer.groups]]
lr = 1
[[optimizer.groups]]
parameters = ["*"]
weight_decay = "much"
)");
  for (const char* line :
       {"r.toml:2 optimizer.groups[0].paramters: no such key; did you mean parameters?",
        "r.toml:3 optimizer.groups[0].lr: need 0 to",
        "optimizer.groups[1].parameters: need at least",
        "r.toml:8 optimizer.groups[2].weight_decay: need a number"})
    EXPECT_NE(said.find(line), std::string::npos) << line << "\n" << said;
  EXPECT_NE(mistakes_of("[optimizer.groups]\nlr = 1\n").find("r.toml:1 optimizer.groups: need a"),
            std::string::npos);
}

TEST(Recipe, SplitMastersNeedBf16WeightsThatHaveMasters) {
  const std::string split = "[optimizer]\nmaster = \"split\"\n[precision]\nlevel = ";
  const Recipe r = parse_recipe(split + "\"O2:bf16\"\n", "r.toml");
  EXPECT_EQ(optimizer_spec(r).master, StateFormat::Split);
  EXPECT_NE(print_config(r).find("master = \"split\""), std::string::npos);
  EXPECT_EQ(optimizer_spec(parse_recipe("", "r.toml")).master, StateFormat::F32);
  EXPECT_EQ(mistakes_of(split + "\"auto\"\n"), "none");  // judged when it is settled
  for (const char* level : {"O0", "O1", "O3", "O2:fp16"})
    EXPECT_NE(mistakes_of(split + "\"" + level + "\"\n").find("r.toml:2 optimizer.master: split"),
              std::string::npos)
        << level;
  EXPECT_NE(mistakes_of("", {{"optimizer.master", "spilt"}}).find("did you mean split"),
            std::string::npos);
}

TEST(Recipe, AnEarlyUpdateNeitherClipsNorSkips) {
  const std::string early = "[optimizer]\nupdate = \"early\"\n";
  EXPECT_NE(mistakes_of(early).find("r.toml:2 optimizer.update: an early update cannot clip, and "
                                    "clip_norm is 1 (default)"),
            std::string::npos);
  const std::string free = early + "clip_norm = 0\n[precision]\nlevel = ";
  EXPECT_EQ(optimizer_spec(parse_recipe(free + "\"O2:bf16\"\n", "r.toml")).update,
            UpdateTime::Early);
  EXPECT_EQ(optimizer_spec(parse_recipe("", "r.toml")).update, UpdateTime::Late);
  EXPECT_EQ(mistakes_of(free + "\"auto\"\n"), "none");
  for (const char* scaled : {"\"O2:fp16\"", "\"O1:fp16\"", "\"O2\"\nloss_scale = 128"})
    EXPECT_NE(mistakes_of(free + scaled + "\n").find("cannot skip a step"), std::string::npos)
        << scaled;
}

TEST(Recipe, AScheduleMaySpanMoreStepsThanTheRun) {
  const auto rate = [](const Recipe& r, int update) {
    return r.optimizer.lr * scalar::schedule_factor(schedule_rule(r), update);
  };
  const Recipe whole = parse_recipe(kRecipe, "r.toml");
  const Recipe first =
      parse_recipe(kRecipe, "r.toml", {{"train.steps", "10"}, {"schedule.steps", "40"}});
  const Recipe shorter = parse_recipe(kRecipe, "r.toml", {{"train.steps", "10"}});
  for (int update = 0; update < 10; ++update) EXPECT_EQ(rate(first, update), rate(whole, update));
  EXPECT_NE(rate(shorter, 9), rate(whole, 9));
}

double rate_of(const Recipe& r, int update) {
  return r.optimizer.lr * scalar::schedule_factor(schedule_rule(r), update);
}

// torch.optim.lr_scheduler.StepLR(lr=1e-3, step_size=5): a drop every 5 updates, without an end.
TEST(Recipe, DropsGoOnUnlessALowestRateIsGiven) {
  const std::vector<Override> step = {{"schedule.kind", "step"}, {"schedule.step_size", "5"}};
  const Recipe r = parse_recipe("", "r.toml", step);
  for (int update = 0; update < 20; ++update)
    EXPECT_DOUBLE_EQ(rate_of(r, update), 1e-3 * std::pow(0.1, update / 5)) << update;
  std::vector<Override> ended = step;
  ended.push_back({"schedule.final_lr", "5e-5"});
  EXPECT_DOUBLE_EQ(rate_of(parse_recipe("", "r.toml", ended), 12), 5e-5);
  // The curves that fall to an end have a tenth of the rate for it.
  for (const char* kind : {"cosine", "linear", "wsd"})
    EXPECT_NEAR(rate_of(parse_recipe("", "r.toml", {{"schedule.kind", kind}}), 400), 1e-4, 1e-12)
        << kind;
}

TEST(Recipe, AScheduleThatDoesNotWorkOutNamesItsKeys) {
  const auto said = [](const std::string& text, const std::vector<Override>& set) -> std::string {
    try {
      schedule_rule(parse_recipe(text, "r.toml", set));
    } catch (const UserError& e) {
      return e.what();
    }
    return "accepted";
  };
  const std::string above = said("[schedule]\nkind = \"cosine\"\n", {{"schedule.final_lr", "0.1"}});
  EXPECT_NE(above.find("schedule.final_lr = 0.1 (--set), above optimizer.lr = 0.001 (default)"),
            std::string::npos)
      << above;
  const std::string longer =
      said("[schedule]\nkind = \"wsd\"\ndecay = 9\n", {{"train.steps", "4"}});
  EXPECT_NE(longer.find("schedule.decay = 9 (r.toml:3)"), std::string::npos) << longer;
  EXPECT_EQ((longer + above).find("min_factor"), std::string::npos);
}

TEST(Recipe, ALevelThatNobodyNamedIsSaid) {
  const Recipe r = parse_recipe("", "r.toml", {{"precision.keep_norms_fp32", "true"}});
  EXPECT_EQ(r.origin.at("precision.level"), "a [precision] that names no level, --set");
  const std::string said = mistakes_of("", {{"precision.matmul", "bf16x3"}});
  EXPECT_NE(said.find("O2, which a table without a level means,"), std::string::npos) << said;
  EXPECT_NE(said.find("add level O0"), std::string::npos) << said;
  EXPECT_NE(mistakes_of("", {{"precision.level", "O4"}}).find("one of O0, O1, O2, O3"),
            std::string::npos);
}

TEST(Recipe, NesterovWithoutMomentumHasItsLine) {
  const std::string said =
      mistakes_of("[optimizer]\nkind = \"momentum\"\nmomentum = 0\nnesterov = true\n");
  EXPECT_NE(mistakes_of("[optimizer]\nkind = \"sgd\"\ndampening = 0.5\n")
                .find("optimizer.dampening does nothing where optimizer.momentum is 0"),
            std::string::npos);
  EXPECT_EQ(mistakes_of("[optimizer]\nkind = \"sgd\"\ndampening = 0.5\nmomentum = 0.9\n"), "none");
  EXPECT_NE(mistakes_of("[optimizer]\nkind = \"sgd\"\nstates = \"8bit\"\n")
                .find("optimizer.states: sgd keeps no states"),
            std::string::npos);
  EXPECT_EQ(mistakes_of("[optimizer]\nkind = \"sgd\"\nstates = \"8bit\"\nmomentum = 0.9\n"),
            "none");
  EXPECT_NE(said.find("r.toml:4 optimizer.nesterov: needs optimizer.momentum above 0, which is 0 "
                      "(r.toml:3)"),
            std::string::npos)
      << said;
}

TEST(Recipe, PathsOfTheFileBeginAtTheFileAndOverridesWhereTheUserIs) {
  TemporaryFolder folder;
  folder.put(folder / "r.toml", kRecipe);
  const Recipe plain = load_recipe(folder / "r.toml", {{"train.steps", "1"}});
  EXPECT_EQ(plain.data.text[0], folder / "a.txt");
  EXPECT_EQ(plain.folder, folder.path());
  // However the file is named; ".." behind a link is not what is written before it.
  const Recipe dots =
      load_recipe(folder.path() / "." / "r.toml", {{"data.train_tokens", "./sub/../x.bin"}});
  EXPECT_EQ(dots.data.text[0], folder / "a.txt");
  EXPECT_EQ(Path(dots.data.train_tokens), std::filesystem::current_path() / "sub/../x.bin");
  const Recipe set = load_recipe(folder / "r.toml", {{"data.text", "b.txt"}});
  EXPECT_EQ(Path(set.data.text[0]), std::filesystem::current_path() / "b.txt");
  try {
    load_recipe(folder / "s.toml");
    FAIL() << "there is no such file";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0721");
    EXPECT_NE(std::string(e.what()).find("r.toml"), std::string::npos);
  }
}

// Not a folder below wherever the program was started.
TEST(Cache, AnEmptyHomeIsNone) {
  ::setenv("XDG_CACHE_HOME", "", 1);
  ::setenv("HOME", "", 1);
  EXPECT_EQ(default_cache(), Path("/tmp/.cache/aloft"));
  ::setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(default_cache(), Path("/home/somebody/.cache/aloft"));
}

// Weights decay; biases do not, and neither do the scales and shifts of norms.
TEST(Recipe, NormsAndBiasesDoNotDecay) {
  use_device(cpu_device());
  const Recipe recipe = parse_recipe(kRecipe, "r.toml", {{"data.tokenizer", "byte"}});
  const Session session = open_session(recipe, {{"vocab", std::int64_t{256}}}, nullptr);
  const Optimizer& optimizer = *session.optimizer;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const Variable& p = *optimizer.parameters()[i];
    EXPECT_EQ(optimizer.decays(i), p.type.shape.rank() >= 2) << p.name.str();
  }
  EXPECT_NE(print_config(recipe).find("norms never decay"), std::string::npos);
}

TEST(Toml, LettersBeyondAsciiStandInStringsAndCommentsOnly) {
  EXPECT_EQ(parse_toml("\"\u00e4\" = 1\n\"\u00f6\" = 2  # \u0493\n").size(), 2u);
  EXPECT_THROW(parse_toml("\u00e4 = 1"), TomlError);
  EXPECT_THROW(parse_toml("x = [0.9.'\u0493"), TomlError);
}

TEST(Sampling, LogitsThatAreNotNumbersAreRefused) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const double temperature : {0.0, 1.0}) {
    const SamplingOptions o{.temperature = temperature};
    EXPECT_EQ(sample_token(std::vector<float>{-inf, 1, -inf}, o, 0), 1);
    EXPECT_THROW(sample_token(std::vector<float>{0, nan, 1}, o, 0), DivergedError);
    EXPECT_THROW(sample_token(std::vector<float>{0, inf, 1}, o, 0), DivergedError);
    EXPECT_THROW(sample_token(std::vector<float>{-inf, -inf}, o, 0), DivergedError);
    try {
      sample_token(std::vector<float>{0, -nan, 1}, o, 0);
    } catch (const DivergedError& e) {
      EXPECT_NE(std::string(e.what()).find("saw   nan for token 1\n"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace aloft
