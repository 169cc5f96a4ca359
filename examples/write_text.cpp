// A small GPT-2 of one's own that learns a rhyme by heart, letter by letter, and then says it: a
// compiled training step, and a Generator with its cache of keys and values.
#include <aloft/aloft.h>
#include <aloft/infer.h>

#include <cstdio>
#include <string>
#include <vector>

using namespace aloft;

constexpr std::int64_t kBatch = 8, kContext = 32;
const std::string kRhyme =
    "one, two, buckle my shoe; three, four, knock at the door; five, six, pick up sticks; "
    "seven, eight, lay them straight; nine, ten, a big fat hen. ";

std::vector<std::int32_t> letters(const std::string& text) { return {text.begin(), text.end()}; }

// Rows of the rhyme, each from somewhere else; as it comes round, it has no end.
Tensor rows(std::int64_t step, std::int64_t shift) {
  std::vector<std::int32_t> ids;
  for (std::int64_t row = 0; row < kBatch; ++row)
    for (std::int64_t i = 0; i < kContext; ++i)
      ids.push_back(kRhyme[(step * 5 + row * 18 + i + shift) % kRhyme.size()]);
  return from_ints(ids, {kBatch, kContext});
}

int main() {
  manual_seed(1);
  models::Gpt2 gpt({.layers = 2, .heads = 4, .dim = 64, .vocab = 128, .context = kContext});
  auto [model, optimizer] = amp::initialize(gpt, optim::AdamW{.lr = 3e-3}, "O2:bf16");
  auto step = compile([&model = model, &optimizer = optimizer](Tensor tokens, Tensor targets) {
    return minimize(cross_entropy(model(tokens), targets), optimizer);
  });
  for (std::int64_t i = 0; i < 500; ++i) {
    const StepResult r = step(rows(i, 0), rows(i, 1));
    if (i % 100 == 99) std::printf("step %d  loss %.3f\n", static_cast<int>(i) + 1, r.loss());
  }

  Generator generator(gpt);
  const auto texts = draw_texts(generator, letters("three, four,"),
                                {.tokens = 60, .sampling = {.temperature = 0}});
  const std::string said(texts[0].tokens.begin(), texts[0].tokens.end());
  std::printf("three, four,%s\n", said.c_str());
  return said.starts_with(" knock at the door; five, six, pick up sticks;") ? 0 : 1;
}
