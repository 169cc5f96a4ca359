#include "data/tokenizers/char_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/tokenizers/tokenizer_json.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

constexpr char32_t kLastCodePoint = 0x10FFFF;
constexpr const char* kByteFallback = "byte_fallback";

class CharTokenizer final : public Tokenizer {
 public:
  CharTokenizer(std::vector<char32_t> alphabet, bool byte_fallback)
      : alphabet_(std::move(alphabet)), byte_fallback_(byte_fallback) {
    id_of_.assign(alphabet_.back() + 1, -1);
    for (std::size_t i = 0; i < alphabet_.size(); ++i) {
      id_of_[alphabet_[i]] = static_cast<std::int32_t>(i);
      utf8::append(pieces_.emplace_back(), alphabet_[i]);
    }
    first_byte_ = static_cast<std::int32_t>(alphabet_.size());
    if (byte_fallback_)
      for (int b = 0; b < 256; ++b) pieces_.push_back(std::string(1, static_cast<char>(b)));
  }

  std::string_view kind() const override { return "char"; }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }

  void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const override {
    ids.reserve(ids.size() + bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
      const utf8::Step step = utf8::step(bytes, at);
      const std::int32_t id = step.valid && step.code < id_of_.size() ? id_of_[step.code] : -1;
      if (id >= 0) {
        ids.push_back(id);
      } else if (byte_fallback_) {
        for (std::size_t i = 0; i < step.length; ++i)
          ids.push_back(first_byte_ + static_cast<unsigned char>(bytes[at + i]));
      } else {
        refuse(step, at);
      }
      at += step.length;
    }
  }

  std::size_t safe_cut(std::string_view text) const override { return utf8::safe_cut(text); }

  std::uint64_t fingerprint() const override {
    const std::string_view rule =
        byte_fallback_ ? "aloft char tokenizer 1 +bytes" : "aloft char tokenizer 1";
    return hash64(std::as_bytes(std::span(alphabet_)), hash64(rule));
  }

  std::string as_tokenizer_json() const {
    return tokenizer_json_of_characters(std::span(pieces_).first(alphabet_.size()), byte_fallback_);
  }

  void save(const Path& folder) const override {
    nlohmann::ordered_json json{{"format", "aloft-tokenizer"}, {"version", 1}, {"kind", "char"}};
    json[kByteFallback] = byte_fallback_;
    json["fingerprint"] = hex16(fingerprint());
    json["code_points"] = std::vector<std::uint32_t>(alphabet_.begin(), alphabet_.end());
    make_folder(folder);
    write_file_atomic(folder / kTokenizerFile, json.dump() + "\n");
  }

 protected:
  std::string_view piece(std::int32_t id) const override { return pieces_[id]; }

 private:
  [[noreturn]] void refuse(const utf8::Step& step, std::size_t at) const {
    throw DataError("E0501", "a character that the tokenizer does not know")
        .at(fmt::format("byte {}", at))
        .saw(step.valid ? fmt::format("U+{:04X}", static_cast<std::uint32_t>(step.code))
                        : fmt::format("byte 0x{:02x}, which is not UTF-8",
                                      static_cast<std::uint32_t>(step.code)))
        .need(fmt::format("one of the {} characters of the text that the tokenizer was made from",
                          alphabet_.size()))
        .advice("leave the character out, or train with tokenizer kind byte or bpe");
  }

  std::vector<char32_t> alphabet_;
  bool byte_fallback_;
  std::vector<std::int32_t> id_of_;  // by code point, up to the largest in the alphabet
  std::vector<std::string> pieces_;
  std::int32_t first_byte_ = 0;
};

std::unique_ptr<Tokenizer> make(const SettingValues& settings, const Corpus& corpus,
                                const CorpusSplit& split) {
  CharAlphabet alphabet;
  for (const auto* parts : {&split.train, &split.validation})  // both are to be encoded
    for (const TextPart& part : *parts)
      read_part(corpus, part, utf8::safe_cut, [&](std::string_view text) { alphabet.add(text); });
  return alphabet.build(std::get<bool>(settings.find("byte_fallback")->second)
                            ? ByteFallback::Always
                            : ByteFallback::WhereNeeded);
}

std::unique_ptr<Tokenizer> read(const Path& folder, const nlohmann::json& json) {
  const Path path = folder / kTokenizerFile;
  const auto points = json.find("code_points");
  const auto fallback = json.find(kByteFallback);
  if (points == json.end() || !points->is_array() || fallback == json.end() ||
      !fallback->is_boolean())
    refuse_tokenizer(path, "fields missing", "an array code_points and a flag byte_fallback");
  std::vector<char32_t> alphabet;
  for (const nlohmann::json& point : *points) {
    if (!point.is_number_unsigned() || point.get<std::uint64_t>() > kLastCodePoint)
      refuse_tokenizer(path, "the code point " + in_quotes(point.dump()), "numbers up to 0x10FFFF");
    alphabet.push_back(static_cast<char32_t>(point.get<std::uint64_t>()));
  }
  return make_char_tokenizer(std::move(alphabet), fallback->get<bool>());
}

}  // namespace

CharAlphabet::CharAlphabet() : seen_(kLastCodePoint + 1) {}

void CharAlphabet::add(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Step step = utf8::step(text, at);
    if (step.valid)
      seen_[step.code] = true;
    else
      broken_bytes_ = true;
    at += step.length;
  }
}

std::unique_ptr<Tokenizer> CharAlphabet::build(ByteFallback fallback) const {
  std::vector<char32_t> alphabet;
  for (char32_t c = 0; c <= kLastCodePoint; ++c)
    if (seen_[c]) alphabet.push_back(c);
  if (alphabet.empty())
    throw DataError("E0504", "no text to make a char tokenizer from")
        .saw(broken_bytes_ ? "bytes, but no UTF-8 character" : "nothing")
        .advice("check the list of files, or use tokenizer kind byte");
  return make_char_tokenizer(std::move(alphabet),
                             broken_bytes_ || fallback == ByteFallback::Always);
}

std::unique_ptr<Tokenizer> make_char_tokenizer(std::vector<char32_t> alphabet, bool byte_fallback) {
  const auto out_of_order =
      std::adjacent_find(alphabet.begin(), alphabet.end(), std::greater_equal<>());
  if (alphabet.empty() || out_of_order != alphabet.end() || alphabet.back() > kLastCodePoint)
    throw DataError("E0503", "the alphabet of a char tokenizer is damaged")
        .need("at least one code point, ascending, at most 0x10FFFF");
  return std::make_unique<CharTokenizer>(std::move(alphabet), byte_fallback);
}

TokenizerKind char_tokenizer() {
  TokenizerKind kind;
  kind.name = "char";
  kind.meaning = "the distinct characters of the text";
  kind.settings = {{"byte_fallback", false, {}, "accept every input, for 256 more ids"}};
  kind.make = make;
  kind.read = read;
  kind.as_tokenizer_json = [](const Tokenizer& tokenizer) {
    return static_cast<const CharTokenizer&>(tokenizer).as_tokenizer_json();
  };
  return kind;
}

}  // namespace aloft
