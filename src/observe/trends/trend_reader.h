// The numbers of each layer in a step that was looked at: of the statistics that its program takes
// of calls of modules and of parameters.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "observe/probe/looked_at.h"
#include "types/trends.h"

namespace aloft::trends {

class TrendReader {
 public:
  // Of a program that takes statistics of calls (Programs::tap_calls) and of "parameter:*".
  explicit TrendReader(const Program& program) : TrendReader(probe::looked_at_in(program)) {}
  // Of an eager step that showed these.
  explicit TrendReader(std::vector<probe::LookedAt> values);

  // Of a step that left these numbers. `gradient_factor`: by how much gradients are larger than
  // those of the mean loss: the loss scale times the number of micro-batches. Layers stand in the
  // order in which their calls end; numbers have six digits.
  std::vector<LayerTrends> read(std::span<const double> all, double gradient_factor) const;

 private:
  // What the statistics of a layer are of.
  struct Layer {
    std::string name;
    std::vector<probe::LookedAt> weights, gradients, updates, outputs, output_gradients;
  };
  Layer& layer_of(std::string_view path);
  void add(probe::LookedAt value);

  std::vector<Layer> layers_;
};

}  // namespace aloft::trends
