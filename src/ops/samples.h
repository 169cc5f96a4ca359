// Sample calls of an op: from them the harness derives forward against the meaning, gradients
// against finite differences, kernels against the meaning, and the support matrix.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "types/attrs.h"
#include "types/shape.h"

namespace aloft {

enum class Fill {
  Normal,    // mean 0, deviation 1, times `scale`
  Uniform,   // in [lo, hi)
  Ids,       // integers in [lo, hi)
  Distinct,  // a random permutation of evenly spaced values in [lo, hi): no ties
  Special,   // normal values mixed with inf, -inf, NaN, denormals, -0, the largest finite
  InRange,   // the same but for the largest, and rarer: no sum of products leaves f32's range
  Constant,  // `lo` everywhere
  Whole,     // integers over the whole range of their type, bounds and neighbours of 2^53 included
};

struct SampleInput {
  Shape shape;
  Fill fill = Fill::Normal;
  double lo = -1, hi = 1;
  double scale = 1;
  DType dtype = DType::F32;  // a float here is replaced by each float type under test
  bool fixed_dtype = false;  // ... unless this is set
};

struct Sample {
  Attrs attrs;
  std::vector<SampleInput> in;
  std::string note;
  bool gradient = true;  // check the gradient on this sample (false: kinks, special values)
  double tolerance = 1;  // factor on the tolerance table, with the reason in `note`
  // Roundings to the operands' own type that happen inside a kernel (weights of an attention before
  // they multiply the values), as errors relative to the operands' largest magnitude.
  double inner_roundings = 0;
  // The op stands for several ops and gives their bits: what its body's ops hand on is rounded.
  bool rounds_between_ops = false;
};

class Samples {
 public:
  template <class A>
  Sample& add(const A& attrs, std::vector<SampleInput> in, std::string note = {}) {
    return add_erased(to_attrs(attrs), std::move(in), std::move(note));
  }
  Sample& add_erased(Attrs attrs, std::vector<SampleInput> in, std::string note) {
    return all_.emplace_back(Sample{std::move(attrs), std::move(in), std::move(note)});
  }
  // One for each operand of `of`, in which special values are where numbers of `in` were.
  template <class A>
  void add_special(const A& attrs, std::vector<SampleInput> in, std::initializer_list<int> of,
                   double inner_roundings = 0) {
    for (const int i : of) {
      Sample& sample = add(attrs, in, "special values in operand " + std::to_string(i));
      sample.in[static_cast<std::size_t>(i)].fill = Fill::InRange;
      sample.gradient = false;
      sample.inner_roundings = inner_roundings;
    }
  }
  const std::vector<Sample>& all() const { return all_; }

 private:
  std::vector<Sample> all_;
};

// Integer operands for indices: values in [lo, hi).
inline SampleInput ids(Shape shape, double lo, double hi, DType dtype = DType::I32) {
  return {std::move(shape), Fill::Ids, lo, hi, 1, dtype, true};
}

inline SampleInput whole_numbers(Shape shape, DType dtype) {
  return {std::move(shape), Fill::Whole, 0, 0, 1, dtype, true};
}

// For gradients of gradients, which are checked where every float is a double.
inline std::vector<SampleInput> all_in_f64(std::vector<SampleInput> in) {
  for (SampleInput& x : in)
    if (is_float(x.dtype)) x.dtype = DType::F64, x.fixed_dtype = true;
  return in;
}

}  // namespace aloft
