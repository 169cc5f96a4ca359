#include "types/shape.h"

#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "types/bound_watch.h"

namespace aloft {
namespace {

[[noreturn]] void bad_dim(std::string_view text) {
  throw UserError("E0102", "not a dimension: '" + std::string(text) + "'")
      .need("a number, or a symbol with its bound such as B<=8 or 256*B<=8");
}

std::int64_t parse_int(std::string_view text, std::string_view whole) {
  std::int64_t v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc{} || end != text.data() + text.size() || v < 0) bad_dim(whole);
  return v;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r))
    throw UserError("E0103", "a tensor's size does not fit into 63 bits")
        .saw(std::to_string(a) + " * " + std::to_string(b))
        .need("a product below 2^63");
  return r;
}

}  // namespace

Dim Dim::symbolic(Name symbol, std::int64_t bound, std::int64_t times) {
  Dim d;
  d.factor_ = times;
  d.symbol_ = symbol;
  d.bound_ = bound;
  return d;
}

namespace {
thread_local bool* bound_read = nullptr;
}

BoundWatch::BoundWatch(bool* note) : saved_(bound_read) { bound_read = note; }
BoundWatch::~BoundWatch() { bound_read = saved_; }

std::int64_t Dim::max() const { return is_constant() ? factor_ : checked_mul(factor_, bound()); }

std::int64_t Dim::bound() const {
  if (is_constant()) return factor_;
  if (bound_read) *bound_read = true;
  return bound_;
}

bool Dim::equals_bound(const Dim& a, const Dim& b) {
  if (!bound_read || a.is_constant() == b.is_constant()) return false;
  const Dim &number = a.is_constant() ? a : b, &length = a.is_constant() ? b : a;
  if (length.factor_ == 0 || number.factor_ % length.factor_ != 0) return false;
  const std::int64_t value = number.factor_ / length.factor_;  // of the symbol
  if (value < kLeastBatch || value > length.bound_) return false;
  *bound_read = true;
  return value == length.bound_;
}

std::string Dim::str() const {
  if (is_constant()) return std::to_string(factor_);
  std::string s = factor_ == 1 ? "" : std::to_string(factor_) + "*";
  return s + symbol_.str() + "<=" + std::to_string(bound_);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.is_constant() && !b.is_constant())
    throw UserError("E0101", "the product of two symbolic dimensions is not a dimension")
        .saw(a.str() + " * " + b.str())
        .need("at most one symbolic dimension in a reshape or flatten");
  Dim r = a.is_constant() ? b : a;
  r.factor_ = checked_mul(a.factor_, b.factor_);
  return r;
}

Shape Shape::of(const std::vector<std::int64_t>& extents) {
  return Shape(std::vector<Dim>(extents.begin(), extents.end()));
}

Dim Shape::numel() const {
  Dim n = 1;
  for (const Dim& d : dims_) n = n * d;
  return n;
}

void Shape::refuse_axis(int i) const {
  throw UserError("E0107", "a shape has no axis " + std::to_string(i))
      .saw(str() + ", rank " + std::to_string(rank()))
      .need(rank() == 0
                ? "a tensor with axes"
                : "an axis from " + std::to_string(-rank()) + " to " + std::to_string(rank() - 1));
}

std::int64_t Shape::max_numel() const {
  std::int64_t n = 1;  // of the extents that are not 0: the product of any of them fits then
  bool is_empty = false;
  for (const Dim& d : dims_) {
    if (d.is_negative())
      throw UserError("E0103", "a shape has a negative extent")
          .saw(str())
          .need("extents of 0 or more");
    const std::int64_t extent = d.max();
    if (extent == 0) is_empty = true;
    n = checked_mul(n, extent == 0 ? 1 : extent);
  }
  return is_empty ? 0 : n;
}

std::size_t TensorType::max_bytes() const {
  return static_cast<std::size_t>(
      checked_mul(shape.max_numel(), static_cast<std::int64_t>(size_of(dtype))));
}

bool Shape::is_constant() const {
  for (const Dim& d : dims_)
    if (!d.is_constant()) return false;
  return true;
}

std::vector<std::int64_t> Shape::max_extents() const {
  std::vector<std::int64_t> e;
  for (const Dim& d : dims_) e.push_back(d.max());
  return e;
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank(); ++i) s += (i ? "," : "") + dims_[i].str();
  return s + "]";
}

Dim parse_dim(std::string_view text) {
  const std::string_view whole = text;
  const auto bound_at = text.find("<=");
  if (bound_at == std::string_view::npos) return Dim(parse_int(text, whole));
  const std::int64_t bound = parse_int(text.substr(bound_at + 2), whole);
  text = text.substr(0, bound_at);
  std::int64_t factor = 1;
  if (const auto star = text.find('*'); star != std::string_view::npos) {
    factor = parse_int(text.substr(0, star), whole);
    text = text.substr(star + 1);
  }
  if (!is_identifier(text)) bad_dim(whole);
  return Dim::symbolic(text, bound, factor);
}

Shape parse_shape(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    throw UserError("E0102", "not a shape: '" + std::string(text) + "'").need("[2,3] or [B<=8,3]");
  text = text.substr(1, text.size() - 2);
  Shape s;
  while (!text.empty()) {
    const auto comma = text.find(',');
    s.dims().push_back(parse_dim(text.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    text = text.substr(comma + 1);
    if (text.empty()) parse_int(text, "");
  }
  return s;
}

TensorType parse_tensor_type(std::string_view text) {
  const auto bracket = text.find('[');
  const auto dtype = parse_dtype(text.substr(0, bracket));
  if (!dtype || bracket == std::string_view::npos)
    throw UserError("E0102", "not a tensor type: '" + std::string(text) + "'")
        .need("a type such as f32[2,3], with f64 f32 bf16 f16 i64 i32 u8 i8 or bool");
  return {*dtype, parse_shape(text.substr(bracket))};
}

}  // namespace aloft
