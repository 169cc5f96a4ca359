// average_weight: one number.
#include "ops/average_weight.h"

#include "backends/cpu/prepare_as.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

class AverageWeight : public Prepared {
 public:
  explicit AverageWeight(const CallSpec& call)
      : attrs_(from_attrs<AverageWeightAttrs>(call.attrs)) {}
  void run(const RunArgs& args) const override {
    const bool finite = *static_cast<const std::int32_t*>(args.in[1]) != 0;
    const double weight = attrs_.weight_after(*static_cast<const std::int64_t*>(args.in[0]));
    *static_cast<float*>(args.out[0]) = finite ? static_cast<float>(weight) : 0;
  }

 private:
  AverageWeightAttrs attrs_;
};

}  // namespace

std::vector<Kernel> average_weight_kernels() {
  return {{"cpu.average_weight", "average_weight", always, prepare_as<AverageWeight>}};
}

}  // namespace aloft::cpu
