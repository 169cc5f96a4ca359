#include "backends/cpu/cpu_backend.h"

#include <hwy/highway.h>

#include <string>
#include <unordered_map>

#include "backends/cpu/isa.h"

namespace aloft {
namespace cpu {

#define KERNELS(stem) std::vector<Kernel> stem##_kernels();
#include "backends/cpu/kernels/catalog.inc"
#undef KERNELS

}  // namespace cpu

namespace {

class CpuBackend : public Backend {
 public:
  CpuBackend() {
    // Caps the instruction sets before any kernel is chosen.
    features_.variant = cpu::describe(cpu::cpu_features());
    // Kernels ask for the functions of the best instruction set when they are prepared.
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    features_.variant += " targets=" + std::to_string(hwy::SupportedTargets());
#define KERNELS(stem) \
  for (const Kernel& k : cpu::stem##_kernels()) all_.push_back(k);
#include "backends/cpu/kernels/catalog.inc"
#undef KERNELS
    for (const Kernel& k : all_) by_op_[k.op].push_back(&k);
  }

  std::string_view name() const override { return "cpu"; }

  std::vector<const Kernel*> candidates(Name op) const override {
    const auto it = by_op_.find(op);
    return it == by_op_.end() ? std::vector<const Kernel*>{} : it->second;
  }

  const Features& features() const override { return features_; }

 private:
  Features features_;
  std::vector<Kernel> all_;
  std::unordered_map<Name, std::vector<const Kernel*>> by_op_;
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

}  // namespace aloft
