#include "data/tokenizers/parts/charsmap.h"

#include "data/tokenizers/parts/base64.h"
#include "data/tokenizers/parts/unicode.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

constexpr std::size_t kLongestAtOnce = 5;

// A unit of the double array, as darts-clone lays it out.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
std::uint32_t label_of(std::uint32_t unit) { return unit & (0x80000000 | 0xFF); }
std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

}  // namespace

Charsmap::Charsmap(const JsonPlace& place) {
  const auto bytes = from_base64(place.text());
  if (!bytes || bytes->size() < 4) place.refuse("no table", "a table in base64");
  const std::string_view all(*bytes);
  const std::size_t size = little_endian(all);
  if (size % 4 != 0 || size == 0 || size > all.size() - 4)
    place.refuse("an array of " + std::to_string(size) + " bytes in a table of " +
                     std::to_string(all.size()),
                 "one that fits in");
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(little_endian(all.substr(at)));
  texts_ = all.substr(4 + size);
}

std::optional<std::string_view> Charsmap::replacement(std::string_view text) const {
  std::size_t node = offset_of(units_[0]);
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return std::nullopt;
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) return std::nullopt;
    const std::uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) return std::nullopt;
    const std::size_t begin = value_of(units_[node]);
    if (begin >= texts_.size()) return std::string_view();
    return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

void Charsmap::append(std::string& out, std::string_view text) const {
  const auto put = [&](std::string_view part) {
    const auto found = replacement(part);
    if (found) out += *found;
    return found.has_value();
  };
  unicode::Graphemes graphemes(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = graphemes.next();
    const std::string_view seen = text.substr(at, end - at);
    at = end;
    if (seen.size() <= kLongestAtOnce && put(seen)) continue;
    for (std::size_t i = 0; i < seen.size();) {
      const std::string_view one = seen.substr(i, utf8::step(seen, i).length);
      if (!put(one)) out += one;
      i += one.size();
    }
  }
}

}  // namespace aloft::parts
