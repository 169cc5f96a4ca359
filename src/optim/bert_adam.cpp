#include "optim/bert_adam.h"

#include "optim/advice.h"
#include "optim/kind_of.h"

namespace aloft::optim {

Advice bert_adam_advice() {
  return {"BERT, and fine-tuning of it, as its authors did",
          "1e-4; fine-tuning: 2e-5 to 5e-5 (Devlin et al. 2018)"};
}

OptimizerKind bert_adam_kind() {
  return kind_of<BertAdam>("bert_adam", "Adam without corrections, tensors clipped alone (BERT)",
                           {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01, .max_grad_norm = 0}});
}

UpdateRule BertAdam::rule() const { return rule_of("bert_adam", *this); }

BertAdam::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
