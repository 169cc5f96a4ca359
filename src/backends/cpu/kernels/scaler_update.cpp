// scaler_update: four numbers in, four numbers out.
#include "ops/scaler_update.h"

#include "backends/cpu/prepare_as.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

class ScalerUpdate : public Prepared {
 public:
  explicit ScalerUpdate(const CallSpec& call)
      : rule_(from_attrs<ScalerUpdateAttrs>(call.attrs).rule()) {}

  void run(const RunArgs& args) const override {
    const scalar::ScalerState before{*static_cast<const float*>(args.in[0]),
                                     *static_cast<const std::int32_t*>(args.in[1]),
                                     *static_cast<const std::int32_t*>(args.in[2]),
                                     *static_cast<const std::int64_t*>(args.in[3])};
    const bool finite = *static_cast<const std::int32_t*>(args.in[4]) != 0;
    const scalar::ScalerState after = scalar::next(before, finite, rule_);
    *static_cast<float*>(args.out[0]) = after.scale;
    *static_cast<std::int32_t*>(args.out[1]) = after.good_steps;
    *static_cast<std::int32_t*>(args.out[2]) = after.overflow_run;
    *static_cast<std::int64_t*>(args.out[3]) = after.skipped;
  }

 private:
  scalar::ScalerRule rule_;
};

}  // namespace

std::vector<Kernel> scaler_update_kernels() {
  return {
      {"cpu.scaler_update", "scaler_update", always, prepare_as<ScalerUpdate>, [](const CallSpec&) {
         return std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {2, 2}, {3, 3}};
       }}};
}

}  // namespace aloft::cpu
