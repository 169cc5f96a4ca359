// Two tensors, element by element.
#pragma once

#include <cstdint>
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
  // Of a square matrix: its rows are the other's columns, which its shape does not say.
  bool is_turned = false;
  // Where one alone is not finite, or both are and not the same, and of whole numbers that are not
  // the same: the first such element, as the second run lays them out, and how many there are:
  // "-inf against inf at [0, 3], and 4 more such".
  std::string seen = {};
};

// Of a pair whose elements both dumps have.
using ElementsOf = std::function<const ElementFigures*(const RecordPair&)>;

// A tensor's elements, in order; of another type than floats as numbers.
struct Elements {
  std::vector<double> values;
  std::vector<std::int64_t> shape;
  std::string type;
  // Of whole numbers, some of which no double is: what each is beyond its double; else empty.
  std::vector<double> rests = {};
};

// What a whole number is beyond the double that is nearest to it; 0 up to 2^53.
double rest_of(std::int64_t value);

// `may_be_turned`: of a parameter, its gradient or update, which runs may keep in either layout: a
// square matrix is taken in that in which the two are much nearer.
ElementFigures figures_of(const Elements& npu, const Elements& bench, bool may_be_turned = false);

}  // namespace aloft::compare
