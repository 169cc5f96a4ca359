// What is chosen by measurement, by name: "precision" = "O2:bf16". A choice is made once and
// recorded, in the Plan, in run.json and in checkpoints; whoever goes on from a record takes what
// it says and measures nothing, so that a measurement never decides about bits twice.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace aloft {

// Measured numbers, by what they are of and by their own names: "h.0.attn" -> "bf16 forward" ->
// 0.003.
using Figures = std::map<std::string, std::map<std::string, double>>;

struct MeasuredChoice {
  std::string value;       // decides, and is part of a Plan's signature
  std::string because;     // what was measured, for people; decides nothing
  Figures figures = {};    // the same in full, where there is more than a line of it
  std::string asked = {};  // what was to be chosen, "adaptive error_budget=0.02"; decides nothing
  friend bool operator==(const MeasuredChoice&, const MeasuredChoice&) = default;
};

class Choices {
 public:
  Choices() = default;
  explicit Choices(std::map<std::string, MeasuredChoice> recorded)
      : by_name_(std::move(recorded)) {}

  // The choice of that name as it is recorded; where there is none, what `measure` gives, which is
  // recorded from then on. Nothing else measures in order to choose.
  const MeasuredChoice& choose(const std::string& name,
                               const std::function<MeasuredChoice()>& measure);
  bool has(const std::string& name) const { return by_name_.contains(name); }
  const std::map<std::string, MeasuredChoice>& all() const { return by_name_; }
  std::map<std::string, std::string> values() const;  // as Plan::choices has them

 private:
  std::map<std::string, MeasuredChoice> by_name_;
};

}  // namespace aloft
