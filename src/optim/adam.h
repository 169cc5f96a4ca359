// Adam (L2 regularisation) and AdamW (decoupled weight decay). As torch.optim.Adam and AdamW, with
// the same defaults: a weight decay holds for every parameter, norms and biases too.
#pragma once

#include "frontend/optimizer.h"

namespace aloft::optim {

struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // L2, added to the gradient
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  operator OptimizerSpec() const;
};

struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // shrinks the weight by lr * weight_decay
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  operator OptimizerSpec() const;
};

}  // namespace aloft::optim
