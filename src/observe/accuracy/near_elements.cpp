#include "observe/accuracy/near_elements.h"

#include <algorithm>
#include <cmath>

namespace aloft::accuracy {

namespace {

constexpr std::size_t kFewest = 8;

double root_of_mean(double squares, std::size_t n) {
  return n > 0 ? std::sqrt(squares / static_cast<double>(n)) : 0;
}

}  // namespace

NearElements::NearElements(std::span<const double> values, std::span<const std::int64_t> shape) {
  double squares = 0;
  std::size_t finite = 0;
  for (const double v : values)
    if (std::isfinite(v)) squares += v * v, ++finite;
  all_ = root_of_mean(squares, finite);
  std::size_t stride = values.size();
  for (const std::int64_t n : shape) {
    const auto extent = static_cast<std::size_t>(std::max<std::int64_t>(n, 1));
    if (stride % extent != 0) {  // it is another tensor's
      axes_.clear();
      return;
    }
    stride /= extent;
    if (extent == 1 || values.size() / extent < kFewest) continue;
    Axis axis{stride, extent, std::vector<double>(extent)};
    std::vector<std::size_t> counts(extent);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      const std::size_t at = i / stride % extent;
      axis.sizes[at] += values[i] * values[i], ++counts[at];
    }
    for (std::size_t at = 0; at < extent; ++at)
      axis.sizes[at] = root_of_mean(axis.sizes[at], counts[at]);
    axes_.push_back(std::move(axis));
  }
}

double NearElements::size_at(std::size_t i) const {
  double least = all_;
  for (const Axis& a : axes_) least = std::min(least, a.sizes[i / a.stride % a.extent]);
  return least;
}

}  // namespace aloft::accuracy
