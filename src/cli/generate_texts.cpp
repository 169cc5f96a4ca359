// Texts of prompts, several at once, and the likeliest by beam search.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/generate_options.h"
#include "cli/work_progress.h"
#include "infer/beam_search.h"
#include "infer/draw_texts.h"
#include "plan/plan.h"

namespace aloft::cli {
namespace {

constexpr std::int64_t kBatch = 8;

// Enough of a prompt to know it by: some are books.
std::string beginning_of(const std::string& prompt) {
  constexpr std::size_t kMost = 120;
  if (prompt.size() <= kMost) return in_shell(prompt);
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(prompt[end]) & 0xc0) == 0x80) --end;
  return in_shell(prompt.substr(0, end)) + "...";
}

// `is_full`: the context has no room for more of it.
const char* end_name(TextEnd end, bool is_full) {
  return end == TextEnd::End    ? "end"
         : end == TextEnd::Stop ? "stop"
         : is_full              ? "context"
                                : "tokens";
}

// Which text of which prompt.
struct Wanted {
  std::size_t prompt;
  std::int64_t sample;
};

// A text that is done, and what there is to say of it.
struct Done {
  std::vector<std::int32_t> tokens;
  TextEnd end;
  double seconds;
  std::string text;
  nlohmann::json more = nlohmann::json::object();
};

// Texts on stdout and nothing else: one alone as it grows, several with a line between them, or an
// object each.
class Results {
 public:
  Results(const GenerateOptions& o, const std::vector<ModelPrompt>& prompts, bool is_answer)
      : o_(o),
        prompts_(prompts),
        is_answer_(is_answer),
        is_several_(o.samples > 1 || prompts.size() > 1),
        begun_(monotonic_seconds()) {}

  bool grows() const { return !o_.as_json && !is_several_; }

  // A token more, of `all_tokens` at most; shown where no text is as it grows.
  void count_token(std::int64_t all_texts, std::int64_t all_tokens) {
    ++drawn_;
    if (grows()) return;
    const double seconds = monotonic_seconds() - begun_;
    show_progress(
        all_texts,
        fmt::format("{} tokens  {:.1f} tokens/s", grouped(drawn_),
                    seconds > 0 ? static_cast<double>(drawn_) / seconds : 0),
        static_cast<double>(drawn_) / static_cast<double>(std::max<std::int64_t>(all_tokens, 1)));
  }

  // `share`: of the work, at least; texts may end sooner than they have to.
  void show_progress(std::int64_t all_texts, const std::string& so_far, double share) {
    const double done = static_cast<double>(texts_) / static_cast<double>(all_texts);
    progress_.show(texts_, all_texts, so_far, std::min(1.0, std::max(done, share)));
  }
  void hide_progress() { progress_.clear(); }

  void announce(std::size_t prompt) {
    const ModelPrompt& p = prompts_[prompt];
    if (o_.as_json) return;
    progress_.clear();
    if (is_terminal(Output::Out) && !is_several_) {
      if (!is_answer_) show(p.text);
      return;
    }
    log_info("prompt {} ({})", beginning_of(p.text),
             counted(static_cast<std::int64_t>(p.tokens.size()), "token"));
  }

  void done(const Wanted& wanted, const Done& text) {
    progress_.clear();
    ++texts_;
    tokens_ += text.tokens.size();
    ended_ += text.end != TextEnd::Tokens;
    const ModelPrompt& from = prompts_[wanted.prompt];
    const bool is_full = text.end == TextEnd::Tokens && from.room <= std::ssize(text.tokens);
    full_ += is_full;
    const std::string& prompt = from.text;
    if (o_.as_json) {
      nlohmann::json j = {
          {"index", wanted.prompt},
          {"prompt", prompt},
          {"text", text.text},
          {"tokens", text.tokens},
          {"ended", text.end != TextEnd::Tokens},
          {"finish", end_name(text.end, is_full)},
          {"seconds", text.seconds},
          {"tokens_per_s",
           text.seconds > 0 ? static_cast<double>(text.tokens.size()) / text.seconds : 0}};
      j.update(text.more);
      print_result(json_text(j) + "\n");
      flush_results();
    } else if (is_several_) {
      const bool with_prompt = is_terminal(Output::Out) && !is_answer_;
      show((is_first_ ? "" : "---\n") + (with_prompt ? prompt : "") + text.text + "\n");
      is_first_ = false;
    } else if (is_terminal(Output::Out)) {
      show("\n");
    }
  }

  void conclude(double seconds, const std::string& more = "") {
    progress_.clear();
    if (o_.as_json) return;
    std::string said = fmt::format("{} tokens, {:.1f} tokens/s", tokens_,
                                   seconds > 0 ? static_cast<double>(tokens_) / seconds : 0);
    if (ended_ > 0) said += fmt::format("; {} ended before --tokens", ended_);
    if (full_ > 0) said += fmt::format("; {} ended with the context full", full_);
    log_info("{}{}", said, more);
  }

