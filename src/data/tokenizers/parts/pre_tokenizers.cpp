#include "data/tokenizers/parts/pre_tokenizers.h"

#include <algorithm>

#include "base/text.h"
#include "data/tokenizers/gpt2_words.h"
#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/parts/delimiters.h"
#include "data/tokenizers/parts/kind_of_part.h"
#include "data/tokenizers/parts/normalizers.h"
#include "data/tokenizers/parts/unicode.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

using Steps = std::vector<std::unique_ptr<CutStep>>;

// Expressions whose words end before a space behind an ASCII letter or digit, whatever follows:
// those of cl100k and Llama 3, Qwen2, and o200k.
constexpr std::string_view kLocalExpressions[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};

class Split final : public CutStep {
 public:
  Split(Pattern pattern, Delimiter how, bool invert)
      : pattern_(std::move(pattern)), how_(how), invert_(invert) {}
  void apply(Pieces& pieces, MatchSpace& space) const override {
    if (how_ == Delimiter::Isolated) {  // matches or not, each is a part
      pieces.cut([&](std::string_view text, auto keep) {
        pattern_.walk(text, space,
                      [&](std::size_t begin, std::size_t end, bool) { keep(begin, end); });
      });
      return;
    }
    std::vector<Stretch> stretches;
    pieces.cut([&](std::string_view text, auto keep) {
      stretches.clear();
      pattern_.walk(text, space, [&](std::size_t begin, std::size_t end, bool is_match) {
        stretches.push_back({begin, end, is_match != invert_});
      });
      keep_parts(stretches, how_, keep);
    });
  }
  bool is_local() const override {
    return how_ == Delimiter::Isolated && pattern_.expression &&
           std::find(std::begin(kLocalExpressions), std::end(kLocalExpressions),
                     pattern_.expression->pattern()) != std::end(kLocalExpressions);
  }

 private:
  Pattern pattern_;
  Delimiter how_;
  bool invert_;
};

class WordsByExpression final : public CutStep {
 public:
  explicit WordsByExpression(Expression expression) : expression_(std::move(expression)) {}
  void apply(Pieces& pieces, MatchSpace& space) const override {
    pieces.cut([&](std::string_view text, auto keep) {
      expression_.walk(text, space,
                       [&](std::size_t begin, std::size_t end, bool) { keep(begin, end); });
    });
  }
  bool is_local() const override { return true; }

 private:
  Expression expression_;
};

// Each character of a class is a delimiter.
class SplitCharacters final : public CutStep {
 public:
  using Test = bool (*)(char32_t code);
  SplitCharacters(Test is_delimiter, Delimiter how) : is_delimiter_(is_delimiter), how_(how) {}
  void apply(Pieces& pieces, MatchSpace&) const override {
    std::vector<Stretch> stretches;
    pieces.cut([&](std::string_view text, auto keep) {
      stretches.clear();
      for (std::size_t at = 0; at < text.size();) {
        const utf8::Step step = utf8::step(text, at);
        const bool is_match = is_delimiter_(step.code);
        if (!is_match && !stretches.empty() && !stretches.back().is_match)
          stretches.back().end += step.length;
        else
          stretches.push_back({at, at + step.length, is_match});
        at += step.length;
      }
      keep_parts(stretches, how_, keep);
    });
  }

 private:
  Test is_delimiter_;
  Delimiter how_;
};

// One character is the delimiter.
class SplitAtCharacter final : public CutStep {
 public:
  explicit SplitAtCharacter(char32_t code) { utf8::append(delimiter_, code); }
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.cut([&](std::string_view text, auto keep) {
      std::size_t begin = 0;
      for (std::size_t at; (at = text.find(delimiter_, begin)) != std::string_view::npos;) {
        keep(begin, at);
        begin = at + delimiter_.size();
      }
      keep(begin, text.size());
    });
  }

 private:
  std::string delimiter_;
};

// Runs of words' characters, and runs of what is neither those nor white space.
class Words final : public CutStep {
 public:
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.cut([&](std::string_view text, auto keep) {
      std::size_t begin = 0;
      int last = kNothing;
      for (std::size_t at = 0; at < text.size();) {
        const utf8::Step step = utf8::step(text, at);
        const int now = unicode::is_word(step.code)    ? kWord
                        : unicode::is_space(step.code) ? kNothing
                                                       : kOther;
        if (now != last) {
          if (last != kNothing) keep(begin, at);
          begin = at;
          last = now;
        }
        at += step.length;
      }
      if (last != kNothing) keep(begin, text.size());
    });
  }

 private:
  static constexpr int kNothing = 0, kWord = 1, kOther = 2;
};

