// group_norm and its gradient: a group of one example is a task.
#include "ops/group_norm.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/parallel.h"
#include "backends/cpu/prepare_as.h"
#include "backends/cpu/rows/far_means.h"
#include "backends/cpu/rows/norm_kernels.h"
#include "backends/cpu/rows/planes.h"

namespace aloft::cpu {
namespace {

// x [N, C, ...] in groups of channels.
struct Groups : Planes {
  std::int64_t groups;

  Groups(const TensorType& x, std::int64_t groups, const CallSpec& call)
      : Planes(x, call), groups(groups) {}
  std::int64_t channels_each() const { return channels / groups; }
  std::int64_t length() const { return channels_each() * plane; }
};

class GroupNorm : public Prepared {
 public:
  explicit GroupNorm(const CallSpec& call)
      : call_(call),
        attrs_(from_attrs<GroupNormAttrs>(call.attrs)),
        g_(call.in[0], attrs_.groups, call) {}

  void run(const RunArgs& args) const override {
    parallel_for(g_.examples.at(args.symbols) * g_.groups, 3 * g_.length() + 16,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) one_group(args, t);
                 });
  }

 private:
  void one_group(const RunArgs& args, std::int64_t t) const {
    const std::int64_t length = g_.length(), each = g_.channels_each();
    const auto count = static_cast<double>(length);
    const void* x = at(static_cast<const void*>(args.in[0]), t * length, g_.type);
    void* y = at(args.out[0], t * length, g_.type);
    SplitMean mean;
    mean.near = static_cast<float>(g_.sweeps.sum(x, length) / count);
    double var = g_.sweeps.squares(x, mean.near, length) / count;
    if (is_far(mean.near, 1 / std::sqrt(var + attrs_.eps))) {
      mean = SplitMean(mean.near + g_.sweeps.distances(x, mean.near, length) / count);
      var = g_.sweeps.squares(x, mean.near, length) / count;
      var = std::max(0.0, var - mean.rest * mean.rest);
    }
    const auto rstd = static_cast<float>(1 / std::sqrt(var + attrs_.eps));
    static_cast<float*>(args.out[1])[t] = mean.near;
    static_cast<float*>(args.out[2])[t] = rstd;
    for (std::int64_t i = 0; i < each; ++i) {
      const std::int64_t c = t % g_.groups * each + i;
      const float a = rstd * static_cast<float>(parameter(call_, args, 1, c, 1));
      const double b = parameter(call_, args, 2, c) - of_rest(mean.rest, a);
      g_.sweeps.affine(at(x, i * g_.plane, g_.type), mean.near, a, static_cast<float>(b),
                       at(y, i * g_.plane, g_.type), g_.plane);
    }
  }

  CallSpec call_;
  GroupNormAttrs attrs_;
  Groups g_;
};

// Scratch: for every plane its sums; the parameters' gradients add them over the examples.
class GroupNormGrad : public Prepared {
 public:
  explicit GroupNormGrad(const CallSpec& call)
      : call_(call), g_(call.in[1], from_attrs<GroupNormGradAttrs>(call.attrs).groups, call) {}

  std::size_t scratch_bytes() const override {
    return g_.most_examples * g_.channels * sizeof(ChannelSums);
  }

  void run(const RunArgs& args) const override {
    const std::int64_t examples = g_.examples.at(args.symbols);
    auto* sums = static_cast<ChannelSums*>(args.scratch);
    parallel_for(examples * g_.groups, 5 * g_.length() + 16,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t)
                     one_group(args, t, sums + t * g_.channels_each());
                 });
    if (call_.out.size() == 1) return;
    const auto* rstd = static_cast<const float*>(args.in[3]);
    parallel_for(g_.channels, 2 * examples, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        double dscale = 0, dshift = 0;
        for (std::int64_t n = 0; n < examples; ++n) {
          const ChannelSums& s = sums[n * g_.channels + c];
          dscale += s.dy_x * static_cast<double>(rstd[n * g_.groups + c / g_.channels_each()]);
          dshift += s.dy;
        }
        set_result(call_, args, 1, c, dscale);
        if (call_.out.size() > 2) set_result(call_, args, 2, c, dshift);
      }
    });
  }

 private:
  // dx = rstd (dy scale - mean(dy scale) - xhat mean(dy scale xhat)), plane by plane.
  void one_group(const RunArgs& args, std::int64_t t, ChannelSums* sums) const {
    const std::int64_t each = g_.channels_each(), plane = g_.plane;
    const auto in = [&](int i, std::int64_t k) {
      const void* p = args.in[i];
      return at(p, t * g_.length() + k * plane, g_.type);
    };
    const float mean = static_cast<const float*>(args.in[2])[t];
    const float rstd = static_cast<const float*>(args.in[3])[t];
    const auto scale = [&](std::int64_t k) {
      return static_cast<float>(parameter(call_, args, 4, t % g_.groups * each + k, 1));
    };
    const double r = rstd, count = static_cast<double>(g_.length());
    double rest_of_mean = 0;
    if (is_far(mean, rstd))
      rest_of_mean = rest_of(mean, g_.sweeps.distances(in(1, 0), mean, g_.length()) / count);
    double of_dy = 0, of_product = 0;
    for (std::int64_t k = 0; k < each; ++k) {
      sums[k] = g_.sweeps.products(in(0, k), in(1, k), mean, plane);
      sums[k].dy_x -= of_rest(rest_of_mean, sums[k].dy);
      of_dy += sums[k].dy * static_cast<double>(scale(k));
      of_product += sums[k].dy_x * static_cast<double>(scale(k));
    }
    const double to_x = -r * r * r * of_product / count;
    const auto q = static_cast<float>(to_x);
    const auto rest = static_cast<float>(-r * of_dy / count - of_rest(rest_of_mean, to_x));
    for (std::int64_t k = 0; k < each; ++k)
      g_.sweeps.combine(in(0, k), in(1, k), mean, rstd * scale(k), q, rest,
                        at(args.out[0], t * g_.length() + k * plane, g_.type), plane);
  }

  CallSpec call_;
  Groups g_;
};

}  // namespace

std::vector<Kernel> group_norm_kernels() {
  return {{"cpu.group_norm", "group_norm",
           [](const CallSpec& call) { return accepts_norm(call, 0, 0, 0); }, prepare_as<GroupNorm>,
           over_x},
          {"cpu.group_norm_grad", "group_norm_grad",
           [](const CallSpec& call) { return accepts_norm(call, 1, 2, 2); },
           prepare_as<GroupNormGrad>, over_dy_or_x}};
}

}  // namespace aloft::cpu
