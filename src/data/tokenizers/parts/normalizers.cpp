#include "data/tokenizers/parts/normalizers.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/parts/charsmap.h"
#include "data/tokenizers/parts/kind_of_part.h"
#include "data/tokenizers/parts/unicode.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

using Made = std::unique_ptr<Normalizer>;

// Calls visit(code, characters) for every character of a text.
template <class Visit>
void characters(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Step step = utf8::step(text, at);
    visit(step.code, text.substr(at, step.length));
    at += step.length;
  }
}

class NormalForm final : public Normalizer {
 public:
  explicit NormalForm(unicode::Form form) : form_(form) {}
  void apply(NormalText& t, MatchSpace&) const override {
    t.spare.clear();
    unicode::append_normal(t.spare, t.text, form_);
    t.text.swap(t.spare);
  }
  bool is_local() const override { return true; }  // nothing composes with a space

 private:
  unicode::Form form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(NormalText& t, MatchSpace&) const override {
    t.spare.clear();
    characters(t.text, [&](char32_t code, std::string_view) {
      if (code < 0x80)
        t.spare += static_cast<char>(code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code);
      else
        unicode::append_lower(t.spare, code);
    });
    t.text.swap(t.spare);
  }
  bool is_local() const override { return true; }
};

// Leaves out the characters that `drops` says.
template <class Drops>
void leave_out(NormalText& t, Drops drops) {
  t.spare.clear();
  bool has_kept = false;
  characters(t.text, [&](char32_t code, std::string_view bytes) {
    if (drops(code)) {
      t.lost_front |= !has_kept;
      return;
    }
    has_kept = true;
    t.spare += bytes;
  });
  t.text.swap(t.spare);
}

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(NormalText& t, MatchSpace&) const override {
    std::size_t begin = 0, end = 0, at = 0;
    bool is_inside = false;
    characters(t.text, [&](char32_t code, std::string_view bytes) {
      const bool is_space = unicode::is_space(code);
      if (!is_space && !is_inside) begin = at;
      is_inside |= !is_space;
      at += bytes.size();
      if (!is_space) end = at;
    });
    if (!is_inside) begin = t.text.size();
    if (!left_) begin = 0;
    if (!right_ || end < begin) end = right_ ? begin : t.text.size();
    t.lost_front |= begin > 0;
    t.spare.assign(t.text, begin, end - begin);
    t.text.swap(t.spare);
  }

 private:
  bool left_, right_;
};

class StripAccents final : public Normalizer {
 public:
  void apply(NormalText& t, MatchSpace&) const override { leave_out(t, unicode::is_mark); }
};

class Replace final : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(NormalText& t, MatchSpace& space) const override {
    t.spare.clear();
    if (!t.text.empty())
      pattern_.walk(t.text, space, [&](std::size_t begin, std::size_t end, bool is_match) {
        if (is_match)
          t.spare += content_;
        else
          t.spare.append(t.text, begin, end - begin);
        t.lost_front |= is_match && begin == 0 && content_.empty();
      });
    t.text.swap(t.spare);
  }
  // One character for another, whatever stands around it.
  bool is_local() const override { return !pattern_.expression && pattern_.text == " "; }

 private:
  Pattern pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  void apply(NormalText& t, MatchSpace&) const override {
    if (!t.text.empty()) t.text.insert(0, text_);
  }

 private:
  std::string text_;
};

class Nmt final : public Normalizer {
 public:
  void apply(NormalText& t, MatchSpace&) const override {
    leave_out(t, [](char32_t c) {
      return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
             c == 0x8F || c == 0x9F;
    });
    t.spare.clear();
    characters(t.text, [&](char32_t c, std::string_view bytes) {
      const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                            (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                            c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      t.spare += is_space ? std::string_view(" ") : bytes;
    });
    t.text.swap(t.spare);
  }
};

struct BertRules {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};

class Bert final : public Normalizer {
 public:
  explicit Bert(BertRules rules) : rules_(rules) {}
  void apply(NormalText& t, MatchSpace& space) const override {
    if (rules_.clean_text) clean(t);
    if (rules_.handle_chinese_chars) space_ideographs(t);
    if (rules_.strip_accents) {
      NormalForm(unicode::Form::D).apply(t, space);
      leave_out(t, unicode::is_nonspacing_mark);
    }
    if (rules_.lowercase) Lowercase().apply(t, space);
  }

 private:
  static bool is_white(char32_t c) {
    return c == '\t' || c == '\n' || c == '\r' || unicode::is_space(c);
  }
  static void clean(NormalText& t) {
    leave_out(t, [](char32_t c) {
      const bool is_control =
          c != '\t' && c != '\n' && c != '\r' && unicode::is_control_or_format(c);
      return c == 0 || c == 0xFFFD || is_control;
    });
    t.spare.clear();
    characters(t.text, [&](char32_t c, std::string_view bytes) {
      t.spare += is_white(c) ? std::string_view(" ") : bytes;
    });
    t.text.swap(t.spare);
  }
  static bool is_ideograph(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  }
  static void space_ideographs(NormalText& t) {
    t.spare.clear();
    characters(t.text, [&](char32_t c, std::string_view bytes) {
      if (!is_ideograph(c)) {
        t.spare += bytes;
        return;
      }
      t.spare += ' ';
      t.spare += bytes;
      t.spare += ' ';
    });
    t.text.swap(t.spare);
  }

