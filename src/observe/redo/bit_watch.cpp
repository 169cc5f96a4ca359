#include "observe/redo/bit_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "scalar/float_formats.h"

namespace aloft::redo {

namespace {

// An element as people read it.
std::string shown(DType type, std::span<const std::byte> bytes) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  };
  switch (type) {
    case DType::F64:
      return fmt::format("{}", as(double()));
    case DType::F32:
      return fmt::format("{}", as(float()));
    case DType::BF16:
      return fmt::format("{}", scalar::f32_of(as(scalar::Bf16())));
    case DType::F16:
      return fmt::format("{}", scalar::f32_of(as(scalar::F16())));
    default: {
      std::string hex = "0x";
      for (auto b = bytes.rbegin(); b != bytes.rend(); ++b)
        hex += fmt::format("{:02x}", static_cast<unsigned>(*b));
      return hex;
    }
  }
}

}  // namespace

TensorType bound_type(const TensorType& type, const std::vector<Name>& symbols,
                      std::span<const std::int64_t> lengths) {
  std::vector<Dim> extents;
  for (const Dim& d : type.shape) {
    const auto at = std::ranges::find(symbols, d.symbol());
    const bool is_known = !d.is_constant() && at != symbols.end();
    const auto slot = static_cast<std::size_t>(at - symbols.begin());
    extents.emplace_back(is_known && slot < lengths.size() ? d.times() * lengths[slot] : d.max());
  }
  return {type.dtype, Shape(std::move(extents))};
}

void BitWatch::begin() {
  is_first_ = first_.empty();
  seen_ = instruction_ = 0;
  difference_.reset();
  kept_.reset();
}

void BitWatch::look(const OpEvent& e, const Buffer& buffer, const TensorType& type, bool is_result,
                    int n) {
  const std::size_t at = seen_++;
  if (!is_first_ && difference_ && kept_at_ != at) return;  // behind the first all may be another
  const TensorType bound = bound_type(type, e.call.symbols(), e.lengths);
  const std::size_t bytes = buffer ? std::min(buffer.bytes(), bound.max_bytes()) : 0;
  TensorBits bits{instruction_, is_result, n};
  std::optional<HostRead<std::byte>> read;
  if (bytes > 0) read.emplace(buffer.read<std::byte>(0, bytes));
  const std::span<const std::byte> own =
      read ? std::span(read->data(), bytes) : std::span<const std::byte>();
  bits.hash = hash64(own);
  const auto seen = [&] { return SeenTensor{at, bound, {own.begin(), own.end()}}; };
  if (kept_at_ == at) kept_ = seen();
  if (is_first_)
    first_.push_back(bits);
  else if (!difference_ && (at >= first_.size() || first_[at].hash != bits.hash))
    difference_ = seen();
}

void BitWatch::before(const OpEvent& e) {
  if (e.instruction < 0) return;  // what the host computes beside the step
  if (is_first_)
    instructions_.push_back({std::string(e.program), e.instruction, e.call.op.str(),
                             std::string(e.kernel), std::string(e.identity), std::string(e.path),
                             e.phase});
  for (std::size_t i = 0; i < e.in.size(); ++i)
    look(e, e.in[i], e.call.in[i], false, static_cast<int>(i));
}

void BitWatch::after(const OpEvent& e) {
  if (e.instruction < 0) return;
  for (std::size_t i = 0; i < e.out.size(); ++i)
    look(e, e.out[i], e.call.out[i], true, static_cast<int>(i));
  ++instruction_;
}

ElementDifference elements_that_differ(const TensorType& type, std::span<const std::byte> one,
                                       std::span<const std::byte> other) {
  ElementDifference d;
  const std::size_t size = size_of(type.dtype), n = std::min(one.size(), other.size()) / size;
  d.elements = static_cast<std::int64_t>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto a = one.subspan(i * size, size), b = other.subspan(i * size, size);
    if (std::ranges::equal(a, b) || d.differing++ > 0) continue;
    d.first = static_cast<std::int64_t>(i);
    d.value = shown(type.dtype, a);
    d.other = shown(type.dtype, b);
    for (std::size_t bit = 0; bit < 8 * size; ++bit)
      if (std::to_integer<int>((a[bit / 8] ^ b[bit / 8]) >> bit % 8) & 1)
        d.bits.push_back(static_cast<int>(bit));
  }
  std::int64_t rest = d.first;
  d.index.resize(static_cast<std::size_t>(type.shape.rank()));
  const std::vector<std::int64_t> extents = type.shape.max_extents();
  for (std::size_t axis = d.index.size(); axis-- > 0;) {
    d.index[axis] = extents[axis] > 0 ? rest % extents[axis] : 0;
    rest /= std::max<std::int64_t>(extents[axis], 1);
  }
  return d;
}

}  // namespace aloft::redo
