// Dimensions, shapes and tensor types. A dimension is a number, or a multiple of a bounded symbol,
// the batch, whose length is bound at each run. Text: 256, B<=8, 256*B<=8 (at most 2048). Of a
// symbol, in a function that is being traced, is_constant(), str(), symbol() and times() answer
// otherwise than eagerly, and nothing notes that they were asked: ask max() for a length.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/name.h"
#include "types/dtype.h"

namespace aloft {

// One extent of a shape: a number, or while a function is traced perhaps a symbol with a bound.
class Dim {
 public:
  Dim() = default;
  // A constant, from a number: {8, 3} is a Shape.
  Dim(std::int64_t value) : factor_(value) {}
  Dim(int value) : factor_(value) {}
  // `times` a symbol of at most `bound`.
  static Dim symbolic(Name symbol, std::int64_t bound, std::int64_t times = 1);

  bool is_constant() const { return symbol_.is_empty(); }  // a number, as eagerly
  // The number, or the largest that it can be; UserError E0103 beyond 63 bits. In a function that
  // is being traced, whoever asks for the largest takes it for the length (types/bound_watch.h).
  std::int64_t max() const;
  std::string str() const;  // 256; traced B<=8, 256*B<=8

  // What a symbolic one consists of: 256*B<=8 is 256 `times` `symbol` B, which is 8 at most. Of a
  // number, so of all lengths eagerly: 1 time no symbol. Neither is noted, as with max().
  Name symbol() const { return symbol_; }
  std::int64_t times() const { return is_constant() ? 1 : factor_; }
  std::int64_t bound() const;  // asked for as max() is; of a number: the number

  // A number is no symbol, but in a function that is being traced (types/bound_watch.h): there it
  // is compared with the symbol's bound, which is then taken for the length as by max().
  friend bool operator==(const Dim& a, const Dim& b) {
    if (a.symbol_ == b.symbol_) return a.factor_ == b.factor_ && a.bound_ == b.bound_;
    return equals_bound(a, b);
  }

  // At most one may be symbolic (UserError E0101 otherwise).
  friend Dim operator*(const Dim& a, const Dim& b);

 private:
  friend class Shape;
  static bool equals_bound(const Dim& a, const Dim& b);
  bool is_negative() const { return factor_ < 0 || bound_ < 0; }

  std::int64_t factor_ = 0;  // the value itself where there is no symbol
  Name symbol_;              // empty: a constant
  std::int64_t bound_ = 1;   // largest value of the symbol
};

// The extents of a tensor, outermost first; {} is a single number's.
class Shape {
 public:
  Shape() = default;
  // From extents: Shape{8, 256}.
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  static Shape of(const std::vector<std::int64_t>& extents);

  // How many axes there are.
  int rank() const { return static_cast<int>(dims_.size()); }
  // Negative indices count from the back. UserError E0107 where there is no such axis.
  const Dim& operator[](int i) const { return dims_[place_of(i)]; }
  Dim& operator[](int i) { return dims_[place_of(i)]; }
  // All of them, in order; begin() and end() for loops.
  const std::vector<Dim>& dims() const { return dims_; }
  std::vector<Dim>& dims() { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  Dim numel() const;  // elements; may be symbolic
  std::int64_t max_numel()
      const;  // the same, symbols at their bounds; UserError E0103 if one is negative
  bool is_constant() const;                       // has no symbol, as eagerly
  std::vector<std::int64_t> max_extents() const;  // each at its bound
  std::string str() const;                        // [B<=8,256]; eagerly [8,256]

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::size_t place_of(int i) const {
    const auto place = static_cast<std::size_t>(i < 0 ? i + rank() : i);
    if (place >= dims_.size()) refuse_axis(i);
    return place;
  }
  [[noreturn]] void refuse_axis(int i) const;

  std::vector<Dim> dims_;
};

// Element type and shape of a tensor.
struct TensorType {
  DType dtype = DType::F32;  // of an element
  Shape shape;               // {}: a single number

  std::size_t max_bytes()
      const;  // symbols at their bounds; UserError E0103 beyond 63 bits, or negative
  std::string str() const { return std::string(name_of(dtype)) + shape.str(); }  // f32[B<=8,256]
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// Parses what str() prints; a symbol is a name. UserError E0102 with the offending text.
Dim parse_dim(std::string_view text);
Shape parse_shape(std::string_view text);
TensorType parse_tensor_type(std::string_view text);

// Normalises an axis that may count from the back; returns -1 where it is out of range.
constexpr int normal_axis(std::int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
}

}  // namespace aloft