// So many characters each.
class FixedLength final : public CutStep {
 public:
  explicit FixedLength(std::int64_t length) : length_(length) {}
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.cut([&](std::string_view text, auto keep) {
      std::size_t begin = 0;
      std::int64_t count = 0;
      for (std::size_t at = 0; at < text.size();) {
        at += utf8::step(text, at).length;
        if (++count < length_) continue;
        keep(begin, at);
        begin = at;
        count = 0;
      }
      keep(begin, text.size());
    });
  }

 private:
  std::int64_t length_;
};

class Gpt2Words final : public CutStep {
 public:
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.cut([&](std::string_view text, auto keep) {
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = at + gpt2::word_length(text, at);
        keep(at, end);
        at = end;
      }
    });
  }
  bool is_local() const override { return true; }
};

class SpaceBefore final : public CutStep {
 public:
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.rewrite([](std::string_view text, bool, std::string& out) {
      if (!text.starts_with(' ')) out += ' ';
      out += text;
    });
  }
};

class ByteLetters final : public CutStep {
 public:
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.rewrite(
        [](std::string_view text, bool, std::string& out) { append_letters(out, text); });
  }
  bool writes_byte_letters() const override { return true; }
};

enum class Prepend { Always, First, Never };

// Spaces as a visible mark, which may stand before the first word, too.
class MarkSpaces final : public CutStep {
 public:
  MarkSpaces(std::string mark, Prepend prepend) : mark_(std::move(mark)), prepend_(prepend) {}
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.rewrite([this](std::string_view text, bool is_first, std::string& out) {
      const bool wants_one =
          prepend_ == Prepend::Always || (prepend_ == Prepend::First && is_first);
      if (wants_one && !text.starts_with(' ') && !text.starts_with(mark_)) out += mark_;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        out += text.substr(at, end - at);
        if (end < text.size()) out += mark_;
        at = end + 1;
      }
    });
  }

 private:
  std::string mark_;
  Prepend prepend_;
};

// Cuts before every mark.
class CutBeforeMarks final : public CutStep {
 public:
  explicit CutBeforeMarks(std::string mark) : mark_(std::move(mark)) {}
  void apply(Pieces& pieces, MatchSpace&) const override {
    pieces.cut([this](std::string_view text, auto keep) {
      std::size_t begin = 0, from = text.starts_with(mark_) ? mark_.size() : 0;
      for (std::size_t at; (at = text.find(mark_, from)) != std::string_view::npos;) {
        keep(begin, at);
        begin = at;
        from = at + mark_.size();
      }
      keep(begin, text.size());
    });
  }

 private:
  std::string mark_;
};

bool is_white(char32_t code) { return unicode::is_space(code); }

void read_bert(const JsonPlace& place, Steps& out) {
  place.know_only({});
  out.push_back(std::make_unique<SplitCharacters>(is_white, Delimiter::Removed));
  out.push_back(std::make_unique<SplitCharacters>(unicode::is_punctuation, Delimiter::Isolated));
}

void read_byte_level(const JsonPlace& place, Steps& out) {
  place.know_only({"add_prefix_space", "trim_offsets", "use_regex"});  // offsets change no id
  if (place.at("add_prefix_space").flag()) out.push_back(std::make_unique<SpaceBefore>());
  if (place.flag_or("use_regex", true)) out.push_back(std::make_unique<Gpt2Words>());
  out.push_back(std::make_unique<ByteLetters>());
}

void read_delimiter_split(const JsonPlace& place, Steps& out) {
  place.know_only({"delimiter"});
  out.push_back(std::make_unique<SplitAtCharacter>(place.at("delimiter").character()));
}

void read_digits(const JsonPlace& place, Steps& out) {
  place.know_only({"individual_digits"});
  const bool each = place.flag_or("individual_digits", false);
  out.push_back(std::make_unique<SplitCharacters>(
      unicode::is_numeric, each ? Delimiter::Isolated : Delimiter::Contiguous));
}

void read_fixed_length(const JsonPlace& place, Steps& out) {
  place.know_only({"length"});
  out.push_back(std::make_unique<FixedLength>(place.at("length").whole(1, INT64_MAX)));
}

