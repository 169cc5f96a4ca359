// Taps of what attention computes and never has whole: its scores and probabilities, computed once
// more where somebody asks for them by name.
//
//   op:attention_scores                   of every attention, the scores as the softmax takes them
//   h.*.attn/attention_probabilities      of these modules, what the softmax makes of them
//   statistics:op:attention_*             the statistics of both, and of what attention_qkv gives
//
// A pattern that does not name them, such as `*` or `op:*`, does not mean them: they take a square
// of the length for each head. They have the number of their call among those of its op
// in the module: "h.0.attn/attention_scores#1" is of the second.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace aloft {

// Whether a pattern of taps asks for them, and whether the tap of this name shows scores, in which
// -inf stands for what the mask hides.
bool asks_for_attention(std::string_view pattern);
bool shows_scores(std::string_view tap);

// Names of the two of attention number `call` in a module, as AttentionNumbers numbers them.
std::string scores_tap(std::string_view path, int call);
std::string probabilities_tap(std::string_view path, int call);

// That of the call among those of its op; where the module's other attention op has that already,
// the next that is free.
class AttentionNumbers {
 public:
  int of(Name path, int occurrence) {
    while (!taken_[path].insert(occurrence).second) ++occurrence;
    return occurrence;
  }
  void clear() { taken_.clear(); }

 private:
  std::map<Name, std::set<int>> taken_;
};

// Behind each attention of a graph that runs: what of it the graph's patterns ask for, and the taps
// of that. Nothing that was there is computed otherwise. Whether it changed anything.
bool show_attention(Graph& graph);

}  // namespace aloft
