#include "frontend/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace aloft {
namespace {

constexpr std::int64_t kWhole = 1000, kEdge = 3;  // elements shown all; at each end of an axis

// Extents as the values have them: a symbol's follows from their number, where there is one such.
std::optional<std::vector<std::int64_t>> extents_of(const Shape& shape, std::size_t elements) {
  std::vector<std::int64_t> extents;
  std::int64_t known = 1;
  int symbol = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    extents.push_back(shape[i].max());
    if (!shape[i].is_constant() && symbol >= 0) return std::nullopt;
    if (shape[i].is_constant())
      known *= extents.back();
    else
      symbol = i;
  }
  if (symbol >= 0 && known > 0)
    extents[static_cast<std::size_t>(symbol)] = static_cast<std::int64_t>(elements) / known;
  return extents;
}

// How every number of a tensor is written.
class Form {
 public:
  Form(DType type, const std::vector<std::int64_t>&) : type_(type) {}
  Form(DType type, const std::vector<double>& values) : type_(type) {
    bool is_whole = true;
    for (const double v : values) {
      if (!std::isfinite(v)) continue;
      is_whole = is_whole && v == std::floor(v);
      if (v == 0) continue;
      most_ = std::max(most_, std::abs(v));
      least_ = least_ == 0 ? std::abs(v) : std::min(least_, std::abs(v));
    }
    constexpr double kLarge = 1e5, kSmall = 1e-4, kRange = 1e4;
    is_whole_ = is_whole && most_ < kLarge;
    is_exponential_ = !is_whole_ && (most_ >= kLarge ||
                                     (least_ > 0 && (least_ < kSmall || most_ / least_ > kRange)));
  }

  std::string operator()(std::int64_t v) const {
    if (type_ == DType::Bool) return v != 0 ? "true" : "false";
    return fmt::format("{}", v);
  }
  std::string operator()(double v) const {
    if (std::isnan(v)) return "nan";
    if (!std::isfinite(v)) return v > 0 ? "inf" : "-inf";
    if (is_whole_) return fmt::format("{:.0f}.", v);
    return is_exponential_ ? fmt::format("{:.4e}", v) : fmt::format("{:.4f}", v);
  }

 private:
  DType type_;
  double most_ = 0, least_ = 0;
  bool is_whole_ = false, is_exponential_ = false;
};

// `T`: double for floating-point types, std::int64_t for all others, whose largest values no double
// holds.
template <class T>
class Writer {
 public:
  Writer(DType type, std::vector<T> values, std::vector<std::int64_t> extents)
      : values_(std::move(values)), extents_(std::move(extents)), form_(type, values_) {
    is_cut_ = static_cast<std::int64_t>(values_.size()) > kWhole;
    visit([&](T v) { width_ = std::max(width_, form_(v).size()); }, 0, 0);
  }

  std::string text() const { return extents_.empty() ? form_(values_.at(0)) : axis(0, 0); }

 private:
  // Of the positions along an axis those that are shown; -1 stands for what is left out.
  std::vector<std::int64_t> shown(std::size_t axis) const {
    std::vector<std::int64_t> out;
    const std::int64_t n = extents_[axis];
    const bool is_long = is_cut_ && n > 2 * kEdge;
    for (std::int64_t i = 0; i < n; ++i) {
      if (is_long && i == kEdge) out.push_back(-1), i = n - kEdge;
      out.push_back(i);
    }
    return out;
  }

  template <class F>
  void visit(const F& f, std::size_t axis, std::int64_t at) const {
    if (values_.empty()) return;
    if (axis == extents_.size()) return f(values_[static_cast<std::size_t>(at)]);
    for (const std::int64_t i : shown(axis))
      if (i >= 0) visit(f, axis + 1, at * extents_[axis] + i);
  }

  std::string axis(std::size_t a, std::int64_t at) const {
    const bool is_last = a + 1 == extents_.size();
    std::string out = "[";
    // Rows below one another, matrices a line apart.
    const std::string between =
        is_last ? ", " : "," + std::string(extents_.size() - a - 1, '\n') + std::string(a + 1, ' ');
    bool is_first = true;
    for (const std::int64_t i : shown(a)) {
      if (!std::exchange(is_first, false)) out += between;
      if (i < 0)
        out += "...";
      else if (is_last)
        out += fmt::format("{:>{}}", form_(values_[static_cast<std::size_t>(at * extents_[a] + i)]),
                           width_);
      else
        out += axis(a + 1, at * extents_[a] + i);
    }
    return out + "]";
  }

  std::vector<T> values_;
  std::vector<std::int64_t> extents_;
  Form form_;
  std::size_t width_ = 0;
  bool is_cut_ = false;
};

template <class T>
std::string text_of(const TensorType& type, std::vector<T> values) {
  auto extents = extents_of(type.shape, values.size());
  if (!extents) extents = {static_cast<std::int64_t>(values.size())};  // as they lie
  if (values.empty() && !extents->empty()) return type.str() + "\n[]";
  return type.str() + "\n" + Writer<T>(type.dtype, std::move(values), *std::move(extents)).text();
}

}  // namespace

std::string to_text(const Tensor& tensor) {
  if (!tensor.is_defined()) return "undefined";
  const TensorType type = tensor.type();
  try {
    return is_float(type.dtype) ? text_of(type, tensor.to_vector())
                                : text_of(type, tensor.to_ints());
  } catch (const UserError& e) {
    if (e.code() != "E0301") throw;
    return type.str() + ", traced";
  }
}

}  // namespace aloft
