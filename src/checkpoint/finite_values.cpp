#include "checkpoint/finite_values.h"

#include <cstddef>
#include <cstdint>

#include "runtime/buffer.h"

namespace aloft {
namespace {

// Whether a NaN, or an infinity where `infinite` says so too, is among the values. `exponent`: its
// bits, below the sign's.
template <class Bits>
bool has_such(const Variable& v, Bits exponent, bool infinite) {
  const auto count = static_cast<std::size_t>(v.type.shape.max_numel());
  const HostRead<Bits> values = v.buffer->read<Bits>(0, count);
  const Bits magnitude = static_cast<Bits>(-1) >> 1;
  bool found = false;
  for (const Bits value : values) {
    const Bits bits = value & magnitude;
    found |= infinite ? bits >= exponent : bits > exponent;
  }
  return found;
}

bool is_ruined(const Variable& v, bool infinite) {
  switch (v.type.dtype) {
    case DType::F32:
      return has_such<std::uint32_t>(v, 0x7f800000, infinite);
    case DType::BF16:
      return has_such<std::uint16_t>(v, 0x7f80, infinite);
    case DType::F16:
      return has_such<std::uint16_t>(v, 0x7c00, infinite);
    case DType::F64:
      return has_such<std::uint64_t>(v, 0x7ff0000000000000, infinite);
    default:
      return false;
  }
}

}  // namespace

bool has_nan(const Variable& v) { return is_ruined(v, false); }

bool has_only_finite(const Variable& v) { return !is_ruined(v, true); }

}  // namespace aloft
