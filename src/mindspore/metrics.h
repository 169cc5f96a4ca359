// What Model::eval() measures: mindspore.train's metrics by their names there, or one of your own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/tensor.h"

namespace aloft::ms {

// One batch of an evaluation.
struct EvalBatch {
  Tensor loss;     // f32[]; undefined where the model has no loss
  Tensor outputs;  // of the network, f32
  Tensor label;
};

// A number over all batches of an evaluation. Handlers run op by op, behind each batch.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual void clear() = 0;                         // before the first batch
  virtual void update(const EvalBatch& batch) = 0;  // one batch more
  virtual double eval() const = 0;                  // of those since clear()
};

// The metric of a name:
//   accuracy, acc, top_1_accuracy  share of rows whose largest output is at the label
//   top_5_accuracy                 share of rows whose label is among the five largest
//   loss                           mean of the batches' losses
//   mae, mse                       mean of |output - label|, of its square, over all elements
// The first four take outputs [B, C] with labels [B] of class numbers, or one-hot labels of the
// outputs' shape, whose class is where the last axis is largest; the last two as many labels as
// outputs, in the outputs' shape or another. UserError E0841 for another name, from update() for
// labels of other shapes, and from eval() where nothing was measured since clear().
std::unique_ptr<Metric> get_metric_fn(std::string_view name);
// The names that get_metric_fn() takes.
std::vector<std::string> metric_names();

// A metric and what eval() calls it: a name alone, or a name and your own.
struct NamedMetric {
  NamedMetric(const char* metric) : name(metric), own() {}
  NamedMetric(std::string metric) : name(std::move(metric)), own() {}
  NamedMetric(std::string metric, std::shared_ptr<Metric> yours)
      : name(std::move(metric)), own(std::move(yours)) {}
  std::string name;             // in the result
  std::shared_ptr<Metric> own;  // null: get_metric_fn(name)
};

}  // namespace aloft::ms
