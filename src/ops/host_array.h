// Values on the host, in double: what an op's meaning is written over. Integers up to 2^53 are
// exact.
#pragma once

#include <cstdint>
#include <vector>

#include "types/dtype.h"

namespace aloft {

struct HostArray {
  DType dtype = DType::F32;  // what the values stand for; the array itself does not round
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row-major

  static HostArray zeros(DType dtype, std::vector<std::int64_t> shape);
  std::int64_t numel() const;
  int rank() const { return static_cast<int>(shape.size()); }
  double& operator[](std::int64_t i) { return values[i]; }
  double operator[](std::int64_t i) const { return values[i]; }
};

// Rounds every value to what `a.dtype` can hold (integers truncate, bool is != 0).
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
