// Keys that do nothing for who learns something else, and what a record says of keys left empty.
#include "recipe/recipe_unused.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "recipe/recipe.h"
#include "recipe_mistakes.h"

namespace aloft {
namespace {

std::vector<std::string> unused_of(const std::vector<Override>& set) {
  std::vector<std::string> keys;
  for (const UnusedKey& u : unused_keys(parse_recipe("", "r.toml", set), true))
    keys.push_back(u.key);
  return keys;
}

const std::vector<Override> kImages = {{"model.family", "lenet"}, {"data.csv", "a.csv"}};

std::vector<Override> with(std::vector<Override> all, const Override& one) {
  all.push_back(one);
  return all;
}

TEST(RecipeUnused, WhereChecksumsAreWrittenNoFileHasAFormat) {
  const std::vector<Override> files = {{"probe.task", "tensor"}, {"probe.format", "npy"}};
  EXPECT_EQ(mistakes_of("", files), "none");
  const std::string said = mistakes_of("", with(files, {"probe.summary", "md5"}));
  EXPECT_NE(said.find("--set probe.format does nothing where probe.summary is md5"),
            std::string::npos)
      << said;
}

TEST(RecipeUnused, WhoWritesNoTextHasNoSamples) {
  for (const Override& key : {Override{"train.sample_every", "2"}, {"train.sample_tokens", "50"}}) {
    EXPECT_EQ(mistakes_of("", {key}), "none");
    for (const char* task : {"", "classification", "multi-label", "regression"}) {
      const std::string said =
          mistakes_of("", with(with(kImages, key), Override{"task.kind", task}));
      EXPECT_NE(said.find("--set " + key.key + " is of models that write text"), std::string::npos)
          << said;
    }
    // What a file says for another model is left in peace by the command line.
    EXPECT_EQ(mistakes_of(key.key + " = " + key.value, kImages), "none");
  }
  EXPECT_EQ(mistakes_of("", with(kImages, {"train.sample_tokens", "0"})), "none");  // asks for none
}

TEST(RecipeUnused, EveryKeyIsSaidOnce) {
  std::vector<std::vector<Override>> recipes = {{}, kImages};
  recipes.push_back({{"data.train_tokens", "a.bin"}});
  recipes.push_back({{"data.tokenizer.path", "t"}, {"train.sample_tokens", "0"}});
  recipes.push_back(with(kImages, {"train.sample_tokens", "0"}));
  recipes.push_back({{"model.family", "lenet"}, {"data.images", "i"}, {"data.labels", "l"}});
  for (const std::vector<Override>& set : recipes) {
    const std::vector<std::string> keys = unused_of(set);
    EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), keys.size())
        << testing::PrintToString(keys);
  }
  const std::string said = mistakes_of("", with(kImages, {"data.tokenizer.byte_fallback", "true"}));
  const auto first = said.find("data.tokenizer.byte_fallback ");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("data.tokenizer.byte_fallback ", first + 1), std::string::npos) << said;
}

TEST(RecipeUnused, ARecordHidesWhatIsEmpty) {
  const auto hides = [](const std::vector<Override>& set, const std::string& key) {
    const std::vector<std::string> keys = unused_of(set);
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  for (const char* key : {"data.images", "data.outputs", "train.sample_every", "precision.type"})
    EXPECT_TRUE(hides(kImages, key)) << key;
  EXPECT_FALSE(hides(kImages, "data.csv"));
  EXPECT_FALSE(hides(with(kImages, {"data.outputs", "2"}), "data.outputs"));
  EXPECT_FALSE(hides(with(kImages, {"precision.level", "O2"}), "precision.type"));
  EXPECT_FALSE(hides(with(kImages, {"precision.level", "auto"}), "precision.type"));
  for (const char* key : {"data.images", "data.csv", "data.outputs"}) EXPECT_TRUE(hides({}, key));
  EXPECT_FALSE(hides({}, "train.sample_tokens"));
  EXPECT_TRUE(mistakes_of("[data]\nimages = \"\"\noutputs = 0\n", {}) == "none");
}

TEST(RecipeUnused, DivisorsAreOfOneCycle) {
  const auto rule = [](const std::string& more) {
    return schedule_rule(parse_recipe("[schedule]\nkind = \"one-cycle\"\n" + more, "r.toml"));
  };
  EXPECT_EQ(rule("").div, 25);
  EXPECT_EQ(rule("div = 4\nfinal_div = 100\n").div, 4);
  EXPECT_EQ(rule("div = 4\nfinal_div = 100\n").final_div, 100);
  EXPECT_NE(mistakes_of("[schedule]\nkind = \"one-cycle\"\ndiv = 0.5\n").find("schedule.div"),
            std::string::npos);
  EXPECT_NE(mistakes_of("[schedule]\nkind = \"cosine\"\ndiv = 4\n").find("schedule.div"),
            std::string::npos);
}

}  // namespace
}  // namespace aloft
