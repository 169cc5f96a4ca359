// What the machine could do with a training step: its matrix products, each alone in the library at
// its best layout, and the bytes that the update cannot avoid at the best rate of memory. Measured
// in rounds between the steps, so that a neighbour who takes the machine takes it from both.
#pragma once

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <vector>

#include "backends/cpu/measure.h"
#include "cli/bench_profile.h"
#include "plan/plan.h"

namespace aloft::cli {

// Bytes that a step's update cannot avoid: every gradient read once, every master, moment and sum
// read and written once; a parameter written, and read where no full master stands for it.
double unavoidable_update_bytes(const Plan& plan);

// Batch, m, n, k and type of a matrix product.
using ProductKind = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, DType>;

// What a step cannot avoid.
struct StepWork {
  struct Instruction {
    std::map<ProductKind, int> products;  // of each kind how many
    bool is_update = false;
    // The part of the products that there is to compute: half where a matrix is multiplied with its
    // own transpose.
    double share = 1;
  };
  std::vector<Instruction> instructions;
  double update_bytes = 0;

  std::map<ProductKind, int> products() const;  // of all instructions
  double flops() const;                         // that there are to compute
};
StepWork work_of(const Plan& plan, const Program& program);

// The best that was seen of the machine in any round.
struct MachineBest {
  struct Product {
    double zeros_ms = std::numeric_limits<double>::infinity();
    double normal_ms = std::numeric_limits<double>::infinity();
  };
  std::map<ProductKind, Product> products;
  double sweep_gb_s = 0, update_gb_s = 0;

  void see_rates(double sweep, double update);  // of one more round
};

// Milliseconds below which the step cannot be.
struct LimitMs {
  MachineBest::Product products{0, 0};  // on zeros, and on normal numbers
  double update = 0;
  double zeros() const { return products.zeros_ms + update; }
  double normal() const { return products.normal_ms + update; }
};

// `least_ms`: of each instruction, the least that a profiled step took; infinite where none ran. A
// product or an update that was faster inside a step than alone counts as it was there, and memory
// at the better of both rates: no step beats the limit, and nothing has to be cut off at 1.
LimitMs limit_of(const StepWork& work, const MachineBest& best, std::span<const double> least_ms);

// Null for each figure of the limit, and why there is none.
void add_no_limit(nlohmann::json& j, const char* why);

class StepLimit {
 public:
  StepLimit(const Plan& plan, const Program& program);
  // Measures everything once; what a round finds faster than those before counts.
  void measure_round();
  // Adds the limit and the share of it that `step_ms` reaches. Null, with the reason, where the
  // library has no product of the program's type (f16).
  void add_to(nlohmann::json& j, double step_ms, const Profile& profile) const;

 private:
  nlohmann::json products() const;

  StepWork work_;
  MachineBest best_;
  std::map<ProductKind, cpu::ProductAlone> alone_;
  bool has_half_ = false;
};

}  // namespace aloft::cli
