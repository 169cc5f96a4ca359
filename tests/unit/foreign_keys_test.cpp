// Keys of [optimizer] that recipes for other systems have: taken, explained, checked.
#include <gtest/gtest.h>

#include "base/error.h"
#include "recipe/recipe.h"

namespace aloft {
namespace {

struct Read {
  Recipe recipe;
  std::string said;  // what was printed on the way
};
Read read(const std::string& section) {
  ::testing::internal::CaptureStderr();
  Recipe recipe = parse_recipe("[optimizer]\n" + section, "r.toml");
  return {std::move(recipe), ::testing::internal::GetCapturedStderr()};
}

TEST(ForeignKeys, SwitchesAreTakenAndExplained) {
  for (const char* key : {"foreach", "fused", "capturable"}) {
    const Read r = read("lr = 0.5\n" + std::string(key) + " = true\n");
    EXPECT_EQ(r.recipe.optimizer.lr, 0.5);
    EXPECT_NE(r.said.find("r.toml:3: optimizer." + std::string(key) + " changes nothing"),
              std::string::npos)
        << r.said;
  }
}

TEST(ForeignKeys, ALargestNormIsThatOfClipping) {
  const Read r = read("max_grad_norm = 0.25\n");
  EXPECT_EQ(r.recipe.optimizer.clip_norm, 0.25);
  EXPECT_EQ(r.recipe.origin.at("optimizer.clip_norm"), "r.toml:2");
  EXPECT_NE(r.said.find("optimizer.max_grad_norm is read as optimizer.clip_norm"),
            std::string::npos)
      << r.said;
}

// What a recipe with the section is refused with; nothing where it is taken.
std::string refused(const std::string& section) {
  try {
    parse_recipe("[optimizer]\n" + section, "r.toml");
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

// One of the two would be lost, whichever comes first; the command line beats the file.
TEST(ForeignKeys, OneKeyByTwoNamesIsRefused) {
  for (const char* both : {"max_grad_norm = 0.25\nclip_norm = 2\n",  //
                           "clip_norm = 2\nmax_grad_norm = 0.25\n"})
    EXPECT_NE(refused(both).find("leave one of them out"), std::string::npos) << both;
  const Recipe set =
      parse_recipe("[optimizer]\nclip_norm = 2\n", "r.toml", {{"optimizer.max_grad_norm", "0.25"}});
  EXPECT_EQ(set.optimizer.clip_norm, 0.25);
}

TEST(ForeignKeys, AKindInOtherLettersIsNamed) {
  for (const auto& [written, meant] :
       {std::pair{"AdamW", "adamw"}, {"BertAdam", "bert_adam"}, {"NovoGrad", "novograd"}}) {
    const std::string said = refused("kind = \"" + std::string(written) + "\"\n");
    EXPECT_NE(said.find("did you mean " + std::string(meant) + "?"), std::string::npos) << said;
  }
}

// BertAdam has one of its own.
TEST(ForeignKeys, AKindsOwnKeyIsItsOwn) {
  const Read r = read("kind = \"bert_adam\"\nmax_grad_norm = 0.25\n");
  EXPECT_EQ(r.recipe.optimizer.clip_norm, OptimizerSection().clip_norm);
  EXPECT_EQ(r.said, "");
}

TEST(ForeignKeys, ValuesAreChecked) {
  for (const std::string wrong : {"foreach = 1", "max_grad_norm = \"a\"", "max_grad_norm = -1"})
    EXPECT_THROW(parse_recipe("[optimizer]\n" + wrong, "r.toml"), UserError) << wrong;
}

}  // namespace
}  // namespace aloft
