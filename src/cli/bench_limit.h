// What the machine could do with a training step: its matrix products, each alone in the library at
// its best layout, and the bytes that the update cannot avoid at the best rate of memory. Measured
// in rounds between the steps, so that a neighbour who takes the machine takes it from both.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "backends/cpu/measure.h"
#include "cli/bench_profile.h"
#include "plan/plan.h"

namespace aloft::cli {

// Bytes that a step's update cannot avoid: every gradient read once, every master, moment and sum
// read and written once; a parameter written, and read where no full master stands for it.
double unavoidable_update_bytes(const Plan& plan);

// Null for each figure of the limit, and why there is none.
void add_no_limit(nlohmann::json& j, const char* why);

class StepLimit {
 public:
  StepLimit(const Plan& plan, const Program& program);
  // Measures everything once; what a round finds faster than those before counts.
  void measure_round();
  // Adds the limit and the share of it that `step_ms` reaches. A product or an update that was
  // faster inside a profiled step than alone counts as it was there: no step beats the limit.
  // Null, with the reason, where the library has no product of the program's type (f16).
  void add_to(nlohmann::json& j, double step_ms, const Profile& profile) const;

 private:
  using Kind = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, DType>;
  struct Totals {
    double zeros_ms = 0, normal_ms = 0;
  };
  Totals products_ms(const Profile& profile) const;
  double update_ms(const Profile& profile) const;
  nlohmann::json products() const;

  const Program& program_;
  double update_bytes_;
  std::vector<std::map<Kind, int>> of_instruction_;
  std::map<Kind, cpu::ProductAlone> alone_;
  double sweep_gb_s_ = 0, update_gb_s_ = 0;
  bool has_half_ = false;
};

}  // namespace aloft::cli
