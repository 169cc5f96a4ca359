#include "infer/run_sample.h"

#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "infer/draw_texts.h"

namespace aloft {
namespace {

// What a sample goes on from: a new line, or the tokenizer's first piece where its text had none.
std::vector<std::int32_t> sample_start(const Tokenizer& tokenizer) {
  try {
    if (auto ids = tokenizer.encode("\n"); !ids.empty()) return ids;
  } catch (const DataError&) {
  }
  return {0};
}

// Sampling puts the model into evaluation mode.
class BackToTraining {
 public:
  explicit BackToTraining(models::CausalLm& model) : model_(model) {}
  ~BackToTraining() { model_.train(); }
  BackToTraining(const BackToTraining&) = delete;
  BackToTraining& operator=(const BackToTraining&) = delete;

 private:
  models::CausalLm& model_;
};

}  // namespace

std::string draw_run_sample(models::CausalLm& model, const Tokenizer& tokenizer,
                            const std::optional<SamplePrompt>& prompt, std::int64_t tokens,
                            std::uint64_t seed) {
  const BackToTraining back(model);
  const std::vector<std::int32_t> start = prompt ? prompt->tokens : sample_start(tokenizer);
  Generator generator(model, 0, 1, "", std::ssize(start) + tokens);
  DrawOptions o;
  o.tokens = tokens;
  o.ids = tokenizer.vocab_size();
  if (prompt) o.ends = prompt->ends;
  o.sampling = {.temperature = 0.8, .top_k = 40, .seed = seed};
  const auto leave = [](std::int64_t, std::int32_t) { InterruptScope::leave_if_asked(); };
  const std::vector<std::int32_t> drawn = draw_texts(generator, start, o, leave)[0].tokens;
  if (!prompt) return tokenizer.decode(drawn);
  std::vector<std::int32_t> all = start;
  all.insert(all.end(), drawn.begin(), drawn.end());
  return tokenizer.decode(all);
}

}  // namespace aloft
