// aloft generate MODEL --prompt TEXT
#include "infer/generate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/option_checks.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "frontend/amp.h"
#include "infer/saved_model.h"
#include "infer/stop_strings.h"
#include "runtime/threads.h"

namespace aloft::cli {
namespace {

struct Options {
  SavedModelWords model;
  std::string prompt, prompts, precision;
  std::vector<std::string> stop;
  bool has_prompt = false;
  std::int64_t tokens = 100, samples = 1;
  std::optional<std::int64_t> threads;  // 0: all
  SamplingOptions sampling;
  bool past_end = false, as_json = false;
  std::vector<std::string> draws;  // the options given that mean something only where it is drawn
};

// Nothing is drawn at temperature 0. A script that tries several may leave the others where they
// are, so this is said and not refused.
void say_unused(const Options& o) {
  if (o.sampling.temperature > 0 || o.draws.empty()) return;
  log_warning("{} {} nothing at --temperature 0, which always takes the likeliest token",
              join(o.draws, ", "), o.draws.size() == 1 ? "does" : "do");
}

// A line of a file of prompts: \n, \t and \\ in it are a line end, a tab and a backslash.
std::string unescaped(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char next = i + 1 < line.size() ? line[i + 1] : ' ';
    const bool escape = line[i] == '\\' && (next == 'n' || next == 't' || next == '\\');
    out += !escape ? line[i] : next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
    i += escape;
  }
  return out;
}

std::vector<std::string> prompts_of(const Options& o) {
  if (o.has_prompt) return {o.prompt};
  constexpr std::uint64_t kMost = 1 << 26;
  std::vector<std::string> prompts;
  const std::string text = read_file(o.prompts, kMost);
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();  // behind the last line's end there is none
  for (std::string_view line : lines) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) prompts.push_back(unescaped(line));
  }
  if (prompts.empty())
    throw UserError("E0812", "the file holds no prompt")
        .at(o.prompts)
        .need("one a line, \\n within for a new line");
  if (const std::size_t blank = lines.size() - prompts.size(); blank > 0)
    log_warning("{}: {} empty line{} passed over; an empty prompt is --prompt \"\"", o.prompts,
                blank, blank == 1 ? " is" : "s are");
  return prompts;
}

// An empty prompt begins where a document begins: behind the token that separates documents.
std::vector<std::int32_t> first_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<std::int32_t> tokens = tokenizer.framed(tokenizer.encode(prompt));
  if (!tokens.empty()) return tokens;
  if (const auto separator = tokenizer.end_of_text()) return {*separator};
  throw UserError("E0812", "the prompt is empty")
      .saw("a " + std::string(tokenizer.kind()) +
           " tokenizer, which has no token between documents to begin with")
      .advice("--prompt \"some text\"");
}

void write(std::string_view text) {
  print_result(text);
  flush_results();
}

// Texts on stdout and nothing else; on a terminal the prompt stands before them, and no byte of
// them commands the terminal.
class Writer {
 public:
  Writer(const Tokenizer& tokenizer, const Options& o, bool several)
      : tokenizer_(tokenizer),
        stop_(o.stop),
        rows_(static_cast<std::size_t>(o.samples), {StopStrings(o.stop), ""}),
        terminal_(is_terminal(Output::Out)),
        as_json_(o.as_json),
        several_(several) {}

  void prompt(const std::string& text, std::size_t tokens) {
    prompt_ = text;
    for (Row& row : rows_) row = {StopStrings(stop_), ""};
    if (as_json_) return;
    if (terminal_ && !several_) return write(harmless(text));
    log_info("prompt {} ({} token{})", in_shell(text), tokens, tokens == 1 ? "" : "s");
  }

  // One text is shown as it grows, but for what may be the beginning of a string that ends it.
  void drawn(std::int64_t row, std::int32_t token) {
    Row& to = rows_[static_cast<std::size_t>(row)];
    show(to, to.stop.add(tokenizer_.bytes_of(token)));
  }
  bool stops(std::int64_t row) const {
    return rows_[static_cast<std::size_t>(row)].stop.has_ended();
  }

