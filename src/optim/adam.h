// Adam (L2 regularisation) and AdamW (decoupled weight decay). As torch.optim.Adam and AdamW, with
// the same defaults: a weight decay holds for every parameter, norms and biases too.
#pragma once

#include "frontend/optimizer.h"

namespace aloft::optim {

// Adam (Kingma and Ba 2014) with L2 regularisation, as torch.optim.Adam.
struct Adam {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;        // added to the root of the mean square
  double weight_decay = 0;  // L2, added to the gradient
  // As OptimizerSpec's field of this name (frontend/optimizer.h):
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;
};

// Adam with decoupled weight decay (Loshchilov and Hutter 2017), as torch.optim.AdamW.
struct AdamW {
  double lr = 1e-3;  // base rate, times the schedule's factor
  // Weights of the old means of gradients and of their squares, in [0, 1).
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;           // added to the root of the mean square
  double weight_decay = 1e-2;  // shrinks the weight by lr * weight_decay
  // As OptimizerSpec's field of this name (frontend/optimizer.h):
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;
};

}  // namespace aloft::optim
