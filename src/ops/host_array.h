// Values on the host, in double: what an op's meaning is written over. Integers of every type are
// exact (host_number.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ops/host_number.h"
#include "types/dtype.h"

namespace aloft {

struct HostArray {
  DType dtype = DType::F32;  // what the values stand for; the array itself does not round
  std::vector<std::int64_t> shape;
  std::vector<HostNumber> values;  // row-major

  static HostArray zeros(DType dtype, std::vector<std::int64_t> shape);
  std::int64_t numel() const;
  int rank() const { return static_cast<int>(shape.size()); }
  HostNumber& operator[](std::int64_t i) { return values[i]; }
  const HostNumber& operator[](std::int64_t i) const { return values[i]; }
  std::vector<double> doubles() const { return {values.begin(), values.end()}; }
};

// `v` cut to the width of an integer type: integer arithmetic wraps around.
HostNumber wrapped(std::int64_t v, DType t);

// Rounds every value to what `a.dtype` can hold (fractions are cut off, what is out of an integer
// type's range becomes its nearest bound, bool is != 0).
void round_to_dtype(HostArray& a);
// From and to packed memory of a.dtype.
void load_bytes(HostArray& a, const void* bytes);
void store_bytes(const HostArray& a, void* bytes);

// Product of shape[from, to).
std::int64_t product(const std::vector<std::int64_t>& shape, int from, int to);
// For broadcasting: flat index into an array of `shape` for the element at `index` of `out_shape`
// (numpy rules, aligned at the back).
class BroadcastIndex {
 public:
  BroadcastIndex(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& out);
  std::int64_t operator()(std::int64_t out_flat) const;

 private:
  std::vector<std::int64_t> extents_, strides_;
};

}  // namespace aloft