 private:
  const GenerateOptions& o_;
  const std::vector<ModelPrompt>& prompts_;
  bool is_answer_, is_several_, is_first_ = true;
  std::size_t tokens_ = 0, ended_ = 0, full_ = 0;
  std::int64_t texts_ = 0, drawn_ = 0;  // texts that are done, tokens of all
  double begun_;
  WorkProgress progress_{"text"};
};

std::int64_t longest_of(const std::vector<ModelPrompt>& prompts) {
  std::size_t longest = 0;
  for (const ModelPrompt& p : prompts) longest = std::max(longest, p.tokens.size());
  return static_cast<std::int64_t>(longest);
}

// Of a prompt that the context has no room for the end alone is read: that is said of a text, and
// no conversation can do without its beginning.
void check_lengths(std::int64_t context, const std::vector<ModelPrompt>& prompts, bool is_answer) {
  const std::int64_t most = context - 1;
  for (const ModelPrompt& p : prompts) {
    const std::int64_t count = std::ssize(p.tokens);
    if (count <= most) continue;
    if (is_answer) {
      UserError e("E0700", "a conversation is longer than the context");
      if (!p.place.empty()) e.add_line("at", p.place);
      e.add_line("saw", fmt::format("{} tokens: {}", count, in_quotes(p.text)));
      e.add_line("need", fmt::format("at most {}", most));
      e.add_line("try", "fewer or shorter messages");
      throw e;
    }
    log_warning("{}prompt {} has {} tokens: the last {} are read, there is no room for more",
                p.place.empty() ? "" : p.place + ": ", beginning_of(p.text), count, most);
  }
}

void say_memory(const Generator& generator, std::size_t texts) {
  log_info("{} texts, {} at once: {}; of it {} of keys and values, for up to {} tokens a text",
           texts, generator.rows(), arenas_text(generator.plan()),
           human_bytes(generator.cache_bytes()), generator.longest());
}

// Draws them all. They are told in their order, each as soon as those before it are done.
void draw_all(const GenerateOptions& o, const Tokenizer& tokenizer, Generator& generator,
              const std::vector<ModelPrompt>& prompts, const std::vector<Wanted>& wanted,
              DrawOptions draw, bool is_answer, Results& results) {
  std::vector<TextStart> starts;
  std::vector<GrowingText> texts;
  for (const Wanted& w : wanted) {
    starts.push_back({prompts[w.prompt].tokens,
                      o.sampling.seed + static_cast<std::uint64_t>(w.sample), w.prompt,
                      prompts[w.prompt].room});
    texts.emplace_back(tokenizer, o.stop, is_answer);
  }
  const bool grows = results.grows();
  if (!o.stop.empty())
    draw.stops = [&](std::int64_t text, std::int32_t) {
      return texts[static_cast<std::size_t>(text)].has_ended();
    };
  std::vector<std::optional<Done>> done(wanted.size());
  const auto first = std::min(wanted.size(), static_cast<std::size_t>(generator.rows()));
  for (std::size_t i = 0; i < first; ++i)
    if (wanted[i].sample == 0) results.announce(wanted[i].prompt);
  std::size_t told = 0;
  const auto tell = [&] {
    for (; told < done.size() && done[told]; ++told) {
      if (told >= first && wanted[told].sample == 0) results.announce(wanted[told].prompt);
      results.done(wanted[told], *done[told]);
      done[told]->tokens = {};
    }
  };
  draw.done = [&](std::int64_t number, const DrawnText& text) {
    const auto i = static_cast<std::size_t>(number);
    if (const std::string rest = texts[i].rest(); grows) show(rest);
    done[i] = {text.tokens, text.end, text.seconds, texts[i].text(), {{"seed", starts[i].seed}}};
    tell();
  };
  std::int64_t most = 0;
  for (const TextStart& start : starts) most += std::min(draw.tokens, start.tokens);
  draw_texts(generator, starts, draw, [&](std::int64_t text, std::int32_t token) {
    const std::string more = texts[static_cast<std::size_t>(text)].add(token);
    if (grows) show(more);
    results.count_token(std::ssize(wanted), most);
    InterruptScope::leave_if_asked();
  });
}

}  // namespace

GrowingText::GrowingText(const Tokenizer& tokenizer, const std::vector<std::string>& stop,
                         bool is_answer)
    : tokenizer_(&tokenizer), stop_(stop), stream_(tokenizer), is_answer_(is_answer) {}

std::string GrowingText::said(std::string text) {
  text_ += text;
  return text;
}

