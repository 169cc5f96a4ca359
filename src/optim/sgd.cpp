#include "optim/sgd.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/sgd_update.h"

namespace aloft::optim {
namespace {

class SgdRule : public UpdateRule {
 public:
  explicit SgdRule(SgdUpdateAttrs attrs) : attrs_(std::move(attrs)) {}
  std::string kind() const override { return attrs_.momentum != 0 ? "momentum" : "sgd"; }
  std::vector<std::string> moments() const override {
    return attrs_.momentum != 0 ? std::vector<std::string>{"momentum_buffer"}
                                : std::vector<std::string>{};
  }
  std::vector<RuleNumber> numbers() const override {
    return {{"momentum", attrs_.momentum},
            {"dampening", attrs_.dampening, RuleNumber::Range::Finite}};
  }
  UpdateResults emit(const UpdateOperands& o, const Ints& decay,
                     double weight_decay) const override {
    SgdUpdateAttrs a = attrs_;
    a.decay = decay;
    a.weight_decay = weight_decay;
    return sgd_update(o, a);
  }

 private:
  SgdUpdateAttrs attrs_;
};

}  // namespace

Sgd::operator OptimizerSpec() const {
  if (nesterov && (momentum <= 0 || dampening != 0))
    throw UserError("E0806", "Nesterov momentum needs a momentum and no dampening")
        .saw("momentum = " + shortest(momentum) + ", dampening = " + shortest(dampening))
        .need("momentum > 0 and dampening = 0");
  SgdUpdateAttrs a;
  a.momentum = momentum;
  a.dampening = dampening;
  a.nesterov = nesterov;
  return {.rule = std::make_shared<SgdRule>(a),
          .lr = lr,
          .weight_decay = weight_decay,
          .clip_norm = clip_norm,
          .schedule = schedule,
          .decay = decay,
          .groups = groups,
          .master = master,
          .update = update};
}

Momentum::operator OptimizerSpec() const {
  return Sgd{lr,       momentum, 0,      nesterov, weight_decay, clip_norm,
             schedule, groups,   master, update,   decay};
}

}  // namespace aloft::optim