  void text(std::int64_t row, const DrawnText& drawn, std::uint64_t seed, double tokens_per_s) {
    Row& to = rows_[static_cast<std::size_t>(row)];
    show(to, to.stop.rest());
    const std::string& text = to.text;
    if (as_json_) {
      const nlohmann::json j = {{"prompt", prompt_},      {"text", text},
                                {"tokens", drawn.tokens}, {"ended", drawn.ended},
                                {"seed", seed},           {"tokens_per_s", tokens_per_s}};
      write(j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else if (several_) {
      write((first_ ? "" : "---\n") + (terminal_ ? harmless(prompt_ + text) : text) + "\n");
      first_ = false;
    } else if (terminal_) {
      write("\n");
    }
  }

 private:
  struct Row {
    StopStrings stop;
    std::string text;
  };
  void show(Row& row, const std::string& text) {
    row.text += text;
    if (!as_json_ && !several_) write(terminal_ ? harmless(text) : text);
  }

  const Tokenizer& tokenizer_;
  std::vector<std::string> stop_;
  std::vector<Row> rows_;
  bool terminal_, as_json_, several_, first_ = true;
  std::string prompt_;
};

void conclude(const Generator& generator, std::int64_t context, std::size_t tokens,
              std::size_t ended, double seconds) {
  std::string said = fmt::format("{} tokens, {:.1f} tokens/s", tokens,
                                 seconds > 0 ? static_cast<double>(tokens) / seconds : 0);
  if (ended > 0) said += fmt::format("; {} ended before --tokens", ended);
  if (const auto full = generator.times_full(); full > 0)
    said +=
        fmt::format("; the context of {} tokens was full {} time{}: about the newer half was kept",
                    context, full, full == 1 ? "" : "s");
  log_info("{}", said);
}

ExitCode generate(const Options& o) {
  if (o.has_prompt == !o.prompts.empty())
    throw UserError("E0700", o.has_prompt ? "two kinds of prompt" : "there is no prompt")
        .need("--prompt TEXT, or --prompts FILE with one a line");
  const std::vector<std::string> prompts = prompts_of(o);
  say_unused(o);
  const int threads = static_cast<int>(o.threads.value_or(0));
  if (threads > 0) host_threads().set_count(threads);
  SavedModel saved = describe_saved_model(o.model.path, o.model.checkpoint, o.model.average);
  if (!saved.tokenizer)
    throw UserError("E0718", "there is no tokenizer beside the model")
        .at(o.model.path)
        .need(tokenizer_forms());
  const Tokenizer& tokenizer = *saved.tokenizer;
  if (const PrecisionRecipe precision = precision_of(o.precision); precision != PrecisionRecipe{})
    amp::prepare(*saved.model, precision);
  std::vector<std::vector<std::int32_t>> first;
  first.reserve(prompts.size());
  for (const std::string& prompt : prompts) first.push_back(first_tokens(tokenizer, prompt));

  std::size_t longest = 0;
  for (const auto& tokens : first) longest = std::max(longest, tokens.size());
  give_room(saved);
  Generator generator(*saved.model, threads, o.samples,
                      "fewer --samples, a smaller model, or a machine with more memory",
                      static_cast<std::int64_t>(longest) + o.tokens);
  saved.load();  // into the memory of its programs
  DrawOptions draw{o.tokens, tokenizer.vocab_size(), {}, o.sampling};
  if (!o.past_end) draw.ends = saved.ends;
  Writer writer(tokenizer, o, o.samples > 1 || prompts.size() > 1);
  if (!o.stop.empty())
    draw.stops = [&](std::int64_t row, std::int32_t) { return writer.stops(row); };
  const double start = monotonic_seconds();
  std::size_t tokens = 0, ended = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    writer.prompt(prompts[i], first[i].size());
    const double begun = monotonic_seconds();
    const auto texts =
        draw_texts(generator, first[i], draw,
                   [&](std::int64_t row, std::int32_t token) { writer.drawn(row, token); });
    const double seconds = monotonic_seconds() - begun;
    for (std::size_t row = 0; row < texts.size(); ++row) {
      tokens += texts[row].tokens.size();
      ended += texts[row].ended;
      writer.text(static_cast<std::int64_t>(row), texts[row], o.sampling.seed + row,
                  static_cast<double>(texts[row].tokens.size()) / seconds);
    }
  }
  if (!o.as_json)
    conclude(generator, saved.model->context(), tokens, ended, monotonic_seconds() - start);
  return ExitCode::Ok;
}

}  // namespace

Action generate_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_saved_model(app, o->model);
  const CLI::Option* prompt =
      app.add_option("--prompt", o->prompt, "text to go on from; empty: where a document begins");
  app.add_option("--prompts", o->prompts,
                 "a prompt a line (\\n, \\t, \\\\ as in C); empty lines are passed over");
  app.add_option("--samples", o->samples, "texts a prompt, drawn with seed, seed + 1, ...")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--tokens", o->tokens, "most tokens of a text")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  app.add_option("--temperature", o->sampling.temperature, "0: always the likeliest token")
      ->check(number_between(0, SamplingOptions::kMostTemperature))
      ->capture_default_str();
  app.add_option("--top-k", o->sampling.top_k, "only the k likeliest tokens; 0: all")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--top-p", o->sampling.top_p, "only the likeliest with this total probability")
      ->check(number_between(0, 1))
      ->capture_default_str();
  app.add_option("--min-p", o->sampling.min_p,
                 "only those with this share of the likeliest's probability")
      ->check(number_between(0, 1))
      ->capture_default_str();
  app.add_option("--typical-p", o->sampling.typical_p,
                 "only the most typical with this total probability")
      ->check(number_between(0, 1))
      ->capture_default_str();
  app.add_option("--repetition-penalty", o->sampling.repetition_penalty,
                 "logits of tokens that the text has are divided by it, where positive")
      ->check(number_between(1e-3, SamplingOptions::kMostPenalty))
      ->capture_default_str();
  for (const auto& [name, target, help] :
       {std::tuple{"--presence-penalty", &o->sampling.presence_penalty,
                   "taken from the logits of tokens that were drawn before"},
        std::tuple{"--frequency-penalty", &o->sampling.frequency_penalty,
                   "the same, for each time"}})
    app.add_option(name, *target, help)
        ->check(number_between(-SamplingOptions::kMostPenalty, SamplingOptions::kMostPenalty))
        ->capture_default_str();
  app.add_option("--stop", o->stop, "a string that ends the text; repeatable (default: none)");
  app.add_option("--seed", o->sampling.seed, "same seed, same text")
      ->check(at_least(0))
      ->capture_default_str();
  add_precision(app, o->precision);
  add_threads(app, o->threads);
  app.add_flag("--past-end", o->past_end, "go on where the model ends the text");
  add_json(app, o->as_json, "an object a line: prompt, text, tokens, ended, seed");
  add_device(app);
  return [o, prompt, &app] {
    o->has_prompt = prompt->count() > 0;
    for (const char* option : {"--top-k", "--top-p", "--min-p", "--typical-p", "--seed"})
      if (app.count(option) > 0) o->draws.emplace_back(option);
    return generate(*o);
  };
}

}  // namespace aloft::cli
