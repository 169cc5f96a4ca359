// Texts around the first length of longrope, beyond which angles are others, against transformers:
// what decides is how long a text is, not what it is read with.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "frontend/eager.h"
#include "infer/draw_texts.h"
#include "infer/text_loss.h"
#include "models/huggingface.h"
#include "parity/fixture.h"

namespace aloft::parity {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Judged {
  Json fixture = read_json("text_lengths.json");
  std::unique_ptr<models::CausalLm> model;

  Judged() {
    use_device(cpu_device());
    auto folder =
        models::open_huggingface("tests/fixtures/" + fixture.at("model").get<std::string>());
    folder.spec.settings["context"] = fixture.at("context").get<std::int64_t>();
    folder.spec.settings["rotary_original"] = fixture.at("first_length").get<std::int64_t>();
    model = folder.spec.family->make_causal_lm(folder.spec.settings);
    models::load_huggingface(folder, *model);
  }
  // Those that have it.
  std::vector<Json> cases_with(const char* key) const {
    std::vector<Json> cases = fixture.at("cases");
    std::erase_if(cases, [&](const Json& c) { return !c.contains(key); });
    EXPECT_GE(cases.size(), 4U) << key;
    return cases;
  }
};

Tokens tokens_of(const Json& of, const char* key) { return of.at(key).get<Tokens>(); }

std::int32_t next_token(const Generator& g, std::int64_t row) {
  const auto logits = g.logits(INT64_MAX, row);
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Each row's likeliest tokens, which are fed to it.
std::vector<Tokens> likeliest(Generator& g, std::size_t count) {
  std::vector<Tokens> out(static_cast<std::size_t>(g.rows()));
  for (std::size_t i = 0; i < count; ++i) {
    Tokens next;
    for (std::int64_t r = 0; r < g.rows(); ++r) next.push_back(next_token(g, r));
    for (std::size_t r = 0; r < out.size(); ++r) out[r].push_back(next[r]);
    if (i + 1 < count) g.feed(next);
  }
  return out;
}

TEST(TextLengths, ContinuationsAreTransformers) {
  const Judged judged;
  Generator alone(*judged.model), again(*judged.model);
  Generator few(*judged.model, 0, 1, "", 180);  // less room: stretches end elsewhere
  std::vector<Tokens> prompts, want;
  for (const Json& p : judged.cases_with("prompt")) {
    prompts.push_back(tokens_of(p, "prompt"));
    want.push_back(tokens_of(p, "tokens"));
    SCOPED_TRACE(prompts.back().size());
    for (Generator* g : {&alone, &few}) {
      g->start(prompts.back());
      EXPECT_EQ(likeliest(*g, want.back().size())[0], want.back());
    }
    // A prompt that goes on from what stands there, which is shorter or longer.
    again.start_again(prompts.back());
    EXPECT_EQ(likeliest(again, want.back().size())[0], want.back());
    Tokens longer = prompts.back();
    longer.insert(longer.end(), 20, 1);
    again.start_again(longer);
    again.start_again(prompts.back());
    EXPECT_EQ(likeliest(again, want.back().size())[0], want.back());
  }
  Generator together(*judged.model, 0, std::ssize(prompts), "", 256, RowLengths::Own);
  together.start_each(prompts);
  EXPECT_EQ(likeliest(together, want[0].size()), want);
}

// Rows that begin while others go on.
TEST(TextLengths, ARowThatBeginsIsReadByItsOwnLength) {
  const Judged judged;
  std::vector<Tokens> prompts, want;
  for (const Json& p : judged.cases_with("prompt")) {
    prompts.push_back(tokens_of(p, "prompt"));
    want.push_back(tokens_of(p, "tokens"));
  }
  Generator g(*judged.model, 0, 2, "", 256, RowLengths::Renewed);
  for (std::size_t i = 0; i + 1 < prompts.size(); ++i) {
    SCOPED_TRACE(i);
    g.start_each(std::vector<Tokens>{prompts.back(), prompts[0]});
    g.begin(1, prompts[i]);
    g.feed(Tokens{next_token(g, 0), 0});
    EXPECT_EQ(likeliest(g, want[i].size())[1], want[i]);
  }
}

// Texts of which one is longer than the first length, alone and beside each other.
TEST(TextLengths, LossesAreTransformers) {
  const Judged judged;
  double nats = 0;
  Sequences all;
  for (const Json& t : judged.cases_with("text")) {
    const Tokens tokens = tokens_of(t, "text");
    SCOPED_TRACE(tokens.size());
    const double want = t.at("loss").get<double>();
    nats += want * static_cast<double>(tokens.size() - 1);
    EXPECT_NEAR(loss_of_text(*judged.model, tokens, {}).mean(), want, 2e-5);
    std::vector<std::uint32_t> learnt;
    for (const std::int32_t token : tokens)
      learnt.push_back(static_cast<std::uint32_t>(token) | kLearntToken);
    all.add(learnt);
    Sequences one;
    one.add(learnt);
    EXPECT_NEAR(loss_of_sequences(*judged.model, one, {}).mean(), want, 2e-5);
  }
  for (const std::int64_t batch : {1, 3, 4}) {
    TextLossOptions o;
    o.batch = batch;
    EXPECT_NEAR(loss_of_sequences(*judged.model, all, o).nats, nats, 5e-3) << batch;
  }
}

}  // namespace
}  // namespace aloft::parity