void read_metaspace(const JsonPlace& place, Steps& out) {
  // `str_rep` repeats `replacement`; `add_prefix_space` is how earlier versions said the scheme.
  place.know_only({"replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  std::string mark;
  utf8::append(mark, place.at("replacement").character());
  const auto scheme = place.find("prepend_scheme");
  const bool before = place.flag_or("add_prefix_space", true);
  Prepend prepend = before ? Prepend::Always : Prepend::Never;
  if (scheme) {
    const std::string name = scheme->text();
    if (name == "always")
      prepend = Prepend::Always;
    else if (name == "first")
      prepend = Prepend::First;
    else if (name == "never")
      prepend = Prepend::Never;
    else
      scheme->refuse(in_quotes(name), "always, first or never");
    if (!before && prepend != Prepend::Never)
      scheme->refuse(in_quotes(name) + " with add_prefix_space false", "never");
  }
  out.push_back(std::make_unique<MarkSpaces>(mark, prepend));
  if (place.flag_or("split", true)) out.push_back(std::make_unique<CutBeforeMarks>(mark));
}

void read_punctuation(const JsonPlace& place, Steps& out) {
  place.know_only({"behavior"});
  const auto behavior = place.find("behavior");
  out.push_back(std::make_unique<SplitCharacters>(
      unicode::is_punctuation, behavior ? read_delimiter(*behavior) : Delimiter::Isolated));
}

void read_split(const JsonPlace& place, Steps& out) {
  place.know_only({"pattern", "behavior", "invert"});
  out.push_back(std::make_unique<Split>(Pattern(place.at("pattern")),
                                        read_delimiter(place.at("behavior")),
                                        place.at("invert").flag()));
}

void read_whitespace(const JsonPlace& place, Steps& out) {
  place.know_only({});
  out.push_back(std::make_unique<Words>());
}

void read_whitespace_split(const JsonPlace& place, Steps& out) {
  place.know_only({});
  out.push_back(std::make_unique<SplitCharacters>(is_white, Delimiter::Removed));
}

void read_steps(const JsonPlace& place, Steps& out);

void read_sequence(const JsonPlace& place, Steps& out) {
  place.know_only({"pretokenizers"});
  for (const JsonPlace& part : place.at("pretokenizers").items()) read_steps(part, out);
}

struct Kind {
  std::string_view type;
  void (*read)(const JsonPlace& place, Steps& out);
};

constexpr Kind kKinds[] = {
    {"BertPreTokenizer", read_bert},
    {"ByteLevel", read_byte_level},
    {"CharDelimiterSplit", read_delimiter_split},
    {"Digits", read_digits},
    {"FixedLength", read_fixed_length},
    {"Metaspace", read_metaspace},
    {"Punctuation", read_punctuation},
    {"Sequence", read_sequence},
    {"Split", read_split},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
};

void read_steps(const JsonPlace& place, Steps& out) {
  kind_of_part(place, place.type(), kKinds, "the pre-tokenizer").read(place, out);
}

}  // namespace

Delimiter read_delimiter(const JsonPlace& place) {
  constexpr std::pair<std::string_view, Delimiter> kNames[] = {
      {"Removed", Delimiter::Removed},
      {"Isolated", Delimiter::Isolated},
      {"MergedWithPrevious", Delimiter::MergedWithPrevious},
      {"MergedWithNext", Delimiter::MergedWithNext},
      {"Contiguous", Delimiter::Contiguous}};
  const std::string name = place.text();
  for (const auto& [known, value] : kNames)
    if (name == known) return value;
  place.refuse("the behavior " + in_quotes(name),
               "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

bool PreTokenizer::is_local() const {
  // Without a step the text is one word, which merges freely.
  return !steps.empty() &&
         std::all_of(steps.begin(), steps.end(), [](const auto& step) { return step->is_local(); });
}

PreTokenizer read_pre_tokenizer(const JsonPlace& place) {
  PreTokenizer made;
  read_steps(place, made.steps);
  if (!made.steps.empty() && made.steps.back()->writes_byte_letters()) {
    made.ends_in_byte_letters = true;
    made.steps.pop_back();
  }
  return made;
}

std::unique_ptr<CutStep> words_by(Expression expression) {
  return std::make_unique<WordsByExpression>(std::move(expression));
}

std::unique_ptr<CutStep> words_of_gpt2() { return std::make_unique<Gpt2Words>(); }

}  // namespace aloft::parts
