// A buffer of f32, bf16 or f16 values with guard bytes around it, filled from doubles.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "scalar/float_formats.h"
#include "types/dtype.h"

namespace aloft::test {

inline double rounded(double x, DType type) {
  if (type == DType::BF16) return scalar::f64_of(scalar::bf16_of(x));
  if (type == DType::F16) return scalar::f64_of(scalar::f16_of(x));
  return static_cast<float>(x);
}

class FloatBuffer {
 public:
  static constexpr std::size_t kGuard = 256;
  static constexpr unsigned char kPoison = 0xff;  // a NaN in every float format

  FloatBuffer(DType type, std::int64_t n) : type_(type), n_(n) {
    whole_ = (2 * kGuard + bytes() + 63) / 64 * 64;
    memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, whole_)));
    std::memset(memory_.get(), kPoison, whole_);
  }
  FloatBuffer(DType type, const std::vector<double>& values)
      : FloatBuffer(type, static_cast<std::int64_t>(values.size())) {
    for (std::int64_t i = 0; i < n_; ++i) set(i, values[i]);
  }

  void* data() { return memory_.get() + kGuard; }
  std::size_t bytes() const { return n_ * size_of(type_); }
  void set(std::int64_t i, double x) {
    if (type_ == DType::F32)
      static_cast<float*>(data())[i] = static_cast<float>(x);
    else
      static_cast<std::uint16_t*>(data())[i] =
          type_ == DType::BF16 ? scalar::bf16_of(x).bits : scalar::f16_of(x).bits;
  }
  double get(std::int64_t i) {
    if (type_ == DType::F32) return static_cast<float*>(data())[i];
    const std::uint16_t bits = static_cast<std::uint16_t*>(data())[i];
    return type_ == DType::BF16 ? scalar::f64_of(scalar::Bf16{bits})
                                : scalar::f64_of(scalar::F16{bits});
  }
  std::vector<unsigned char> copy() {
    const auto* p = static_cast<unsigned char*>(data());
    return {p, p + bytes()};
  }
  void expect_guards() {
    for (std::size_t i = 0; i < kGuard; ++i) ASSERT_EQ(memory_.get()[i], kPoison);
    for (std::size_t i = kGuard + bytes(); i < whole_; ++i) ASSERT_EQ(memory_.get()[i], kPoison);
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { std::free(p); }
  };
  DType type_;
  std::int64_t n_;
  std::size_t whole_ = 0;
  std::unique_ptr<unsigned char, Free> memory_;
};

// Values of `type` in (-1, 1).
inline std::vector<double> random_values(std::int64_t n, DType type, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(n);
  for (double& v : values) v = rounded(uniform(generator), type);
  return values;
}

}  // namespace aloft::test