std::string GrowingText::add(std::int32_t token) {
  if (!is_answer_) return said(stop_.add(tokenizer_->bytes_of(token)));
  return tokenizer_->is_special(token) ? "" : said(stop_.add(stream_.push(token)));
}

std::string GrowingText::rest() {
  if (stop_.has_ended()) return "";
  std::string text = is_answer_ ? stop_.add(stream_.finish()) : "";
  return said(text + stop_.rest());
}

void show(std::string_view text) {
  print_result(is_terminal(Output::Out) ? std::string_view(harmless(text)) : text);
  flush_results();
}

void generate_texts(const GenerateOptions& o, SavedModel& saved,
                    const std::vector<ModelPrompt>& prompts, bool is_answer,
                    const std::vector<std::int32_t>& ends) {
  std::vector<Wanted> wanted;
  for (std::size_t p = 0; p < prompts.size(); ++p)
    for (std::int64_t s = 0; s < o.samples; ++s) wanted.push_back({p, s});
  const std::int64_t batch = o.batch > 0 ? o.batch : std::max(kBatch, o.samples);
  const std::int64_t rows = std::min(batch, std::ssize(wanted));
  const RowLengths lengths = rows < std::ssize(wanted)        ? RowLengths::Renewed
                             : rows > 1 && prompts.size() > 1 ? RowLengths::Own
                                                              : RowLengths::Equal;
  Generator generator(*saved.model, static_cast<int>(o.threads.value_or(0)), rows,
                      kSmallerGenerator, longest_of(prompts) + o.tokens, lengths);
  check_lengths(o.context, prompts, is_answer);
  if (!o.prompts.empty()) say_memory(generator, wanted.size());
  saved.load();  // into the memory of its programs
  DrawOptions draw{o.tokens, saved.tokenizer->vocab_size(), ends, o.sampling};
  Results results(o, prompts, is_answer);
  const double begun = monotonic_seconds();
  draw_all(o, *saved.tokenizer, generator, prompts, wanted, draw, is_answer, results);
  std::string full;
  if (const auto times = generator.times_full(); times > 0)
    full = fmt::format("; the context of {} tokens was full {}: about the newer half was kept",
                       saved.model->context(), counted(times, "time"));
  results.conclude(monotonic_seconds() - begun, full);
}

void generate_beams(const GenerateOptions& o, SavedModel& saved,
                    const std::vector<ModelPrompt>& prompts, bool is_answer,
                    const std::vector<std::int32_t>& ends) {
  Generator generator(*saved.model, static_cast<int>(o.threads.value_or(0)), o.beams,
                      "fewer --beams or --tokens, a smaller model, or a machine with more memory",
                      longest_of(prompts) + o.tokens);
  const auto search_of = [&](const ModelPrompt& p) {
    return BeamOptions{std::min(o.tokens, p.room), saved.tokenizer->vocab_size(), ends,
                       o.length_penalty};
  };
  if (is_answer) check_lengths(o.context, prompts, is_answer);
  for (const ModelPrompt& p : prompts) {
    try {
      check_beams(generator, p.tokens, search_of(p));
    } catch (UserError& e) {
      if (!o.prompts.empty()) e.add_line("prompt", in_quotes(p.text));
      if (!p.place.empty()) e.add_line("in", p.place);
      e.add_line("try", "a smaller --tokens, or a shorter prompt");
      throw;
    }
  }
  if (!o.prompts.empty()) say_memory(generator, prompts.size() * static_cast<std::size_t>(o.beams));
  saved.load();
  Results results(o, prompts, is_answer);
  const double begun = monotonic_seconds();
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    results.announce(p);
    const double start = monotonic_seconds();
    BeamOptions search = search_of(prompts[p]);
    search.on_step = [&](std::int64_t length) {
      const double share =
          static_cast<double>(p) + static_cast<double>(length) / static_cast<double>(search.tokens);
      results.show_progress(std::ssize(prompts),
                            fmt::format("token {}/{}", grouped(length), grouped(search.tokens)),
                            share / static_cast<double>(prompts.size()));
    };
    const BeamText best = search_beams(generator, prompts[p].tokens, search);
    results.hide_progress();
    GrowingText text(*saved.tokenizer, {}, is_answer);
    std::string shown;
    for (const std::int32_t token : best.tokens) shown += text.add(token);
    shown += text.rest();
    if (results.grows()) show(shown);
    results.done({p, 0}, {best.tokens,
                          best.ended ? TextEnd::End : TextEnd::Tokens,
                          monotonic_seconds() - start,
                          shown,
                          {{"beams", o.beams}, {"score", best.score}}});
  }
  results.conclude(monotonic_seconds() - begun);
}

}  // namespace aloft::cli
