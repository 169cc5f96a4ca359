// learning_rate and count_applied: one number each.
#include "ops/learning_rate.h"

#include "backends/cpu/prepare_as.h"
#include "runtime/kernel.h"

namespace aloft::cpu {
namespace {

class LearningRate : public Prepared {
 public:
  explicit LearningRate(const CallSpec& call) {
    const auto a = from_attrs<LearningRateAttrs>(call.attrs);
    lr_ = a.lr;
    rule_ = a.rule();
  }
  void run(const RunArgs& args) const override {
    const auto applied = *static_cast<const std::int64_t*>(args.in[0]);
    *static_cast<float*>(args.out[0]) =
        static_cast<float>(lr_ * scalar::schedule_factor(rule_, applied));
  }

 private:
  double lr_;
  scalar::ScheduleRule rule_;
};

class CountApplied : public Prepared {
 public:
  void run(const RunArgs& args) const override {
    const bool finite = *static_cast<const std::int32_t*>(args.in[1]) != 0;
    *static_cast<std::int64_t*>(args.out[0]) =
        *static_cast<const std::int64_t*>(args.in[0]) + finite;
  }
};

}  // namespace

std::vector<Kernel> learning_rate_kernels() {
  return {{"cpu.learning_rate", "learning_rate", always, prepare_as<LearningRate>},
          {"cpu.count_applied", "count_applied", always,
           [](const CallSpec&) -> std::unique_ptr<Prepared> {
             return std::make_unique<CountApplied>();
           },
           [](const CallSpec&) {
             return std::vector<std::pair<int, int>>{{0, 0}};
           }}};
}

}  // namespace aloft::cpu
