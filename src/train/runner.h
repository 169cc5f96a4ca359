// One training step and one evaluation, in either mode: the trainer does not care which.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "frontend/optimizer.h"
#include "models/model.h"
#include "passes/pipeline.h"

namespace aloft {

class Programs;

struct StepNumbers {
  double loss = 0, grad_norm = 0, lr = 0, loss_scale = 1;
  bool finite = true;
  int culprit = -1;  // index into culprit_names()
};

struct RunnerOptions {
  std::int64_t batch = 1, context = 1;
  int threads = 0;
  PipelineOptions pipeline = {};                    // of the compiled programs
  std::map<std::string, std::string> choices = {};  // for their Plan
};

class Runner {
 public:
  virtual ~Runner() = default;
  // The programs get their memory, and the variables, which have values by now, move into it: from
  // here on it can run. EnvironmentError E0401.
  virtual void start() {}
  // Adds a micro-batch to the accumulators; returns its loss. Only with accumulation.
  double accumulate(const Batch& batch);
  StepNumbers step(const Batch& batch);

  // The same in parts. Load the batch of what is issued next (its memory is the caller's again when
  // that returns, or where not loads_ahead() when it was issued), issue it, read its numbers before
  // anything else is issued.
  enum class Part { MicroBatch, Update };
  virtual void load(Part part, const Batch& batch) = 0;
  virtual void issue(Part part) = 0;
  virtual double loss(Part part) = 0;
  virtual StepNumbers numbers() = 0;  // of an Update
  // Whether a batch may be loaded before the last part's numbers are read, and gains by it.
  virtual bool loads_ahead() const { return false; }
  // Mean loss over the batch's counted targets, in evaluation mode.
  virtual double evaluate(const Batch& batch) = 0;
  // The compiled programs, planned before start(); null in eager mode.
  virtual Programs* programs() { return nullptr; }
};

// The variables may be descriptions (frontend/description.h) until start().

std::unique_ptr<Runner> graph_runner(models::CausalLm& model, Optimizer& optimizer,
                                     const RunnerOptions& options);
std::unique_ptr<Runner> eager_runner(models::CausalLm& model, Optimizer& optimizer,
                                     const RunnerOptions& options);

}  // namespace aloft
