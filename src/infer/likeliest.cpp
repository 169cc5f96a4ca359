#include "infer/likeliest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace aloft {
namespace {

constexpr std::size_t kFew = 2048;  // so many are sorted by comparisons as fast as by digits
constexpr int kDigitBits = 11, kDigits = 3;
constexpr std::size_t kDigitValues = std::size_t{1} << kDigitBits;

// A whole number that is smaller the larger x is, and the same for 0 and -0.
std::uint32_t rank_key(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);
  return bits >> 31 ? bits : ~bits & 0x7fffffffu;
}

struct Ranked {
  std::uint32_t key;
  std::int32_t token;
};

std::size_t digit(const Ranked& r, int place) {
  return r.key >> (place * kDigitBits) & (kDigitValues - 1);
}

// By digits, the lowest first: what is equal stays in the order of its tokens.
std::vector<std::int32_t> sorted_by_digits(std::span<const float> logits) {
  std::vector<Ranked> from(logits.size()), to(logits.size());
  std::array<std::array<std::size_t, kDigitValues>, kDigits> places{};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    from[i] = {rank_key(logits[i]), static_cast<std::int32_t>(i)};
    for (int place = 0; place < kDigits; ++place) ++places[place][digit(from[i], place)];
  }
  for (int place = 0; place < kDigits; ++place) {
    std::exclusive_scan(places[place].begin(), places[place].end(), places[place].begin(),
                        std::size_t{0});
    for (const Ranked& r : from) to[places[place][digit(r, place)]++] = r;
    std::swap(from, to);
  }
  std::vector<std::int32_t> tokens(logits.size());
  std::ranges::transform(from, tokens.begin(), &Ranked::token);
  return tokens;
}

}  // namespace

std::vector<std::int32_t> likeliest_first(std::span<const float> logits, std::size_t count) {
  count = std::min(count, logits.size());
  if (count > kFew) {
    std::vector<std::int32_t> tokens = sorted_by_digits(logits);
    tokens.resize(count);
    return tokens;
  }
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (count > 0 && count < tokens.size()) {
    std::nth_element(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count - 1),
                     tokens.end(), likelier);
  }
  tokens.resize(count);
  std::sort(tokens.begin(), tokens.end(), likelier);
  return tokens;
}

}  // namespace aloft
