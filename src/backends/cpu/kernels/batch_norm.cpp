// batch_norm and its gradient: a channel is a task, so that its sums need no combining.
#include <algorithm>
#include <cmath>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/far_means.h"
#include "backends/cpu/rows/norm_kernels.h"
#include "backends/cpu/rows/planes.h"
#include "ops/batch_norm_attrs.h"

namespace aloft::cpu {
namespace {

// x [N, C, ...] by channels.
struct Channels : Planes {
  using Planes::Planes;
  // Plane of channel c of example n.
  const void* of(const void* x, std::int64_t n, std::int64_t c) const {
    return at(x, (n * channels + c) * plane, type);
  }
  void* of(void* x, std::int64_t n, std::int64_t c) const {
    return at(x, (n * channels + c) * plane, type);
  }
  // Sum of a channel's distances from `mean`.
  double distances(const void* x, std::int64_t c, std::int64_t examples, float mean) const {
    double sum = 0;
    for (std::int64_t n = 0; n < examples; ++n) sum += sweeps.distances(of(x, n, c), mean, plane);
    return sum;
  }
};

class BatchNorm : public Prepared {
 public:
  explicit BatchNorm(const CallSpec& call)
      : call_(call), attrs_(from_attrs<BatchNormAttrs>(call.attrs)), x_(call.in[0], call) {}

  void run(const RunArgs& args) const override {
    const std::int64_t examples = x_.examples.at(args.symbols);
    parallel_for(x_.channels, 3 * examples * x_.plane + 16,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t c = begin; c < end; ++c) one_channel(args, c, examples);
                 });
  }

 private:
  void one_channel(const RunArgs& args, std::int64_t c, std::int64_t examples) const {
    const void* x = args.in[0];
    double new_mean = parameter(call_, args, 3, c), new_var = parameter(call_, args, 4, c);
    double mean = new_mean, var = new_var, rest = 0;
    const auto count = static_cast<double>(examples * x_.plane);
    if (attrs_.training && count == 0) {  // nothing was seen: the running statistics stay
      mean = var = 0;
    } else if (attrs_.training) {
      double sum = 0;
      for (std::int64_t n = 0; n < examples; ++n) sum += x_.sweeps.sum(x_.of(x, n, c), x_.plane);
      mean = sum / count;
      var = variance(x, c, examples, SplitMean(mean).near);
      if (is_far(mean, 1 / std::sqrt(var + attrs_.eps))) {
        const float near = SplitMean(mean).near;
        mean = near + x_.distances(x, c, examples, near) / count;
        rest = SplitMean(mean).rest;
        var = std::max(0.0, variance(x, c, examples, SplitMean(mean).near) - rest * rest);
      }
      new_mean += attrs_.momentum * (mean - new_mean);
      new_var += attrs_.momentum * (var * count / std::max(count - 1, 1.0) - new_var);
    }
    const double rstd = 1 / std::sqrt(var + attrs_.eps);
    set_result(call_, args, 1, c, new_mean);
    set_result(call_, args, 2, c, new_var);
    set_result(call_, args, 3, c, mean);
    set_result(call_, args, 4, c, rstd);
    const auto a = static_cast<float>(rstd * parameter(call_, args, 1, c));
    const auto b = static_cast<float>(parameter(call_, args, 2, c) - of_rest(rest, a));
    for (std::int64_t n = 0; n < examples; ++n)
      x_.sweeps.affine(x_.of(x, n, c), static_cast<float>(mean), a, b, x_.of(args.out[0], n, c),
                       x_.plane);
  }

  // Mean square of a channel's distances from `mean`.
  double variance(const void* x, std::int64_t c, std::int64_t examples, float mean) const {
    double squares = 0;
    for (std::int64_t n = 0; n < examples; ++n)
      squares += x_.sweeps.squares(x_.of(x, n, c), mean, x_.plane);
    return squares / static_cast<double>(examples * x_.plane);
  }

  CallSpec call_;
  BatchNormAttrs attrs_;
  Channels x_;
};

class BatchNormGrad : public Prepared {
 public:
  explicit BatchNormGrad(const CallSpec& call)
      : call_(call),
        training_(from_attrs<BatchNormGradAttrs>(call.attrs).training),
        x_(call.in[1], call) {}

  void run(const RunArgs& args) const override {
    const std::int64_t examples = x_.examples.at(args.symbols);
    parallel_for(x_.channels, 5 * examples * x_.plane + 16,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t c = begin; c < end; ++c) one_channel(args, c, examples);
                 });
  }

 private:
  // dx = scale rstd (dy - mean(dy) - xhat mean(dy xhat)); in evaluation scale rstd dy.
  void one_channel(const RunArgs& args, std::int64_t c, std::int64_t examples) const {
    const void *dy = args.in[0], *x = args.in[1];
    const auto mean = static_cast<float>(parameter(call_, args, 2, c));
    const double rstd = parameter(call_, args, 3, c);
    const auto count = static_cast<double>(examples * x_.plane);
    double rest = 0;
    if (training_ && is_far(mean, rstd))
      rest = rest_of(mean, x_.distances(x, c, examples, mean) / count);
    ChannelSums sums;
    for (std::int64_t n = 0; n < examples; ++n) {
      const ChannelSums s = x_.sweeps.products(x_.of(dy, n, c), x_.of(x, n, c), mean, x_.plane);
      sums.dy += s.dy;
      sums.dy_x += s.dy_x;
    }
    sums.dy_x -= of_rest(rest, sums.dy);
    set_result(call_, args, 1, c, sums.dy_x * rstd);
    set_result(call_, args, 2, c, sums.dy);
    const double p = rstd * parameter(call_, args, 4, c);
    if (!training_) {  // whatever x is: 0 times an infinity would be NaN
      for (std::int64_t n = 0; n < examples; ++n)
        x_.sweeps.affine(x_.of(dy, n, c), 0, static_cast<float>(p), 0, x_.of(args.out[0], n, c),
                         x_.plane);
      return;
    }
    const double q = -p * rstd * rstd * sums.dy_x / count;
    const double r = -p * sums.dy / count - of_rest(rest, q);
    for (std::int64_t n = 0; n < examples; ++n)
      x_.sweeps.combine(x_.of(dy, n, c), x_.of(x, n, c), mean, static_cast<float>(p),
                        static_cast<float>(q), static_cast<float>(r), x_.of(args.out[0], n, c),
                        x_.plane);
  }

  CallSpec call_;
  bool training_;
  Channels x_;
};

// The running statistics too: each is read before its successor is written.
std::vector<std::pair<int, int>> in_place(const CallSpec&) { return {{0, 0}, {3, 1}, {4, 2}}; }

}  // namespace

std::vector<Kernel> batch_norm_kernels() {
  return {{"cpu.batch_norm", "batch_norm",
           [](const CallSpec& call) { return accepts_norm(call, 0, 0, 0); }, prepare_as<BatchNorm>,
           in_place},
          {"cpu.batch_norm_grad", "batch_norm_grad",
           [](const CallSpec& call) { return accepts_norm(call, 1, 0, 0); },
           prepare_as<BatchNormGrad>, over_dy_or_x}};
}

}  // namespace aloft::cpu
