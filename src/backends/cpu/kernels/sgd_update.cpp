// sgd_update: unscale, clip, momentum, update and low-precision copy in one sweep over all tensors.
// No fused multiply-add, in torch.optim's order of operations: the same bits on every target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/sgd_update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/update/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// numbers: lr, momentum, 1 - dampening, weight decay (0: none), 1 for nesterov, 1 with a momentum,
// be it one that is 0 in f32; flag: this is the first update, whose gradient becomes the momentum.
template <int kMoments>
void sgd_steps(const UpdateRun& r, const UpdateNumbers& k) {
  const Floats d;
  const FloatV lr = hn::Set(d, k.number[0]), momentum = hn::Set(d, k.number[1]),
               fresh = hn::Set(d, k.number[2]), decay = hn::Set(d, k.number[3]);
  const bool decays = r.decays && k.number[3] != 0, nesterov = k.number[4] != 0, first = k.flag;
  update_run<kMoments>(r, k.multiplier, [=](FloatV& x, FloatV g, FloatV& m, FloatV&) HWY_ATTR {
    if (decays) g = hn::Add(g, hn::Mul(decay, x));
    if constexpr (kMoments > 0) {
      m = first ? g : hn::Add(hn::Mul(momentum, m), hn::Mul(fresh, g));
      g = nesterov ? hn::Add(g, hn::Mul(momentum, m)) : m;
    }
    x = hn::Sub(x, hn::Mul(lr, g));
  });
}

void sgd_run(const UpdateRun& r, const UpdateNumbers& k) {
  if (k.number[5] != 0)
    sgd_steps<1>(r, k);
  else
    sgd_steps<0>(r, k);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/sgd_update.h"

namespace aloft::cpu {
namespace {

HWY_EXPORT(sgd_run);

class Sgd : public UpdateCode {
 public:
  explicit Sgd(const SgdUpdateAttrs& a) : a_(a) {}

  UpdateNumbers numbers(double lr, std::int64_t applied) const override {
    const auto f = [](double x) { return static_cast<float>(x); };
    UpdateNumbers k;
    k.number[0] = f(lr);
    k.number[1] = f(a_.momentum);
    k.number[2] = f(1 - a_.dampening);
    k.number[3] = f(a_.weight_decay);
    k.number[4] = a_.nesterov;
    k.number[5] = a_.momentum != 0;
    k.flag = applied == 0;
    return k;
  }
  void run(const UpdateRun& r, const UpdateNumbers& k) const override {
    HWY_DYNAMIC_DISPATCH(sgd_run)(r, k);
  }

 private:
  SgdUpdateAttrs a_;
};

SgdUpdateAttrs attrs_of(const CallSpec& call) { return from_attrs<SgdUpdateAttrs>(call.attrs); }

}  // namespace

std::vector<Kernel> sgd_update_kernels() {
  return {{"cpu.sgd_update", "sgd_update",
           [](const CallSpec& call) { return accepts_update(call, attrs_of(call).layout()); },
           [](const CallSpec& call) {
             const auto a = attrs_of(call);
             return prepare_update(call, a.layout(), a.decay, std::make_unique<Sgd>(a));
           },
           [](const CallSpec& call) { return update_pairs(attrs_of(call).layout()); }}};
}

}  // namespace aloft::cpu
#endif
