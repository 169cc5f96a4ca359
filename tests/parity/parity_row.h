// What a comparison with an outside judge found, as a row that tools/judge/live.py shows:
//   parity  optimizer  adamw-amsgrad, in double  3.1e-16  of 1e-12
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

namespace aloft::parity {

// The largest error of some numbers, each as a share of its `scale`; printed at the end, and a
// failure where it is above the bound.
class ParityRow {
 public:
  ParityRow(std::string group, std::string name, double bound)
      : group_(std::move(group)), name_(std::move(name)), bound_(bound) {}
  ParityRow(const ParityRow&) = delete;
  ParityRow& operator=(const ParityRow&) = delete;
  ~ParityRow() {
    std::printf("parity  %s  %s  %.1e  of %.0e\n", group_.c_str(), name_.c_str(), largest_, bound_);
    EXPECT_GT(seen_, 0) << name_;
  }

  void see(double got, double want, double scale, const std::string& where) {
    const double error = got == want ? 0 : std::abs(got - want) / scale;
    EXPECT_LE(error, bound_) << name_ << ", " << where << ": " << got << ", judged " << want;
    largest_ = std::isnan(error) ? error : std::max(largest_, error);
    ++seen_;
  }

 private:
  std::string group_, name_;
  double bound_, largest_ = 0;
  int seen_ = 0;
};

// What is compared, compiled or op by op.
inline std::string in_mode(const std::string& name, bool is_eager) {
  return name + (is_eager ? ", eager" : "");
}

}  // namespace aloft::parity
