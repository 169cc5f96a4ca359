#include "train/overflow_origin.h"

#include <algorithm>
#include <cmath>

#include "observe/redo/bit_watch.h"

namespace aloft {

namespace {

HostArray array_of(const OpEvent& e, const Buffer& buffer, const TensorType& type) {
  const TensorType bound = redo::bound_type(type, e.call.symbols(), e.lengths);
  HostArray a = HostArray::zeros(bound.dtype, bound.shape.max_extents());
  if (a.values.empty() || !buffer) return a;
  std::vector<std::byte> bytes(bound.max_bytes());
  buffer.read_into(bytes);
  load_bytes(a, bytes.data());
  return a;
}

}  // namespace

bool is_finite(const HostArray& a) {
  for (std::int64_t i = 0; is_float(a.dtype) && i < a.numel(); ++i)
    if (!std::isfinite(static_cast<double>(a[i]))) return false;
  return true;
}

void OverflowOrigin::before(const OpEvent& e) {
  is_of_finite_ = false;
  if (found_ || e.program.empty() || e.in.empty()) return;
  if (e.call.op == Name("statistics")) return;  // the probe's own
  in_.clear();
  for (std::size_t i = 0; i < e.in.size(); ++i) in_.push_back(array_of(e, e.in[i], e.call.in[i]));
  is_of_finite_ = std::ranges::all_of(in_, is_finite);
}

void OverflowOrigin::after(const OpEvent& e) {
  if (!is_of_finite_) return;
  std::vector<HostArray> out;
  for (std::size_t i = 0; i < e.out.size(); ++i)
    out.push_back(array_of(e, e.out[i], e.call.out[i]));
  const auto first = std::ranges::find_if_not(out, is_finite);
  if (first == out.end()) return;
  SymbolValues lengths;
  const std::vector<Name> symbols = e.call.symbols();
  for (std::size_t s = 0; s < symbols.size(); ++s) lengths[symbols[s]] = e.lengths[s];
  const auto result = static_cast<std::size_t>(first - out.begin());
  found_ = Call{std::string(e.program),
                e.instruction,
                e.at.micro_batch,
                e.call.op,
                bind_lengths(e.call.attrs, lengths),
                std::move(in_),
                std::move(out),
                result};
}

}  // namespace aloft
