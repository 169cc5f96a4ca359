// Stochastic gradient descent, with momentum (Nesterov's too). As torch.optim.SGD: a weight decay
// holds for every parameter.
#pragma once

#include "frontend/optimizer.h"

namespace aloft::optim {

// Gradient descent, as torch.optim.SGD.
struct Sgd {
  double lr = 1e-2;         // base rate, times the schedule's factor
  double momentum = 0;      // share of the last update's direction that is kept; 0: none
  double dampening = 0;     // share of the gradient that is left out of the direction
  bool nesterov = false;    // Nesterov's momentum: one step ahead
  double weight_decay = 0;  // L2, added to the gradient
  // As OptimizerSpec's field of this name (frontend/optimizer.h):
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  // What amp::initialize and Optimizer take. UserError E0806 for nesterov without momentum, or with
  // dampening.
  operator OptimizerSpec() const;
};

// MindSpore's name for the same with momentum.
struct Momentum {
  double lr = 1e-2;         // base rate, times the schedule's factor
  double momentum = 0.9;    // share of the last update's direction that is kept
  bool nesterov = false;    // Nesterov's momentum: one step ahead
  double weight_decay = 0;  // L2, added to the gradient
  // As OptimizerSpec's field of this name (frontend/optimizer.h):
  double clip_norm = 0;
  scalar::ScheduleRule schedule = {};
  std::vector<ParameterGroup> groups = {};
  MasterForm master = MasterForm::F32;
  UpdateTime update = UpdateTime::Late;
  Decay decay = {};  // everything; kWeightsDecay leaves out norms and biases
  // What amp::initialize and Optimizer take. UserError E0806 for nesterov without momentum, or with
  // dampening.
  operator OptimizerSpec() const;
};

}  // namespace aloft::optim
