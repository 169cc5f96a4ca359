// Models as descriptions: variables with names and types, and no memory behind them. Their programs
// can be traced and planned, so that what a run needs is known before any weight is made
// (decision 25).
//
//   { const OnlyDescribed scope;  model and optimizer are made here }
//   programs.add(...)            traced, planned: programs.plan().peak_bytes()
//   take_values(variables_of(model, optimizer), variables_of(its twin made outside));
//   programs.finish();
#pragma once

#include <vector>

#include "frontend/module.h"
#include "frontend/optimizer.h"

namespace aloft {

// While one lives, modules and optimizers made on this thread are descriptions.
class OnlyDescribed {
 public:
  OnlyDescribed();
  ~OnlyDescribed();
  OnlyDescribed(const OnlyDescribed&) = delete;
  OnlyDescribed& operator=(const OnlyDescribed&) = delete;

 private:
  bool before_;
};

bool is_only_described();

// Parameters, buffers and the optimizer's state, in an order that depends on how they were made
// alone.
std::vector<VariablePtr> variables_of(const nn::Module& model, const Optimizer& optimizer);

// Each of `to`, so far described, gets the memory and the values of its twin in `from`, which was
// made in the same way. InternalError where they are no twins.
void take_values(const std::vector<VariablePtr>& to, const std::vector<VariablePtr>& from);

// Gives those that are only described memory, of zeros that nobody has touched yet: it takes no
// room before values are written.
void give_memory(const std::vector<VariablePtr>& to);

}  // namespace aloft
