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

#include "data/example_source.h"
#include "frontend/optimizer.h"
#include "frontend/tracing.h"
#include "passes/pipeline.h"
#include "recipe/recipe.h"
#include "tasks/task.h"

namespace aloft {

class EagerTaps;
class Programs;

struct StepNumbers {
  double loss = 0, grad_norm = 0, lr = 0, loss_scale = 1;
  bool finite = true;
  int culprit = -1;  // index into culprit_names()
};

struct RunnerOptions {
  std::int64_t batch = 1;
  std::vector<Column> columns = {};  // of the task
  int threads = 0;
  PipelineOptions pipeline = {};                    // of the compiled programs
  std::map<std::string, std::string> choices = {};  // for their Plan
  // What is looked at in updates, and in which steps: each look has a program of its own, with the
  // output kAllStatistics.
  ProbeSection probe = {};
  MonitorSection monitor = {};
};

class Runner {
 public:
  virtual ~Runner() = default;
  // The programs get their memory, and the variables, which have values by now, move into it: from
  // here on it can run. EnvironmentError E0401.
  virtual void start() {}
  // Adds a micro-batch to the accumulators; returns its loss. Only with accumulation.
  double accumulate(const ExampleBatch& batch);
  StepNumbers step(const ExampleBatch& batch, std::int64_t number = 0);

  // The same in parts. Load the batch of what is issued next (its memory is the caller's again when
  // that returns, or where not loads_ahead() when it was issued), issue it, read its numbers before
  // anything else is issued.
  enum class Part { MicroBatch, Update };
  // `number`: the step's, from 0 on, which says what is looked at in its update.
  virtual void load(Part part, const ExampleBatch& batch, std::int64_t number = 0) = 0;
  virtual void issue(Part part) = 0;
  virtual double loss(Part part) = 0;
  virtual StepNumbers numbers() = 0;  // of an Update
  // Whether a batch may be loaded before the last part's numbers are read, and gains by it.
  virtual bool loads_ahead() const { return false; }
  // The means over the batch's counted targets of what the task evaluates, the loss first, in
  // evaluation mode; valid until the next call.
  virtual const std::vector<double>& evaluate(const ExampleBatch& batch) = 0;
  // Behind start(): whether the state may be read by another thread until the next update begins,
  // and `hold` is called before it does, in each step. It must not throw.
  virtual bool hold_updates(std::function<void()> hold) {
    static_cast<void>(hold);
    return false;
  }
  // The compiled programs, planned before start(); null in eager mode.
  virtual Programs* programs() { return nullptr; }
  // In eager mode, what the last update showed that was looked at; else null.
  virtual const EagerTaps* taps() const { return nullptr; }
  // The program of updates in steps that have this look.
  static std::string program_of(Look look, const ProbeSection& probe,
                                const MonitorSection& monitor = {});
};

// The columns of batches of up to `batch` rows, as inputs of a program.
std::vector<InputSpec> step_inputs(const std::vector<Column>& columns, std::int64_t batch);

// The variables may be descriptions (frontend/description.h) until start().

std::unique_ptr<Runner> graph_runner(Task& task, Optimizer& optimizer,
                                     const RunnerOptions& options);
std::unique_ptr<Runner> eager_runner(Task& task, Optimizer& optimizer,
                                     const RunnerOptions& options);

}  // namespace aloft
