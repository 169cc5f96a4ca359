#include "run/validation_loss.h"

#include "tasks/loss_text.h"

namespace aloft {

std::optional<double> ValidationLoss::measure(std::string_view name) const {
  for (const Measure& m : measures)
    if (m.name == name) return m.value;
  return std::nullopt;
}

std::string describe(const ValidationLoss& v) {
  std::string text = "validation loss " + loss_text(v.loss), more;
  for (const Measure& m : v.measures) more += (more.empty() ? "" : ", ") + m.text;
  return more.empty() ? text : text + " (" + more + ")";
}

}  // namespace aloft
