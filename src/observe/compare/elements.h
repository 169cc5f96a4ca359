// Two tensors, element by element.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "observe/compare/pairing.h"

namespace aloft::compare {

// msprobe's figures of two tensors, in double, and ours. A figure that has no meaning is nothing,
// and `problem` says why.
struct ElementFigures {
  std::optional<double> cosine, distance, max_absolute, max_relative, thousandth, five_thousandths;
  // Numbers of the coarser of the two types between the two, at most.
  std::optional<double> max_ulps;
  double relative_distance = 0;  // |a - b| / |b|; infinite where they cannot be compared
  double relative_worst = 0;     // the largest difference over the largest magnitude of b
  double relative_typical = 0;   // the median difference over the root mean square of b
  // What the first two are made of: |a - b|, |b|, and the largest of each.
  double difference = 0, length = 0, largest_difference = 0, largest = 0;
  std::string problem;          // as msprobe words it
  std::string unreadable = {};  // which file cannot be read, and why: there are no figures then
};

// Of a pair whose elements both dumps have.
using ElementsOf = std::function<const ElementFigures*(const RecordPair&)>;

// A tensor's elements, in order; of another type than floats as numbers.
struct Elements {
  std::vector<double> values;
  std::vector<std::int64_t> shape;
  std::string type;
};

// `may_be_turned`: of a parameter, its gradient or update, which runs may keep in either layout.
ElementFigures figures_of(const Elements& npu, const Elements& bench, bool may_be_turned = false);

}  // namespace aloft::compare
