#include "observe/config_check/tensor_facts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "observe/compare/elements.h"
#include "scalar/float_formats.h"
#include "scalar/philox.h"

namespace aloft::config_check {

namespace {

// Sums of well-mixed words: what comes in pieces or in another order adds up to the same.
std::uint64_t hash_of(double value) {
  if (value == 0) value = 0;  // -0, too
  if (std::isnan(value)) return scalar::mix64(0x7ff8000000000001u);
  return scalar::mix64(std::bit_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15u);
}
std::uint64_t hash_of(double value, double rest) {
  const std::uint64_t hash = hash_of(value);
  return rest == 0 ? hash : scalar::mix64(hash ^ std::bit_cast<std::uint64_t>(rest));
}
std::uint64_t placed(std::uint64_t hash, std::uint64_t at) {
  return scalar::mix64(hash ^ scalar::mix64(at + 0x632be59bd9b4e019u));
}

template <class T>
std::vector<double> numbers(std::span<const std::byte> bytes, double (*number)(T)) {
  std::vector<double> all(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < all.size(); ++i) {
    T one;
    std::memcpy(&one, bytes.data() + i * sizeof(T), sizeof(T));
    all[i] = number(one);
  }
  return all;
}

template <class T>
double plain(T v) {
  return static_cast<double>(v);
}

std::vector<double> numbers(DType type, std::span<const std::byte> bytes) {
  switch (type) {
    case DType::F64:
      return numbers<double>(bytes, plain);
    case DType::F32:
      return numbers<float>(bytes, plain);
    case DType::BF16:
      return numbers<scalar::Bf16>(bytes, [](scalar::Bf16 v) { return scalar::f64_of(v); });
    case DType::F16:
      return numbers<scalar::F16>(bytes, [](scalar::F16 v) { return scalar::f64_of(v); });
    case DType::I64:
      return numbers<std::int64_t>(bytes, plain);
    case DType::I32:
      return numbers<std::int32_t>(bytes, plain);
    case DType::I8:
      return numbers<std::int8_t>(bytes, plain);
    case DType::U8:
    case DType::Bool:
      return numbers<std::uint8_t>(bytes, plain);
  }
  throw InternalError("a type has its numbers");
}

}  // namespace

// Powers of two, which round nothing: what is beyond kLarge, or below its inverse, is scaled before
// it is squared.
constexpr double kLarge = 0x1p500, kSquareScale = 0x1p600, kSumScale = 0x1p-64;

TensorReader::TensorReader(std::vector<std::int64_t> shape, bool keep_rows)
    : keep_rows_(keep_rows) {
  row_elements_ = 1;
  for (std::size_t d = 1; d < shape.size(); ++d)
    row_elements_ *= static_cast<std::uint64_t>(shape[d]);
  if (shape.size() == 2) rows_ = static_cast<std::uint64_t>(shape[0]);
  facts_.shape = std::move(shape);
  facts_.max = -std::numeric_limits<double>::infinity();
  facts_.min = std::numeric_limits<double>::infinity();
}

void TensorReader::add(std::span<const double> values, std::span<const double> rests) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    const std::uint64_t hash = hash_of(v, rests.empty() ? 0 : rests[i]);
    const std::uint64_t here = placed(hash, at_);
    hashes_.ordered += here;
    hashes_.any_order += hash;
    if (rows_ > 0) hashes_.transposed += placed(hash, in_row_ * rows_ + row_);
    row_hash_ += placed(hash, in_row_);
    ++at_;
    if (++in_row_ == row_elements_) {
      hashes_.any_rows += scalar::mix64(row_hash_);
      if (keep_rows_) hashes_.rows.push_back(row_hash_);
      row_hash_ = in_row_ = 0;
      ++row_;
    }
    // A NaN makes all figures NaN, as torch has it.
    if (!(v <= facts_.max)) facts_.max = std::isnan(facts_.max) ? facts_.max : v;
    if (!(v >= facts_.min)) facts_.min = std::isnan(facts_.min) ? facts_.min : v;
    sum_ += v, scaled_sum_ += v * kSumScale;
    const double size = std::abs(v);
    if (size > kLarge)
      of_large_ += (v / kSquareScale) * (v / kSquareScale);
    else if (size < 1 / kLarge)
      of_small_ += (v * kSquareScale) * (v * kSquareScale);
    else
      squares_ += v * v;
  }
}

TensorFacts TensorReader::facts() const {
  TensorFacts f = facts_;
  f.hashes = hashes_;
  if (at_ == 0) f.max = f.min = std::numeric_limits<double>::quiet_NaN();
  const auto count = static_cast<double>(at_);
  f.mean = std::isfinite(sum_) ? sum_ / count : scaled_sum_ / count / kSumScale;
  const double few =
      std::hypot(std::sqrt(of_large_) * kSquareScale, std::sqrt(of_small_) / kSquareScale);
  f.norm = std::isnan(squares_) ? squares_ : std::hypot(std::sqrt(squares_), few);
  return f;
}

TensorFacts facts_of(DType type, const std::vector<std::int64_t>& shape,
                     std::span<const std::byte> bytes, bool keep_rows) {
  TensorReader reader(shape, keep_rows);
  constexpr std::size_t kPiece = 1 << 18;  // bytes, a multiple of every element's
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kPiece, bytes.size()))) {
    const std::span<const std::byte> piece = bytes.first(std::min(kPiece, bytes.size()));
    std::vector<double> rests;
    if (type == DType::I64) rests = numbers<std::int64_t>(piece, compare::rest_of);
    reader.add(numbers(type, piece), rests);
  }
  return reader.facts();
}

Likeness likeness(const TensorFacts& a, const TensorFacts& b) {
  const TensorHashes &x = *a.hashes, &y = *b.hashes;
  if (x.any_order != y.any_order) return Likeness::Other;
  if (a.shape == b.shape && x.ordered == y.ordered) return Likeness::Same;
  const bool is_turned = a.shape.size() == 2 && b.shape.size() == 2 && a.shape[0] == b.shape[1] &&
                         a.shape[1] == b.shape[0];
  if (is_turned && x.transposed == y.ordered) return Likeness::Transposed;
  if (a.shape == b.shape && x.any_rows == y.any_rows) return Likeness::RowsMoved;
  return Likeness::Permuted;
}

std::optional<double> scale_between(const TensorFacts& a, const TensorFacts& b) {
  const double scale = b.norm / a.norm;
  if (!std::isfinite(scale) || scale == 0) return std::nullopt;
  for (const double v : {a.max, a.min, a.mean, b.max, b.min, b.mean})
    if (!std::isfinite(v)) return std::nullopt;  // an infinity is any number's multiple
  constexpr double kRounding = 1e-5;  // of statistics in f32, and of weights that were multiplied
  // Max and min change places under a negative number, which a norm does not show.
  for (const double s : {scale, -scale}) {
    if (std::abs(s - 1) < kRounding) continue;
    const double largest = std::max(std::abs(b.max), std::abs(b.min));
    const auto is = [&](double x, double y) { return std::abs(x * s - y) <= kRounding * largest; };
    if (s > 0 ? is(a.max, b.max) && is(a.min, b.min) && is(a.mean, b.mean)
              : is(a.max, b.min) && is(a.min, b.max) && is(a.mean, b.mean))
      return s;
  }
  return std::nullopt;
}

}  // namespace aloft::config_check
