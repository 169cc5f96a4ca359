// Beam search against transformers: the same tokens, for every fixture.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "frontend/eager.h"
#include "infer/beam_search.h"
#include "models/huggingface.h"
#include "parity/fixture.h"
#include "parity/parity_row.h"

namespace aloft::parity {
namespace {

using Tokens = std::vector<std::int32_t>;

std::unique_ptr<models::CausalLm> model_of(const std::string& name) {
  use_device(cpu_device());
  const auto folder = models::open_huggingface("tests/fixtures/" + name);
  auto model = folder.spec.family->make_causal_lm(folder.spec.settings);
  models::load_huggingface(folder, *model);
  return model;
}

// A model with so many beams, made once.
struct Search {
  std::unique_ptr<models::CausalLm> model;
  Generator generator;
  Search(const std::string& name, std::int64_t beams)
      : model(model_of(name)), generator(*model, 0, beams) {}
};

TEST(Beams, FindWhatTransformersFinds) {
  const Json fixture = read_json("beams.json");
  std::map<std::pair<std::string, std::int64_t>, std::unique_ptr<Search>> searches;
  int ended = 0;
  ParityRow row("beams", "searches of transformers that find another text", 0);
  for (const Json& c : fixture.at("cases")) {
    SCOPED_TRACE(c.dump());
    const auto name = c.at("model").get<std::string>();
    const auto beams = c.at("beams").get<std::int64_t>();
    auto& search = searches[{name, beams}];
    if (!search) search = std::make_unique<Search>(name, beams);
    BeamOptions o;
    o.tokens = fixture.at("new_tokens").get<std::int64_t>();
    o.ends = c.at("ends").get<Tokens>();
    o.length_penalty = c.at("length_penalty").get<double>();
    const BeamText got = search_beams(search->generator, c.at("prompt").get<Tokens>(), o);
    const bool is_same =
        got.tokens == c.at("tokens").get<Tokens>() && got.ended == c.at("ended").get<bool>();
    row.see(is_same ? 0 : 1, 0, 1, "the case above");
    ended += got.ended;
  }
  EXPECT_GT(ended, 20);
}

TEST(Beams, WhatMakesNoSenseIsRefused) {
  const auto model = model_of("llama-tiny");  // of 24 positions
  const Tokens prompt = {1, 2, 3};
  const auto code = [&](std::int64_t rows, const Tokens& from, BeamOptions o) -> std::string {
    Generator generator(*model, 0, rows);
    try {
      search_beams(generator, from, o);
    } catch (const Error& e) {
      return std::string(e.code());
    }
    return "";
  };
  EXPECT_EQ(code(3, prompt, {.tokens = 22}), "");
  EXPECT_EQ(code(3, prompt, {.tokens = 23}), "E0700");
  EXPECT_EQ(code(3, Tokens(24, 1), {.tokens = 1}), "E0700");
  EXPECT_EQ(code(3, prompt, {.tokens = 0}), "E0700");
  EXPECT_EQ(code(3, prompt, {.ids = 0}), "E0700");
  EXPECT_EQ(code(3, prompt, {.length_penalty = std::numeric_limits<double>::infinity()}), "E0700");
  EXPECT_EQ(code(1, prompt, {}), "E0812");
  EXPECT_EQ(code(3, {}, {.tokens = 1}), "E0812");
}

}  // namespace
}  // namespace aloft::parity
