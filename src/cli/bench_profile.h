// Where a training step's time goes: each instruction of the program, timed over profiled steps by
// the clock of the device that they run on.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "plan/plan.h"
#include "runtime/observer.h"

namespace aloft::cli {

double steady_seconds();

// Attached to a device while steps run; counts the steps by the program's last instruction.
class Profile : public Observer {
 public:
  explicit Profile(const Program& program);
  void after(const OpEvent& e) override;

  // Milliseconds of each instruction, the least that any step took; infinite where none ran.
  std::vector<double> least_ms() const;
  // The mean of all in ops that hold matrix products, and of all in the update.
  double products_ms() const;
  double update_ms() const;
  // Milliseconds a step by op and phase, longest first.
  nlohmann::json by_op() const;

 private:
  double mean_ms(std::size_t instruction) const;  // a step
  const Program& program_;
  std::vector<double> seconds_, least_;
  int steps_ = 0;
};

}  // namespace aloft::cli
