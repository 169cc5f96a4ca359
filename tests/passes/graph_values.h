// What a graph means before `differentiate` has run: the interpreter, with `gradients` nodes taken
// by differences. Slow, and independent of every vjp.
#pragma once

#include <map>
#include <vector>

#include "ops/evaluate.h"

namespace aloft::testing {

class GraphMeaning {
 public:
  GraphMeaning(const Graph& graph, const std::map<Name, HostArray>& given,
               const SymbolValues& lengths, EvalRounding rounding)
      : graph_(graph), given_(given), lengths_(lengths), rounding_(rounding) {}

  GraphValues run() const;

 private:
  // A value of which one element is moved, for differences.
  struct Nudge {
    ValueId value;
    std::int64_t element = 0;
    double by = 0;
  };
  using Values = std::map<ValueId, HostArray>;

  // Values of all nodes before `end` in the graph's order (all of them: no such node).
  Values evaluate(std::uint32_t end, const std::vector<Nudge>& nudges) const;
  std::vector<HostArray> results_of(std::uint32_t n, const Values& values,
                                    const std::vector<Nudge>& nudges) const;
  std::vector<HostArray> differences(std::uint32_t n, const Values& values,
                                     const std::vector<Nudge>& nudges) const;

  const Graph& graph_;
  const std::map<Name, HostArray>& given_;
  const SymbolValues& lengths_;
  EvalRounding rounding_;
};

}  // namespace aloft::testing
