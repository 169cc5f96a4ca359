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

// What there is but one value of is taken where the recipe says that, and refused with the reason.
TEST(ForeignKeys, OneValueIsTaken) {
  const struct {
    const char *kind, *key, *taken, *refused, *why;
  } rows[] = {{"adamw", "differentiable", "false", "true", "no gradient goes through it"},
              {"muon", "ns_steps", "5", "6", "made for five steps"},
              {"adamw", "adam_w_mode", "true", "false", "kind adam"},
              {"adam", "adam_w_mode", "false", "true", "kind adamw"},
              {"novograd", "norm_type", "2", "0", "sums of squares"},
              {"lars", "clip", "false", "true", "no bound"}};
  for (const auto& row : rows) {
    const std::string section = "kind = \"" + std::string(row.kind) + "\"\n" + row.key + " = ";
    const Read r = read(section + row.taken + "\n");
    EXPECT_NE(r.said.find("optimizer." + std::string(row.key) + " changes nothing"),
              std::string::npos)
        << row.key << r.said;
    const std::string said = refused(section + row.refused + "\n");
    for (const char* word : {row.key, row.taken, row.why})
      EXPECT_NE(said.find(word), std::string::npos) << word << "\n" << said;
  }
  // Of another kind it is no key at all.
  EXPECT_NE(refused("kind = \"adamw\"\nns_steps = 5\n").find("no such key"), std::string::npos);
}

// apex's modes of LAMB and NovoGrad are keys of theirs, each with its own usual value; another kind
// explains them or has none.
TEST(ForeignKeys, ModesOfApexAreKeys) {
  for (const auto& [kind, keys] :
       {std::pair{"lamb",
                  std::vector{"adam_w_mode", "bias_correction", "grad_averaging", "use_nvlamb"}},
        {"novograd", {"reg_inside_moment", "bias_correction", "grad_averaging", "init_zero"}}})
    for (const char* key : keys)
      for (const char* value : {"true", "false"}) {
        const Read r = read("kind = \"" + std::string(kind) + "\"\n" + key + " = " + value + "\n");
        EXPECT_EQ(r.said, "") << kind << "." << key;
        const OptimizerSpec spec = optimizer_spec(r.recipe);
        const AttrValue* set = spec.rule.options.find(Name(key));
        ASSERT_NE(set, nullptr) << kind << "." << key;
        EXPECT_EQ(std::get<bool>(*set), std::string(value) == "true") << kind << "." << key;
      }
  EXPECT_NE(refused("kind = \"adamw\"\nadam_w_mode = false\n").find("kind adam"),
            std::string::npos);
  EXPECT_NE(refused("kind = \"lars\"\nuse_nvlamb = true\n"), "");
}

// torch's names are answered with what they are here.
TEST(ForeignKeys, SchedulersOfTorchAreNamed) {
  const auto of = [](const std::string& kind) {
    try {
      parse_recipe("[schedule]\nkind = \"" + kind + "\"\n", "r.toml");
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  for (const auto& [torch, word] : {std::pair{"CosineAnnealingLR", "kind = \"cosine\""},
                                    {"CyclicLR", "\"triangular-2\""},
                                    {"ConstantLR", "low-start"},
                                    {"LinearLR", "start_factor"},
                                    {"LambdaLR", "scalar::tabulated"},
                                    {"SequentialLR", "warmup"},
                                    {"table", "scalar::tabulated"},
                                    {"product", "ScheduleKind::Product"}})
    EXPECT_NE(of(torch).find(word), std::string::npos) << torch << "\n" << of(torch);
  EXPECT_EQ(of("triangular"), "");
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
