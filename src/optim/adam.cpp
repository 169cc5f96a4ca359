#include "optim/adam.h"

#include "ops/adam_update.h"

namespace aloft::optim {
namespace {

class AdamRule : public UpdateRule {
 public:
  explicit AdamRule(AdamUpdateAttrs attrs) : attrs_(std::move(attrs)) {}
  std::string kind() const override { return attrs_.decoupled ? "adamw" : "adam"; }
  std::vector<std::string> moments() const override { return {"exp_avg", "exp_avg_sq"}; }
  std::vector<RuleNumber> numbers() const override {
    return {{"beta1", attrs_.beta1, RuleNumber::Range::BelowOne},
            {"beta2", attrs_.beta2, RuleNumber::Range::BelowOne},
            {"eps", attrs_.eps}};
  }
  UpdateResults emit(const UpdateOperands& o, const Ints& decay,
                     double weight_decay) const override {
    AdamUpdateAttrs a = attrs_;
    a.decay = decay;
    a.weight_decay = weight_decay;
    return adam_update(o, a);
  }

 private:
  AdamUpdateAttrs attrs_;
};

template <class Options>
OptimizerSpec spec_of(const Options& o, bool decoupled) {
  AdamUpdateAttrs a;
  a.decoupled = decoupled;
  a.beta1 = o.beta1;
  a.beta2 = o.beta2;
  a.eps = o.eps;
  return {.rule = std::make_shared<AdamRule>(a),
          .lr = o.lr,
          .weight_decay = o.weight_decay,
          .clip_norm = o.clip_norm,
          .schedule = o.schedule,
          .decay = o.decay,
          .groups = o.groups,
          .master = o.master,
          .update = o.update};
}

}  // namespace

Adam::operator OptimizerSpec() const { return spec_of(*this, false); }
AdamW::operator OptimizerSpec() const { return spec_of(*this, true); }

}  // namespace aloft::optim
