// Every family of language models: a run that stopped and went on has the bits of the one that
// never stopped, and so what it writes and how likely it finds a text are the same.
#include "e2e/small_run.h"
#include "infer/draw_texts.h"
#include "infer/saved_model.h"
#include "models/family.h"

namespace aloft::e2e {
namespace {

class FamilyRuns : public SmallRun, public testing::WithParamInterface<std::string> {
 protected:
  std::vector<std::string> settings(const char* mode) const {
    std::vector<std::string> set{"model.family=" + GetParam(), "schedule.kind=constant",
                                 std::string("train.mode=") + mode, "train.steps=8",
                                 "model.dropout=0.1"};
    if (models::find_family(GetParam())->find("kv_heads")) set.push_back("model.kv_heads=1");
    return set;
  }
};

// What a model says of a text: the logits behind it, and what it would write.
struct Said {
  std::vector<float> logits;
  std::vector<std::int32_t> tokens;
  friend bool operator==(const Said&, const Said&) = default;
};

Said said_by(const Path& run) {
  const SavedModel saved = open_saved_model(run);
  Generator generator(*saved.model);
  const std::vector<std::int32_t> prompt = saved.tokenizer->encode("what is written ");
  generator.start(prompt);
  const HostRead<float> logits = generator.logits();
  Said out;
  out.logits.assign(logits.begin(), logits.end());
  out.tokens = draw_texts(generator, prompt, {.tokens = 20})[0].tokens;
  return out;
}

TEST_P(FamilyRuns, HalfAndHalfIsTheWhole) {
  for (const char* mode : {"graph", "eager"}) {
    const std::string whole = std::string("whole-") + mode, halves = std::string("halves-") + mode;
    const std::vector<std::string> set = settings(mode);
    run(whole, set);
    std::vector<std::string> half = set;
    half.push_back("train.steps=3");
    std::erase(half, "train.steps=8");
    run(halves, half);
    EXPECT_EQ(run(halves, set, true).steps, 5);
    expect_same_state(whole, halves, "step-000008");
    const Said before = said_by(folder_ / whole);
    EXPECT_EQ(before.tokens.size(), 20u);
    EXPECT_EQ(before, said_by(folder_ / halves)) << mode;
  }
  expect_same_state("whole-graph", "whole-eager", "step-000008");
}

std::vector<std::string> writers() {
  std::vector<std::string> names;
  for (const models::ModelFamily& family : models::families())
    if (family.make_causal_lm) names.emplace_back(family.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, FamilyRuns, testing::ValuesIn(writers()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace aloft::e2e
