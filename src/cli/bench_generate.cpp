// aloft bench generate MODEL: the latency of text from a saved model. Tokens are made up: the time
// does not depend on what they say.
#include "cli/bench_generate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "backends/cpu/measure.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/process.h"
#include "cli/bench_profile.h"
#include "cli/shared_options.h"
#include "frontend/amp.h"
#include "infer/generate.h"
#include "infer/saved_model.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"
#include "scalar/median.h"

namespace aloft::cli {
namespace {

using nlohmann::json;
using scalar::upper_median;

struct Options {
  SavedModelWords model;
  std::string precision;
  std::int64_t prompt = 512, tokens = 64, rounds = 5;
  std::optional<std::int64_t> threads;
  bool as_json = false, no_limit = false;
};

// Bytes of variables that a token is computed with: of a table that is looked up, a row alone is
// read, which does not count.
std::uint64_t bytes_read_for_a_token(const Plan& plan) {
  const Program& decode = *plan.find("decode");
  const VariablesOf variables(plan);
  std::set<const StateSlot*> read;
  for (const Instruction& ins : decode.instructions)
    for (const BufferRef& in : ins.in) {
      const StateSlot* slot = in.buffer < 0 ? nullptr : variables.in(decode.buffers[in.buffer]);
      if (slot && slot->cls == StateClass::Parameter && ins.call.op != Name("embedding"))
        read.insert(slot);
    }
  std::uint64_t bytes = 0;
  for (const StateSlot* slot : read) bytes += slot->type.max_bytes();
  return bytes;
}

// Different ones, so that no row of a table is always in the cache.
std::vector<std::int32_t> made_up(std::int64_t count, std::int64_t vocab) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * 7919 + 1) % vocab));
  return tokens;
}

