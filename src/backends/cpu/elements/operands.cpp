#include "backends/cpu/elements/operands.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/vectors/integer_tiles.h"

namespace aloft::cpu {
namespace {

// Rows from this width on are worth a tile of their own.
constexpr std::int64_t kWideRow = 256;

template <class T>
void fill_as(void* dst, const void* src, std::int64_t n) {
  T value;
  std::memcpy(&value, src, sizeof value);
  std::fill_n(static_cast<T*>(dst), n, value);
}

// n copies of the element at src.
void repeat(void* dst, const void* src, std::int64_t n, std::size_t size) {
  switch (size) {
    case 1:
      return fill_as<std::uint8_t>(dst, src, n);
    case 2:
      return fill_as<std::uint16_t>(dst, src, n);
    case 4:
      return fill_as<std::uint32_t>(dst, src, n);
    default:
      return fill_as<std::uint64_t>(dst, src, n);
  }
}

}  // namespace

Operands::Operands(const CallSpec& call, int first, int count) : first_(first) {
  if (count < 0) count = static_cast<int>(call.in.size()) - first;
  const Shape& out = call.out[0].shape;
  numel_ = extent_of(out.numel(), call);
  const std::vector<std::int64_t> full = out.max_extents();
  const int rank = out.rank();
  std::vector<std::vector<std::int64_t>> strides(count, std::vector<std::int64_t>(rank, 0));
  for (int i = 0; i < count; ++i) {
    const Shape& shape = call.in[first + i].shape;
    std::int64_t stride = 1;
    for (int axis = rank - 1; axis >= rank - shape.rank(); --axis) {
      const Dim& d = shape[axis - (rank - shape.rank())];
      if (!(d == Dim(1))) strides[i][axis] = stride;
      stride *= d.max();
    }
    inputs_.push_back({call.in[first + i].dtype});
  }
  // Neighbouring dimensions that every input walks as one become one; length 1 disappears.
  for (int axis = 0; axis < rank; ++axis) {
    if (out[axis] == Dim(1)) continue;
    bool joins = !extents_.empty();
    for (int i = 0; i < count && joins; ++i)
      joins = inputs_[i].strides.back() == strides[i][axis] * full[axis];
    if (joins) {
      extents_.back() *= full[axis];
      for (int i = 0; i < count; ++i) inputs_[i].strides.back() = strides[i][axis];
    } else {
      extents_.push_back(full[axis]);
      for (int i = 0; i < count; ++i) inputs_[i].strides.push_back(strides[i][axis]);
    }
  }
  if (!extents_.empty()) row_ = std::max<std::int64_t>(1, extents_.back());
  for (Input& in : inputs_) {
    in.single = std::all_of(in.strides.begin(), in.strides.end(), [](auto s) { return s == 0; });
    in.dense = extents_.empty() || (extents_.size() == 1 && in.strides[0] == 1);
  }
}

std::int64_t Operands::tile_at(std::int64_t begin, std::int64_t end) const {
  std::int64_t n = std::min(kTile, end - begin);
  if (extents_.size() > 1 && row_ >= kWideRow) n = std::min(n, row_ - begin % row_);
  return n;
}

const void* Reader::raw(int i, std::int64_t begin, std::int64_t n) {
  const Operands::Input& in = o_.inputs_[i];
  const void* base = args_.in[o_.first_ + i];
  if (in.dense) return at(base, begin, in.dtype);
  if (in.single) {
    if (filled_[i] < n) repeat(raw_[i], base, n, size_of(in.dtype));
    filled_[i] = std::max(filled_[i], n);
    return raw_[i];
  }
  const std::int64_t column = begin % o_.row_;
  if (column + n <= o_.row_ && in.strides.back() == 1) {
    // Within one row: find it, and read in place.
    std::int64_t rest = begin / o_.row_, offset = column;
    for (int d = static_cast<int>(o_.extents_.size()) - 2; d > 0; --d) {
      offset += rest % o_.extents_[d] * in.strides[d];
      rest /= o_.extents_[d];
    }
    return at(base, offset + rest * in.strides[0], in.dtype);
  }
  gather(i, begin, n);
  return raw_[i];
}

void Reader::gather(int i, std::int64_t begin, std::int64_t n) {
  const Operands::Input& in = o_.inputs_[i];
  const std::size_t size = size_of(in.dtype);
  const int last = static_cast<int>(o_.extents_.size()) - 1;
  const std::int64_t stride = in.strides[last];
  std::int64_t row = begin / o_.row_, column = begin % o_.row_;
  for (std::int64_t done = 0; done < n;) {
    std::int64_t rest = row, offset = column * stride;
    for (int d = last - 1; d > 0; --d) {
      offset += rest % o_.extents_[d] * in.strides[d];
      rest /= o_.extents_[d];
    }
    if (last > 0) offset += rest * in.strides[0];
    const std::int64_t run = std::min(o_.row_ - column, n - done);
    const void* src = at(args_.in[o_.first_ + i], offset, in.dtype);
    void* dst = reinterpret_cast<char*>(raw_[i]) + done * size;
    if (stride == 0)
      repeat(dst, src, run, size);
    else
      std::memcpy(dst, src, run * size);
    done += run;
    column = 0;
    ++row;
  }
}

const float* Reader::as_f32(int i, std::int64_t begin, std::int64_t n) {
  return open_f32(o_.inputs_[i].dtype, raw(i, begin, n), reinterpret_cast<float*>(wide_[i]), n);
}
const double* Reader::as_f64(int i, std::int64_t begin, std::int64_t n) {
  return open_f64(o_.inputs_[i].dtype, raw(i, begin, n), reinterpret_cast<double*>(wide_[i]), n);
}

const std::int64_t* Reader::as_i64(int i, std::int64_t begin, std::int64_t n) {
  return open_i64(o_.inputs_[i].dtype, raw(i, begin, n), reinterpret_cast<std::int64_t*>(wide_[i]),
                  n);
}

std::vector<std::pair<int, int>> same_type_pairs(const CallSpec& call) {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < static_cast<int>(call.in.size()); ++i)
    if (call.in[i] == call.out[0]) pairs.emplace_back(i, 0);
  return pairs;
}

}  // namespace aloft::cpu
