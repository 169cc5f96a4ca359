// How far two records are apart, and whether rounding explains it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/compare/drift.h"
#include "observe/compare/elements.h"
#include "observe/compare/execution_order.h"
#include "observe/compare/pairing.h"

namespace aloft::compare {

struct Difference {
  double size = 0;     // relative; infinite where no number says it
  double allowed = 0;  // what rounding explains
  std::string of;      // which figure: "Norm", "Max", "the elements", "the shape", "the type"
  // Of elements that no number is the difference of, and of whole numbers, which: "-inf against inf
  // at [0, 3]".
  std::string seen = {};
  bool is_more() const { return !(size <= allowed); }
};

// A pair of records that was compared, in order of execution. Of a gradient that one run has and
// the other does not, one of the two is null.
struct Compared {
  Moment moment;
  RecordPair records;
  Difference difference;
  // The first run's figures were multiplied by it; 1 of what is no gradient.
  double factor = 1;
  bool is_turned = false;  // a square parameter that lies transposed in the other run
};

// What is known of the two steps beside their pairs.
struct Circumstances {
  double gradient_factor = 1;    // what brings the first run's gradients to the second's scale
  const Drift* drift = nullptr;  // of the steps before; null: none
  std::optional<double> loss;    // the larger size, where both say it
};

// The size alone, of two tensors of floats, or of whole numbers, which are equal or not; nothing
// where the dumps have nothing to compare: no elements, no figure that both have, no hashes.
// `natural`: how large the values would be if nothing in them cancelled, below which differences
// are not measured by the values themselves; 0: not known.
std::optional<Difference> difference_of(const RecordPair& pair, const ElementFigures* elements,
                                        double natural = 0);

// All pairs that both runs have, in order of execution, each with what is allowed there: the noise
// of all calls so far, and what the call's own inputs are already off, some times over. With them
// gradients of parameters that one run alone has, where both have any.
// `elements_of`: what the elements say of a pair, null where they are not there. `noise`, where it
// is given: what rounding explains at the end of the backward pass; `of_loss`: of the loss beside
// that.
std::vector<Compared> compare_all(const Pairs& pairs, const ElementsOf& elements_of,
                                  const Circumstances& circumstances = {}, double* noise = nullptr,
                                  double* of_loss = nullptr);

// How many pairs of tensors with elements are not among those, because the dumps have nothing of
// them to compare.
std::size_t count_bare(const Pairs& pairs, const std::vector<Compared>& compared);

}  // namespace aloft::compare
