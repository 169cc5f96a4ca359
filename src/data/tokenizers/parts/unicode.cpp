#include "data/tokenizers/parts/unicode.h"

#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utext.h>

#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "data/tokenizers/utf8.h"

namespace aloft::unicode {
namespace {

UChar32 of(char32_t code) { return static_cast<UChar32>(code); }

void ensure_done(UErrorCode status) { ensure(U_SUCCESS(status) != 0, "ICU has its data"); }

// Characters that another category was said of up to a version, of those that are asked for here.
struct Moved {
  char32_t code;
  int last_version;
  UCharCategory category;
};
constexpr Moved kMoved[] = {
    {0x166D, 11, U_OTHER_PUNCTUATION},
    {0x1734, 13, U_NON_SPACING_MARK},
    {0x1885, 8, U_OTHER_LETTER},
    {0x1886, 8, U_OTHER_LETTER},
    {0x1CF2, 11, U_COMBINING_SPACING_MARK},
    {0x1CF3, 11, U_COMBINING_SPACING_MARK},
    {0xA9BD, 10, U_COMBINING_SPACING_MARK},
    {0x111C9, 10, U_OTHER_PUNCTUATION},
    {0x1171E, 15, U_NON_SPACING_MARK},
};

// The bit of a character's category in a version of Unicode (a mask as U_GC_P_MASK).
std::uint32_t category_in(int version, char32_t code) {
  constexpr char32_t kOldest = 0x378;  // nothing below has come or changed since Unicode 8
  if (code >= kOldest) {
    UVersionInfo age;
    u_charAge(of(code), age);
    if (age[0] > version) return U_GC_CN_MASK;
    if (code >= kMoved[0].code)
      for (const Moved& moved : kMoved)
        if (moved.code == code && version <= moved.last_version) return U_MASK(moved.category);
  }
  return U_GET_GC_MASK(of(code));
}

// A normal form that leaves later characters alone: they neither decompose nor move nor compose.
const icu::Normalizer2& of_unicode_9(Form form) {
  struct All {
    icu::UnicodeSet known;
    std::unique_ptr<icu::FilteredNormalizer2> forms[4];
    All() {
      UErrorCode status = U_ZERO_ERROR;
      known.applyPattern(u"[:age=9.0:]", status);  // that version's, and those before
      known.freeze();
      const icu::Normalizer2* whole[] = {
          icu::Normalizer2::getNFCInstance(status), icu::Normalizer2::getNFDInstance(status),
          icu::Normalizer2::getNFKCInstance(status), icu::Normalizer2::getNFKDInstance(status)};
      ensure_done(status);
      for (int i = 0; i < 4; ++i)
        forms[i] = std::make_unique<icu::FilteredNormalizer2>(*whole[i], known);
    }
  };
  static const All all;
  return *all.forms[static_cast<int>(form)];
}

// Nothing below U+0300 changes in form C, and nothing of ASCII in any.
bool is_normal(std::string_view text, Form form) {
  if (is_ascii(text)) return true;
  if (form != Form::C) return false;
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0xCC) return false;  // U+0300 is CC 80
  return true;
}

std::size_t ascii_run(std::string_view text, std::size_t from) {
  std::size_t at = from;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

// How many bytes of a broken sequence belong together: the longest beginning of a right one.
std::size_t broken_length(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0xC2 || lead > 0xF4) return 1;
  const std::size_t wanted = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::size_t length = 1;
  while (length < wanted && position + length < text.size()) {
    const unsigned char next = byte(length);
    unsigned char least = 0x80, most = 0xBF;
    if (length == 1) {  // no overlong forms, no surrogates, nothing beyond U+10FFFF
      if (lead == 0xE0) least = 0xA0;
      if (lead == 0xED) most = 0x9F;
      if (lead == 0xF0) least = 0x90;
      if (lead == 0xF4) most = 0x8F;
    }
    if (next < least || next > most) break;
    ++length;
  }
  return length;
}

}  // namespace

bool is_ascii(std::string_view text) { return ascii_run(text, 0) == text.size(); }

void append_normal(std::string& out, std::string_view text, Form form) {
  if (is_normal(text, form)) {
    out += text;
    return;
  }
  UErrorCode status = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out, static_cast<std::int32_t>(text.size()));
  of_unicode_9(form).normalizeUTF8(
      0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink, nullptr,
      status);
  ensure_done(status);
}

void append_lower(std::string& out, char32_t code) {
  constexpr char32_t kDottedI = 0x130;
  if (code == kDottedI) {
    out += "i\xCC\x87";
    return;
  }
  utf8::append(out, static_cast<char32_t>(u_tolower(of(code))));
}

bool is_space(char32_t code) { return u_isUWhiteSpace(of(code)) != 0; }

bool is_numeric(char32_t code) { return (U_GET_GC_MASK(of(code)) & U_GC_N_MASK) != 0; }

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
           (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
  return (category_in(8, code) & U_GC_P_MASK) != 0;
}

bool is_mark(char32_t code) { return (category_in(9, code) & U_GC_M_MASK) != 0; }

bool is_nonspacing_mark(char32_t code) { return (category_in(8, code) & U_GC_MN_MASK) != 0; }

bool is_control_or_format(char32_t code) {
  return (category_in(8, code) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool is_word(char32_t code) {
  return (U_GET_GC_MASK(of(code)) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_isUAlphabetic(of(code)) || u_hasBinaryProperty(of(code), UCHAR_JOIN_CONTROL);
}

struct Graphemes::Iterator {
  std::unique_ptr<icu::BreakIterator> breaks;
  UText text = UTEXT_INITIALIZER;
  ~Iterator() { utext_close(&text); }
};

Graphemes::Graphemes(std::string_view text) : text_(text) {}
Graphemes::~Graphemes() = default;

std::size_t Graphemes::next() {
  const auto is_plain = [&](std::size_t i) {  // ends what is before it, begins anew
    return i == text_.size() ||
           (static_cast<unsigned char>(text_[i]) < 0x80 && text_[i] != '\r' && text_[i] != '\n');
  };
  if (is_plain(at_) && is_plain(at_ + 1)) return ++at_;
  if (!iterator_) {
    UErrorCode status = U_ZERO_ERROR;
    static const std::unique_ptr<const icu::BreakIterator> model(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
    ensure_done(status);
    iterator_ = std::make_unique<Iterator>();
    iterator_->breaks.reset(model->clone());
    utext_openUTF8(&iterator_->text, text_.data(), static_cast<std::int64_t>(text_.size()),
                   &status);
    iterator_->breaks->setText(&iterator_->text, status);
    ensure_done(status);
  }
  at_ = static_cast<std::size_t>(iterator_->breaks->following(static_cast<std::int32_t>(at_)));
  return at_;
}

bool repair(std::string_view text, std::string& out) {
  std::size_t copied = 0;
  bool is_broken = false;
  for (std::size_t at = ascii_run(text, 0); at < text.size(); at = ascii_run(text, at)) {
    const utf8::Step step = utf8::step(text, at);
    if (step.valid) {
      at += step.length;
      continue;
    }
    if (!is_broken) out.clear();
    is_broken = true;
    out += text.substr(copied, at - copied);
    out += "\xEF\xBF\xBD";
    at += broken_length(text, at);
    copied = at;
  }
  if (is_broken) out += text.substr(copied);
  return is_broken;
}

}  // namespace aloft::unicode
