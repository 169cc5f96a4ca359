#include "optim/bert_adam.h"

#include "optim/kind_of.h"

namespace aloft::optim {

OptimizerKind bert_adam_kind() {
  return kind_of<BertAdam>("bert_adam", "Adam without corrections, tensors clipped alone (BERT)",
                           {{}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 0.01, .max_grad_norm = 0}});
}

UpdateRule BertAdam::rule() const { return rule_of("bert_adam", *this); }

BertAdam::operator OptimizerSpec() const { return spec_of(*this); }

}  // namespace aloft::optim
