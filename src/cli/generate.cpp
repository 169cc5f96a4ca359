// aloft generate MODEL --prompt TEXT
#include "train/generate.h"

#include <fmt/format.h>
#include <omp.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "frontend/amp.h"
#include "optim/sgd.h"
#include "train/saved_model.h"

namespace aloft::cli {
namespace {

struct Options {
  std::string model, prompt, precision;
  std::int64_t tokens = 100;
  int threads = 0;
  SamplingOptions sampling;
  bool as_json = false;
};

// An empty prompt begins where a document begins: behind the token that separates documents.
std::vector<std::int32_t> first_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<std::int32_t> tokens = tokenizer.encode(prompt);
  if (!tokens.empty()) return tokens;
  if (const auto separator = tokenizer.end_of_text()) return {*separator};
  throw UserError("E0812", "the prompt is empty")
      .saw("a " + std::string(tokenizer.kind()) +
           " tokenizer, which has no token between documents to begin with")
      .advice("--prompt \"some text\"");
}

ExitCode generate(const Options& o) {
  if (o.threads > 0) omp_set_num_threads(o.threads);
  SavedModel saved = open_saved_model(o.model);
  if (!saved.tokenizer)
    throw UserError("E0718", "there is no tokenizer beside the model")
        .at(o.model)
        .need("vocab.json and merges.txt, or a run directory's tokenizer/");
  if (!o.precision.empty()) amp::prepare(*saved.model, optim::Sgd{}, parse_precision(o.precision));
  const std::vector<std::int32_t> prompt = first_tokens(*saved.tokenizer, o.prompt);
  Generator generator(*saved.model, o.threads);
  generator.start(prompt);
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::int32_t> drawn;
  if (!o.as_json) fmt::print("{}", o.prompt);
  for (std::int64_t i = 0; i < o.tokens; ++i) {
    drawn.push_back(sample_token(generator.logits(saved.tokenizer->vocab_size()), o.sampling, i));
    if (!o.as_json) {
      fmt::print("{}", saved.tokenizer->bytes_of(drawn.back()));
      std::fflush(stdout);
    }
    if (i + 1 < o.tokens) generator.feed(drawn.back());
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (o.as_json) {
    const nlohmann::json j = {{"prompt", o.prompt},
                              {"tokens", drawn},
                              {"text", saved.tokenizer->decode(drawn)},
                              {"tokens_per_s", static_cast<double>(o.tokens) / seconds}};
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("\n");
    fmt::print(stderr, "{} tokens, {:.1f} tokens/s\n", o.tokens,
               static_cast<double>(o.tokens) / seconds);
  }
  return ExitCode::Ok;
}

}  // namespace

Action generate_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("model", o->model, "run directory, checkpoint, or Hugging Face GPT-2 folder")
      ->required();
  app.add_option(
         "--prompt", o->prompt,
         "text to go on from; empty: the start of a document, where the tokenizer marks one")
      ->required();
  app.add_option("--tokens", o->tokens, "tokens to generate")->check(CLI::Range(0, 1 << 24));
  app.add_option("--temperature", o->sampling.temperature, "0: always the likeliest token")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--top-k", o->sampling.top_k, "only the k likeliest tokens; 0: all")
      ->check(at_least(0));
  app.add_option("--top-p", o->sampling.top_p, "only the likeliest with this total probability")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", o->sampling.seed, "same seed, same text");
  app.add_option("--precision", o->precision, "O0 (default), O2:bf16, ...");
  app.add_option("--threads", o->threads, "0: all")->check(at_least(0));
  app.add_flag("--json", o->as_json, "print an object");
  return [o] { return generate(*o); };
}

}  // namespace aloft::cli
