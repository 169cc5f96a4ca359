// adam_update: unscale, clip, moments, update and low-precision copy in one sweep over all tensors.
// No fused multiply-add, in torch.optim's order of operations: the same bits on every target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/adam_update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/update/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// numbers: 1 - beta1, beta2, 1 - beta2, sqrt(1 - beta2^t), eps, lr / (1 - beta1^t), decay factor;
// flag: the decay is decoupled.
void adam_run(const UpdateRun& r, const UpdateNumbers& k) {
  const Floats d;
  const FloatV one_minus_beta1 = hn::Set(d, k.number[0]), beta2 = hn::Set(d, k.number[1]),
               one_minus_beta2 = hn::Set(d, k.number[2]), root = hn::Set(d, k.number[3]),
               eps = hn::Set(d, k.number[4]), rate = hn::Set(d, k.number[5]),
               decay = hn::Set(d, k.number[6]);
  const auto moments = [=](FloatV& x, FloatV g, FloatV& m, FloatV& v) HWY_ATTR {
    m = hn::Add(m, hn::Mul(one_minus_beta1, hn::Sub(g, m)));
    v = hn::Add(hn::Mul(beta2, v), hn::Mul(one_minus_beta2, hn::Mul(g, g)));
    const FloatV scale = hn::Add(hn::Div(hn::Sqrt(v), root), eps);
    x = hn::Sub(x, hn::Div(hn::Mul(rate, m), scale));
  };
  if (!r.decays) return update_run<2>(r, k.multiplier, moments);
  if (k.flag)
    return update_run<2>(r, k.multiplier, [=](FloatV& x, FloatV g, FloatV& m, FloatV& v) HWY_ATTR {
      x = hn::Mul(x, decay);
      moments(x, g, m, v);
    });
  update_run<2>(r, k.multiplier, [=](FloatV& x, FloatV g, FloatV& m, FloatV& v) HWY_ATTR {
    moments(x, hn::Add(g, hn::Mul(decay, x)), m, v);
  });
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

#include "ops/adam_update.h"

namespace aloft::cpu {
namespace {

HWY_EXPORT(adam_run);

class Adam : public UpdateCode {
 public:
  explicit Adam(const AdamUpdateAttrs& a) : a_(a) {}

  UpdateNumbers numbers(double lr, std::int64_t applied) const override {
    const double t = static_cast<double>(applied + 1);
    const auto f = [](double x) { return static_cast<float>(x); };
    UpdateNumbers k;
    k.number[0] = f(1 - a_.beta1);
    k.number[1] = f(a_.beta2);
    k.number[2] = f(1 - a_.beta2);
    k.number[3] = f(std::sqrt(1 - std::pow(a_.beta2, t)));
    k.number[4] = f(a_.eps);
    k.number[5] = f(lr / (1 - std::pow(a_.beta1, t)));
    k.number[6] = f(a_.decoupled ? 1 - lr * a_.weight_decay : a_.weight_decay);
    k.flag = a_.decoupled;
    return k;
  }
  void run(const UpdateRun& r, const UpdateNumbers& k) const override {
    HWY_DYNAMIC_DISPATCH(adam_run)(r, k);
  }

 private:
  AdamUpdateAttrs a_;
};

AdamUpdateAttrs attrs_of(const CallSpec& call) { return from_attrs<AdamUpdateAttrs>(call.attrs); }

}  // namespace

std::vector<Kernel> adam_update_kernels() {
  return {{"cpu.adam_update", "adam_update",
           [](const CallSpec& call) { return accepts_update(call, attrs_of(call).layout()); },
           [](const CallSpec& call) {
             const auto a = attrs_of(call);
             return prepare_update(call, a.layout(), a.decay, std::make_unique<Adam>(a));
           },
           [](const CallSpec& call) { return update_pairs(attrs_of(call).layout()); }}};
}

}  // namespace aloft::cpu
#endif
