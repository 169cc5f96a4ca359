#include "data/tokenizers/parts/decoders.h"

#include <cstdint>

#include "base/text.h"
#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/parts/kind_of_part.h"
#include "data/tokenizers/parts/normalizers.h"
#include "data/tokenizers/parts/unicode.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

using Tokens = std::vector<std::string>;
using Made = std::unique_ptr<Decoder>;

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

void replace_all(std::string& in, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  for (std::size_t at = 0; (at = in.find(what, at)) != std::string::npos; at += by.size())
    in.replace(at, what.size(), by);
}

class ByteLetters final : public Decoder {
 public:
  void apply(Tokens& tokens, MatchSpace&) const override {
    std::string bytes, text;
    for (const std::string& token : tokens) {
      const auto spelt = bytes_of_letters(token);
      bytes += spelt ? *spelt : token;
    }
    tokens.assign(1, unicode::repair(bytes, text) ? text : bytes);
  }
  bool reads_byte_letters() const override { return true; }
};

// A word's end is a suffix: a space, but behind the last word.
class Bpe final : public Decoder {
 public:
  explicit Bpe(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(Tokens& tokens, MatchSpace&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], suffix_, i + 1 < tokens.size() ? " " : "");
  }

 private:
  std::string suffix_;
};

class ByteTokens final : public Decoder {
 public:
  void apply(Tokens& tokens, MatchSpace&) const override {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      std::string repaired;
      if (unicode::repair(bytes, repaired))
        out.insert(out.end(), bytes.size(), std::string(kReplacementCharacter));
      else
        out.push_back(bytes);
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = byte_of_token(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }
  bool reads_byte_tokens() const override { return true; }
};

class Fuse final : public Decoder {
 public:
  void apply(Tokens& tokens, MatchSpace&) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::move(all));
  }
};

class Metaspace final : public Decoder {
 public:
  Metaspace(std::string mark, bool was_prepended)
      : mark_(std::move(mark)), was_prepended_(was_prepended) {}
  void apply(Tokens& tokens, MatchSpace&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], mark_, i == 0 && was_prepended_ ? "" : " ");
  }

 private:
  std::string mark_;
  bool was_prepended_;
};

class Replace final : public Decoder {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(Tokens& tokens, MatchSpace& space) const override {
    for (std::string& token : tokens) {
      if (token.empty()) continue;
      std::string out;
      pattern_.walk(token, space, [&](std::size_t begin, std::size_t end, bool is_match) {
        if (is_match)
          out += content_;
        else
          out.append(token, begin, end - begin);
      });
      token = std::move(out);
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Strip final : public Decoder {
 public:
  Strip(std::string content, std::int64_t start, std::int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(Tokens& tokens, MatchSpace&) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::int64_t i = 0; i < start_ && rest.starts_with(content_); ++i)
        rest.remove_prefix(content_.size());
      for (std::int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i)
        rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class WordPiece final : public Decoder {
 public:
  WordPiece(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(Tokens& tokens, MatchSpace&) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && token.starts_with(prefix_))
        token.erase(0, prefix_.size());
      else if (i > 0)
        token.insert(0, " ");
      if (cleanup_) tidy(token);
    }
  }

 private:
  // English marks and endings stand close to the word before.
  static void tidy(std::string& token) {
    constexpr std::pair<std::string_view, std::string_view> kCloser[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [apart, close] : kCloser) replace_all(token, apart, close);
  }

  std::string prefix_;
  bool cleanup_;
};

template <class Plain>
Made read_plain(const JsonPlace& place) {
  place.know_only({});
  return std::make_unique<Plain>();
}

Made read_byte_level(const JsonPlace& place) {
  place.know_only({"add_prefix_space", "trim_offsets", "use_regex"});  // of the way in
  return std::make_unique<ByteLetters>();
}

Made read_bpe(const JsonPlace& place) {
  place.know_only({"suffix"});
  return std::make_unique<Bpe>(place.at("suffix").text());
}

Made read_metaspace(const JsonPlace& place) {
  place.know_only({"replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  std::string mark;
  utf8::append(mark, place.at("replacement").character());
  const bool before = place.flag_or("add_prefix_space", true);
  const std::string scheme = place.text_or("prepend_scheme", before ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    place.at("prepend_scheme").refuse(in_quotes(scheme), "always, first or never");
  return std::make_unique<Metaspace>(mark, scheme != "never");
}

Made read_replace(const JsonPlace& place) {
  Replacement r = read_replacement(place);
  return std::make_unique<Replace>(std::move(r.pattern), std::move(r.content));
}

Made read_strip(const JsonPlace& place) {
  place.know_only({"content", "start", "stop"});
  std::string content;
  utf8::append(content, place.at("content").character());
  return std::make_unique<Strip>(content, place.at("start").whole(0, INT64_MAX),
                                 place.at("stop").whole(0, INT64_MAX));
}

Made read_word_piece(const JsonPlace& place) {
  place.know_only({"prefix", "cleanup"});
  return std::make_unique<WordPiece>(place.at("prefix").text(), place.at("cleanup").flag());
}

struct Kind {
  std::string_view type;
  Made (*read)(const JsonPlace& place);
};

constexpr Kind kKinds[] = {
    {"BPEDecoder", read_bpe},       {"ByteFallback", read_plain<ByteTokens>},
    {"ByteLevel", read_byte_level}, {"Fuse", read_plain<Fuse>},
    {"Metaspace", read_metaspace},  {"Replace", read_replace},
    {"Strip", read_strip},          {"WordPiece", read_word_piece},
};

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::vector<Made> read_decoders(const JsonPlace& place) {
  std::vector<Made> all;
  if (const std::string type = place.type(); type == "Sequence") {
    place.know_only({"decoders"});
    for (const JsonPlace& part : place.at("decoders").items())
      for (auto& one : read_decoders(part)) all.push_back(std::move(one));
  } else {
    all.push_back(kind_of_part(place, type, kKinds, "the decoder", "Sequence").read(place));
  }
  return all;
}

Made byte_letters_decoder() { return std::make_unique<ByteLetters>(); }

std::string decode(const std::vector<Made>& all, Tokens tokens, MatchSpace& space) {
  for (const auto& one : all) one->apply(tokens, space);
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (all.empty() && i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

}  // namespace aloft::parts