  BertRules rules_;
};

class ByteLetters final : public Normalizer {
 public:
  void apply(NormalText& t, MatchSpace&) const override {
    t.spare.clear();
    append_letters(t.spare, t.text);
    t.text.swap(t.spare);
  }
};

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}
  void apply(NormalText& t, MatchSpace&) const override {
    t.spare.clear();
    map_.append(t.spare, t.text);
    t.text.swap(t.spare);
  }

 private:
  Charsmap map_;
};

template <unicode::Form form>
Made read_form(const JsonPlace& place) {
  place.know_only({});
  return std::make_unique<NormalForm>(form);
}

template <class Plain>
Made read_plain(const JsonPlace& place) {
  place.know_only({});
  return std::make_unique<Plain>();
}

Made read_strip(const JsonPlace& place) {
  place.know_only({"strip_left", "strip_right"});
  return std::make_unique<Strip>(place.at("strip_left").flag(), place.at("strip_right").flag());
}

Made read_replace(const JsonPlace& place) {
  Replacement r = read_replacement(place);
  return std::make_unique<Replace>(std::move(r.pattern), std::move(r.content));
}

Made read_prepend(const JsonPlace& place) {
  place.know_only({"prepend"});
  return std::make_unique<Prepend>(place.at("prepend").text());
}

Made read_bert(const JsonPlace& place) {
  place.know_only({"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool lowercase = place.at("lowercase").flag();
  return std::make_unique<Bert>(BertRules{place.at("clean_text").flag(),
                                          place.at("handle_chinese_chars").flag(),
                                          place.flag_or("strip_accents", lowercase), lowercase});
}

Made read_precompiled(const JsonPlace& place) {
  place.know_only({"precompiled_charsmap"});
  return std::make_unique<Precompiled>(Charsmap(place.at("precompiled_charsmap")));
}

struct Kind {
  std::string_view type;
  Made (*read)(const JsonPlace& place);
};

constexpr Kind kKinds[] = {
    {"BertNormalizer", read_bert},
    {"ByteLevel", read_plain<ByteLetters>},
    {"Lowercase", read_plain<Lowercase>},
    {"NFC", read_form<unicode::Form::C>},
    {"NFD", read_form<unicode::Form::D>},
    {"NFKC", read_form<unicode::Form::KC>},
    {"NFKD", read_form<unicode::Form::KD>},
    {"Nmt", read_plain<Nmt>},
    {"Precompiled", read_precompiled},
    {"Prepend", read_prepend},
    {"Replace", read_replace},
    {"Strip", read_strip},
    {"StripAccents", read_plain<StripAccents>},
};

}  // namespace

Pattern::Pattern(const JsonPlace& place) {
  place.know_keys({"String", "Regex"});
  const auto plain = place.find("String"), regex = place.find("Regex");
  if (plain.has_value() == regex.has_value()) place.refuse("both or neither", "String or Regex");
  if (regex) {
    expression = std::make_unique<Expression>(regex->text(), *regex);
    return;
  }
  text = plain->text();
  if (text.empty()) plain->refuse("an empty text", "one that can be found");
}

Replacement read_replacement(const JsonPlace& place) {
  place.know_only({"pattern", "content"});
  std::string content = place.at("content").text();
  Pattern pattern(place.at("pattern"));
  // What matched may be named in it, by rules of an expression library of its own.
  if (pattern.expression && content.find('$') != std::string::npos)
    place.at("content").refuse(in_quotes(content), "a text without $ behind a Regex");
  return {std::move(pattern), std::move(content)};
}

std::vector<std::unique_ptr<Normalizer>> read_normalizers(const JsonPlace& place) {
  std::vector<std::unique_ptr<Normalizer>> all;
  if (const std::string type = place.type(); type == "Sequence") {
    place.know_only({"normalizers"});
    for (const JsonPlace& part : place.at("normalizers").items())
      for (auto& one : read_normalizers(part)) all.push_back(std::move(one));
  } else {
    all.push_back(kind_of_part(place, type, kKinds, "the normalizer", "Sequence").read(place));
  }
  return all;
}

void normalize(const std::vector<std::unique_ptr<Normalizer>>& all, NormalText& t,
               MatchSpace& space) {
  const std::size_t most =
      std::min(t.text.size() * kMostGrowth + (std::size_t{1} << 20), kMostNormalized);
  const auto check = [&] {
    if (t.text.size() > most)
      throw unusable("the normalizer", "",
                     "a text that has become " + std::to_string(t.text.size()) + " bytes long",
                     "at most " + std::to_string(kMostGrowth) + " times the text, and 2 GiB");
  };
  check();
  for (const auto& one : all) {
    one->apply(t, space);
    check();
  }
}

}  // namespace aloft::parts
