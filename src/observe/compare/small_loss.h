// What rounding makes of a loss that is nearly 0, and of the gradients that come from it.
#pragma once

#include <optional>

#include "observe/compare/pairing.h"

namespace aloft::compare {

// A small loss is a difference of numbers as large as the logits, and the first gradient that of a
// probability and 1, or of a result and what it should be: both are rounded as those are, however
// little is left. How far they may be off is derived from the loss and the types.
class SmallLoss {
 public:
  explicit SmallLoss(std::optional<double> loss) : loss_(loss) {}

  // What a call of the forward pass gives, in order of execution: the last one gives the logits, or
  // takes them where it gives the loss itself.
  void note_logits(const EntryPair& entry);
  // Relative, of the loss. `unit`: the coarsest of the types.
  double of_loss(double unit) const { return lost_digits(unit) * logits_; }
  // Relative, of the first gradient; 0 where the loss is not small, or not known.
  double of_gradient(double unit) const;

  // How long a gradient's error is, in parts of it, by how far it is off: of elements that is what
  // was measured. Of statistics the largest difference: norm, largest and least element are each
  // off by a part of the error that chance decides, and that all three are by less than half of it
  // is one case in twenty.
  static double length_of_error(double measured, bool is_by_elements);

 private:
  // In parts of the loss: so much is a rounding of 1, and no more than all of it.
  double lost_digits(double unit) const;

  std::optional<double> loss_;
  double logits_ = 0;  // the largest of what the forward pass gives
};

}  // namespace aloft::compare
