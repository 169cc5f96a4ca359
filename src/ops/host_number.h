// One number on the host: a double, and what of a 64-bit integer the double does not hold. It reads
// and computes as a double; moved or copied, an integer stays whole.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace aloft {

class HostNumber {
 public:
  HostNumber() = default;
  HostNumber(double v) : near_(v) {}
  static HostNumber of(std::int64_t v) {
    HostNumber n(static_cast<double>(v));
    n.rest_ = static_cast<std::int64_t>(Wide{v} - static_cast<Wide>(n.near_));
    return n;
  }
  operator double() const { return near_; }

  // As an integer: a fraction is cut off, what is out of range becomes the nearest bound, NaN 0.
  std::int64_t whole() const {
    using Limits = std::numeric_limits<std::int64_t>;
    if (std::isnan(near_)) return 0;
    if (near_ > 0x1p63) return Limits::max();
    if (near_ < -0x1p63) return Limits::min();
    const Wide v = static_cast<Wide>(near_) + rest_;
    return v > Limits::max() ? Limits::max() : static_cast<std::int64_t>(v);
  }

  HostNumber& operator+=(double v) { return *this = near_ + v; }
  HostNumber& operator-=(double v) { return *this = near_ - v; }
  HostNumber& operator*=(double v) { return *this = near_ * v; }
  HostNumber& operator/=(double v) { return *this = near_ / v; }

 private:
  __extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using)
  double near_ = 0;
  std::int64_t rest_ = 0;
};

}  // namespace aloft
