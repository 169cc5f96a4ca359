// full and iota.
#include "ops/constant.h"

#include <cstring>

#include "backends/cpu/parallel.h"
#include "runtime/kernel.h"
#include "scalar/float_formats.h"

namespace aloft::cpu {
namespace {

// The first 8 bytes of a run of `dtype` elements that all hold `value`.
std::uint64_t pattern_of(double value, DType dtype) {
  std::uint64_t whole = 0;
  const auto put = [&](auto element) {
    for (std::size_t i = 0; i < 8; i += sizeof element)
      std::memcpy(reinterpret_cast<char*>(&whole) + i, &element, sizeof element);
  };
  switch (dtype) {
    case DType::F64:
      put(value);
      break;
    case DType::F32:
      put(static_cast<float>(value));
      break;
    case DType::BF16:
      put(scalar::bf16_of(value));
      break;
    case DType::F16:
      put(scalar::f16_of(value));
      break;
    case DType::I64:
      put(static_cast<std::int64_t>(value));
      break;
    case DType::I32:
      put(static_cast<std::int32_t>(value));
      break;
    case DType::U8:
      put(static_cast<std::uint8_t>(value));
      break;
    case DType::I8:
      put(static_cast<std::int8_t>(value));
      break;
    case DType::Bool:
      put(static_cast<std::uint8_t>(value != 0));
      break;
  }
  return whole;
}

class Full : public Prepared {
 public:
  explicit Full(const CallSpec& call)
      : extent_(extent_of(call.out[0].shape.numel(), call)), size_(size_of(call.out[0].dtype)) {
    const auto a = from_attrs<FullAttrs>(call.attrs);
    pattern_ = pattern_of(a.value, a.dtype);
  }
  void run(const RunArgs& args) override {
    const auto bytes = extent_.at(args.symbols) * static_cast<std::int64_t>(size_);
    auto* out = static_cast<char*>(args.out[0]);
    parallel_for(bytes / 8, 1, [&](std::int64_t begin, std::int64_t end) {
      auto* words = reinterpret_cast<std::uint64_t*>(out);
      std::fill(words + begin, words + end, pattern_);
    });
    std::memcpy(out + bytes / 8 * 8, &pattern_, bytes % 8);
  }

 private:
  Extent extent_;
  std::size_t size_;
  std::uint64_t pattern_;
};

template <class T, T (*kOf)(double)>
void count_up(void* out, const IotaAttrs& a) {
  T* p = static_cast<T*>(out);
  for (std::int64_t i = 0; i < a.count; ++i) p[i] = kOf(static_cast<double>(a.start + i * a.step));
}
template <class T>
T convert(double v) {
  return static_cast<T>(v);
}

class Iota : public Prepared {
 public:
  explicit Iota(const CallSpec& call) : attrs_(from_attrs<IotaAttrs>(call.attrs)) {}
  void run(const RunArgs& args) override {
    switch (attrs_.dtype) {
      case DType::F64:
        return count_up<double, convert<double>>(args.out[0], attrs_);
      case DType::F32:
        return count_up<float, convert<float>>(args.out[0], attrs_);
      case DType::BF16:
        return count_up<scalar::Bf16, scalar::bf16_of>(args.out[0], attrs_);
      case DType::F16:
        return count_up<scalar::F16, scalar::f16_of>(args.out[0], attrs_);
      case DType::I64:
        return count_up<std::int64_t, convert<std::int64_t>>(args.out[0], attrs_);
      case DType::I32:
        return count_up<std::int32_t, convert<std::int32_t>>(args.out[0], attrs_);
      case DType::U8:
        return count_up<std::uint8_t, convert<std::uint8_t>>(args.out[0], attrs_);
      case DType::I8:
        return count_up<std::int8_t, convert<std::int8_t>>(args.out[0], attrs_);
      case DType::Bool:
        return count_up<bool, convert<bool>>(args.out[0], attrs_);
    }
  }

 private:
  IotaAttrs attrs_;
};

template <class K>
std::unique_ptr<Prepared> prepare(const CallSpec& call) {
  return std::make_unique<K>(call);
}

}  // namespace

std::vector<Kernel> constant_kernels() {
  return {{"cpu.full", "full", always, prepare<Full>}, {"cpu.iota", "iota", always, prepare<Iota>}};
}

}  // namespace aloft::cpu
