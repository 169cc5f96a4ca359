// What an op's inference sees and says. Every failure is a UserError that names the op, its place
// in the user's program and what was needed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name.h"
#include "graph/scope.h"
#include "types/shape.h"

namespace aloft {

class Infer {
 public:
  Infer(Name op, std::span<const TensorType> in, const Where& where)
      : op_(op), in_(in), where_(where) {}

  int count() const { return static_cast<int>(in_.size()); }
  const TensorType& in(int i) const { return in_[i]; }
  const Shape& shape(int i) const { return in_[i].shape; }
  DType dtype(int i) const { return in_[i].dtype; }

  // Appends an output.
  void out(TensorType type) { out_.push_back(std::move(type)); }
  void out(DType dtype, Shape shape) { out_.push_back({dtype, std::move(shape)}); }
  const std::vector<TensorType>& outputs() const { return out_; }

  void need_count(int least, int most) const;
  void need_count(int exactly) const { need_count(exactly, exactly); }
  void need_rank(int i, int least, int most = 8) const;
  void need_float(int i) const;
  void need_integer(int i) const;  // any integer type or bool
  void need_same_dtype(int i, int j) const;
  void need_same_shape(int i, int j) const;
  void need_shape(int i, const Shape& shape) const;
  // A normalised axis of input i.
  int axis(int i, std::int64_t axis) const;
  // Normalised, sorted, distinct; empty means all axes.
  std::vector<int> axes(int i, const std::vector<std::int64_t>& axes) const;
  // numpy broadcasting of two shapes.
  Shape broadcast(const Shape& a, const Shape& b) const;

  // Throws UserError E02xx: headline, the operands, what was needed, what to try.
  [[noreturn]] void fail(std::string_view headline, std::string_view need,
                         std::string_view advice = "", std::string_view code = "E0203") const;
  void check(bool ok, std::string_view headline, std::string_view need,
             std::string_view advice = "") const {
    if (!ok) fail(headline, need, advice);
  }

 private:
  Name op_;
  std::span<const TensorType> in_;
  const Where& where_;
  std::vector<TensorType> out_;
};

// "examples/gpt.cpp:88 (h.3.attn.qkv)", or "" where nothing is known.
std::string place_of(const Where& where);

}  // namespace aloft