std::int32_t likeliest(const Generator& generator) {
  const auto logits = generator.logits();
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

struct Times {
  double first = 0;                        // when the first token was there, on the steady clock
  std::vector<double> prompt, token;       // seconds
  std::vector<double> stream_gb_s, share;  // beside each text, of what its tokens read
  std::uint64_t rss = 0;
};

Times measure(Generator& generator, const Options& o, std::int64_t vocab, bool has_limit) {
  Times t;
  const std::vector<std::int32_t> prompt = made_up(o.prompt, vocab);
  const auto read = static_cast<double>(bytes_read_for_a_token(generator.plan()));
  for (std::int64_t round = 0; round <= o.rounds; ++round) {  // the first does not count
    // On both sides of a text, as rates of shared memory move while it is written: no text is
    // faster than the memory, and its share is of the faster of the two.
    const bool is_beside_limit = has_limit && round > 0 && o.tokens > 1;
    const double stream = is_beside_limit ? cpu::measure_read_rate(1) : 0;
    const double began = steady_seconds();
    double before = began;
    const auto lap = [&] {
      const double now = steady_seconds();
      return now - std::exchange(before, now);
    };
    generator.start(prompt);
    std::int32_t token = likeliest(generator);
    const double first = lap();
    std::vector<double> tokens;
    for (std::int64_t i = 1; i < o.tokens; ++i) {
      generator.feed(token);
      token = likeliest(generator);
      tokens.push_back(lap());
    }
    if (round == 0) {
      t.first = began + first;
      t.rss = peak_rss_bytes();  // without what is measured below
      continue;
    }
    t.prompt.push_back(first);
    t.token.insert(t.token.end(), tokens.begin(), tokens.end());
    if (!is_beside_limit) continue;
    t.stream_gb_s.push_back(std::max(stream, cpu::measure_read_rate(1)));
    t.share.push_back(read / upper_median(std::move(tokens)) / 1e9 / t.stream_gb_s.back());
  }
  return t;
}

json result_of(const Options& o, double start) {
  const int threads = static_cast<int>(o.threads.value_or(0));
  if (threads > 0) host_threads().set_count(threads);
  SavedModel saved = describe_saved_model(o.model.path, o.model.checkpoint, o.model.average);
  if (const PrecisionRecipe precision = precision_of(o.precision); precision != PrecisionRecipe{})
    amp::prepare(*saved.model, precision);
  const std::int64_t context = saved.model->context();
  if (o.prompt + o.tokens > context)
    throw UserError("E0700", "the prompt and the tokens are longer than the model's context")
        .saw(std::to_string(o.prompt) + " and " + std::to_string(o.tokens) + " tokens")
        .need("at most " + std::to_string(context) + " together")
        .advice("a smaller --prompt-tokens or --tokens");
  give_room(saved);
  Generator generator(*saved.model, threads, 1, "a smaller model, or a machine with more memory",
                      o.prompt + o.tokens);
  saved.load();
  const double opened = steady_seconds();
  const bool has_limit = !o.no_limit && current_device().name() == "cpu";
  const Times t = measure(generator, o, saved.model->vocab(), has_limit);
  const double prompt_s = upper_median(t.prompt);
  const std::uint64_t read = bytes_read_for_a_token(generator.plan());
  json j = {{"model", o.model.path},
            {"precision", print_precision(precision_of(o.precision))},
            {"threads", host_threads().count()},
            {"device", current_device().name()},
            {"open_ms", (opened - start) * 1e3},
            {"prompt_tokens", o.prompt},
            {"prompt_ms", prompt_s * 1e3},
            {"prompt_tokens_per_s", static_cast<double>(o.prompt) / prompt_s},
            {"first_token_ms", (t.first - start) * 1e3},
            {"first_token_clock_s", t.first},  // for whoever started this and noted the time
            {"tokens", o.tokens},
            {"read_bytes_a_token", read},
            {"planned_peak_bytes", generator.plan().peak_bytes()},
            {"peak_rss_bytes", t.rss}};
  if (!t.token.empty()) {
    const double token_s = upper_median(t.token);
    j["token_ms"] = token_s * 1e3;
    j["tokens_per_s"] = 1 / token_s;
    j["read_gb_s"] = static_cast<double>(read) / token_s / 1e9;
    if (has_limit) {
      j["stream_gb_s"] = upper_median(t.stream_gb_s);
      j["share_of_stream"] = upper_median(t.share);
    }
  }
  return j;
}

void print_lines(const json& j) {
  const auto number = [&](const char* key) { return j[key].get<double>(); };
  print_result("{}, {}, {} threads\n", j["model"].get<std::string>(),
               j["precision"].get<std::string>(), j["threads"].get<int>());
  print_result("{:<18}{:.0f} ms\n", "open", number("open_ms"));
  print_result("{:<18}{:.1f} ms: {:.0f} tokens at {:.0f} tokens/s\n", "prompt", number("prompt_ms"),
               number("prompt_tokens"), number("prompt_tokens_per_s"));
  print_result("{:<18}{:.0f} ms after the program's start\n", "first token",
               number("first_token_ms"));
  if (j.contains("token_ms"))
    print_result("{:<18}{:.2f} ms: {:.1f} tokens/s, weights read at {:.1f} GB/s\n", "each token",
                 number("token_ms"), number("tokens_per_s"), number("read_gb_s"));
  if (j.contains("stream_gb_s"))
    print_result("{:<18}{:.1f} GB/s: {:.0f} % of it\n", "memory read", number("stream_gb_s"),
                 100 * number("share_of_stream"));
  print_result("{:<18}{:.2f} GiB\n", "peak memory", number("peak_rss_bytes") / (1 << 30));
}

}  // namespace

Action bench_generate(CLI::App& generate, double start) {
  auto o = std::make_shared<Options>();
  add_saved_model(generate, o->model);
  generate.add_option("--prompt-tokens", o->prompt, "tokens of the prompt, made up")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  generate.add_option("--tokens", o->tokens, "tokens behind it, the likeliest each")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  generate
      .add_option("--rounds", o->rounds, "texts that are timed; one before them does not count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_precision(generate, o->precision);
  add_threads(generate, o->threads);
  add_device(generate);
  add_json(generate, o->as_json);
  add_no_limit(generate, o->no_limit);
  return [o, start] {
    const json j = result_of(*o, start);
    if (o->as_json)
      print_result("{}\n", json_text(j));
    else
      print_lines(j);
    return ExitCode::Ok;
  };
}

}  // namespace aloft::cli
