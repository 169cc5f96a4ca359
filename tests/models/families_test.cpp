// Families of a program's own: one that is taken is there for everybody, one that cannot be is
// refused and leaves nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/eager.h"
#include "models/misfit_text.h"
#include "models/mlp.h"
#include "models/model_spec.h"

namespace aloft::models {
namespace {

using I = std::int64_t;

// The catalogue's mlp under another name.
ModelFamily family_named(std::string_view name) {
  const SettingValues of_data{{"features", I{0}}, {"classes", I{0}}};
  ModelFamily f = family_of<MlpConfig, Mlp>(name, "of this test", of_data);
  f.made_up = {{"features", I{4}}, {"classes", I{2}}};
  return f;
}

TEST(Families, OfAProgramJoinThoseOfTheCatalogue) {
  use_device(cpu_device());
  const ModelFamily* const first = &families().front();
  const std::size_t before = families().size();
  ModelFamily mine = family_named("mine");
  mine.sizes = {{{"mine-s", "mine-small"}, {{"hidden", std::vector<I>{4}}}}};
  const ModelFamily& taken = add_family(mine);
  EXPECT_EQ(families().size(), before + 1);
  EXPECT_EQ(&families().front(), first);  // families stay where they are
  EXPECT_EQ(find_family("mine"), &taken);
  EXPECT_EQ(family_of_size("mine-small"), &taken);
  SettingValues settings = settings_of_size(taken, "mine-s");
  settings["features"] = I{3};
  settings["classes"] = I{2};
  EXPECT_EQ(taken.make_classifier(settings)->classes(), 2);
}

TEST(Families, OneIsTheUsual) {
  EXPECT_EQ(std::ranges::count(families(), true, &ModelFamily::is_usual), 1);
  EXPECT_TRUE(usual_family().make_causal_lm);
}

TEST(Families, ThatCannotBeAreRefusedWhole) {
  const struct {
    const char* what;
    std::function<void(ModelFamily&)> spoil;
  } cases[] = {
      {"\"\"", [](ModelFamily& f) { f.name = ""; }},
      {"\"My family\"", [](ModelFamily& f) { f.name = "My family"; }},
      {"\"gpt2\" is there already", [](ModelFamily& f) { f.name = "gpt2"; }},
      {"\"gpt2-124m\" is there already",
       [](ModelFamily& f) {
         f.sizes = {{{"gpt2-124m"}, {}}};
       }},
      {"\"s\" twice",
       [](ModelFamily& f) {
         f.sizes = {{{"s"}, {}}, {{"s"}, {}}};
       }},
      {"a size without a name",
       [](ModelFamily& f) {
         f.sizes = {{{}, {}}};
       }},
      {"a size that sets \"depth\"",
       [](ModelFamily& f) {
         f.sizes = {{{"s"}, {{"depth", I{1}}}}};
       }},
      {"a size with \"classes\" = many",
       [](ModelFamily& f) {
         f.sizes = {{{"s"}, {{"classes", std::string("many")}}}};
       }},
      {"\"classes\" twice", [](ModelFamily& f) { f.settings.push_back(f.settings.back()); }},
      {"the setting \"size\"", [](ModelFamily& f) { f.settings.back().key = "size"; }},
      {"the setting \"Rate\"", [](ModelFamily& f) { f.settings.back().key = "Rate"; }},
      {"with the fallback -1", [](ModelFamily& f) { f.settings.back().fallback = I{-1}; }},
      {"\"classes\" of the data with the fallback 0",
       [](ModelFamily& f) {
         f.settings.back().fallback = I{0};
         f.made_up.erase("classes");
       }},
      {"with a name in config.json",
       [](ModelFamily& f) { f.settings.front().role.published = "sizes"; }},
      {"no maker", [](ModelFamily& f) { f.make_classifier = nullptr; }},
      {"both makers",
       [](ModelFamily& f) {
         f.make_causal_lm = [](const SettingValues&) { return std::unique_ptr<CausalLm>(); };
       }},
      {"model_type \"gpt2\"", [](ModelFamily& f) { f.published.model_type = "gpt2"; }},
  };
  const std::size_t before = families().size();
  for (const auto& c : cases) {
    ModelFamily spoilt = family_named("spoilt");
    c.spoil(spoilt);
    try {
      add_family(spoilt);
      ADD_FAILURE() << c.what;
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0212") << c.what;
      EXPECT_NE(std::string(e.what()).find(c.what), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(families().size(), before);
  EXPECT_EQ(find_family("spoilt"), nullptr);
}

std::string refusal_of(const std::function<void()>& call, const char* code) {
  try {
    call();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), code);
    return e.what();
  }
  return "none";
}

// What add_family() cannot see is refused where it is met.
TEST(Families, ThatSayOtherThingsThanTheirConfigAreRefused) {
  const auto wrong_key = [] { family_of<MlpConfig, Mlp>("wrong", "", {{"featurs", I{0}}}); };
  EXPECT_NE(refusal_of(wrong_key, "E0212").find("\"featurs\""), std::string::npos);
  ModelFamily kinds = family_named("kinds");
  kinds.settings.front().fallback = 2.5;  // a list, in the config
  const SettingValues values = add_family(kinds).defaults();
  const auto wrong_kind = [&] { find_family("kinds")->make_classifier(values); };
  EXPECT_NE(refusal_of(wrong_kind, "E0212").find("hidden = 2.5"), std::string::npos);
  ModelFamily empty = family_named("empty");
  empty.make_classifier = [](const SettingValues&) { return std::unique_ptr<Classifier>(); };
  const ModelSpec spec{&add_family(empty), empty.defaults()};
  EXPECT_NE(refusal_of([&] { make_classifier(spec); }, "E0718").find("null"), std::string::npos);
}

// A text of which a part looks like a key that it is not.
TEST(Families, MisfitsAreSaidAsTheyAre) {
  const SettingValues settings = {{"dim", I{7}}};
  const auto said = [&](std::string text) { return text_of(Misfit{"dim", text}, settings, {}); };
  EXPECT_EQ(said("{dim} is odd{?dim}"), "7 is odd");
  EXPECT_EQ(said("{nothing} of {"), "{nothing} of {");
  EXPECT_EQ(said("odd {?dim"), "odd {?dim");
}

}  // namespace
}  // namespace aloft::models
