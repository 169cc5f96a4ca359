// Stochastic gradient descent, with momentum (Nesterov's too). As torch.optim.SGD: a weight decay
// holds for every parameter.
#pragma once

#include "frontend/optimizer.h"

namespace aloft::optim {

struct Sgd {
  double lr = 1e-2;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;  // L2, added to the gradient
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  operator OptimizerSpec() const;
};

// MindSpore's name for the same with momentum.
struct Momentum {
  double lr = 1e-2;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  operator OptimizerSpec() const;
};

}  // namespace aloft::optim
