// Which values a request for taps means: by module path, by op, or by name.
//
//   h.*.mlp                 what the modules h.0.mlp, h.1.mlp ... compute themselves
//   *                       everything; nothing at all: what is computed outside of modules
//   op:gelu_tanh            every result of the op
//   h.0.mlp/gelu_tanh       the op's results in that module; `#1` behind it: of its second call
//   backward:op:matmul      the same of the backward phase; also forward: (taken unless one is
//   update:*                named) and update:; perhaps:update:* where it may mean nothing
//   parameter:h.*.weight    the parameters of these names, and their gradients
//   input:*                 what the program is given; variable:* what other variables than
//                           parameters hold when it begins, such as moments
//   statistics:h.*.mlp      of what the pattern behind it means, the statistics (ops/statistics.h);
//                           of parameters also those of what the step adds to them
//   exponents:h.*.mlp       these, and behind them how many elements have each exponent; of what a
//                           step adds the statistics alone
//
// `*` stands for any text, dots and slashes included, `?` for one character. A value's name is its
// node's identity, "h.0.mlp/gelu_tanh#0", in a later phase "h.0.mlp/gelu_tanh_grad.backward#0"; of
// an op with several results the others are called "h.0.ln_1/layer_norm#0.1" and so on. A name
// means that value whatever its phase. A parameter's is "parameter:wte.weight", with ".gradient"
// behind it its gradient's, and with ".update" what the step adds to it; what a call of a module
// takes and gives (Programs::tap_calls) is called "call:h.0.mlp#0.input" and
// "call:h.0.mlp#0.output". Statistics have their value's name behind "statistics:" or "exponents:".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "types/statistics.h"

namespace aloft {

// The name of output `index` of a node.
std::string tap_name(const Node& node, std::uint32_t index);
// The identity of the node that a tap's name names, and the module path in which it stands.
std::string_view node_of_tap(std::string_view name);
std::string_view path_of_tap(std::string_view name);

// What stands in front of the names of taps that show no value: kStatisticsPrefix,
// kExponentsPrefix, or nothing where the tap shows one.
std::string_view shown_prefix(std::string_view name);
inline bool is_statistics(std::string_view name) { return !shown_prefix(name).empty(); }

std::string parameter_tap(std::string_view variable);
std::string input_tap(std::string_view input);
std::string variable_tap(std::string_view variable);  // of one that is no parameter
// Of what a step adds to the variable.
std::string update_tap(std::string_view prefix, std::string_view variable);
bool is_update_tap(std::string_view name);
std::string call_tap(std::string_view module, int call, std::string_view role);

// Whose gradient is shown with the value that has a tap of this name: a parameter's, or that of
// what a call of a module takes, as far as it comes through the module, or gives.
struct GradientTap {
  std::string name;                         // of the gradient's tap
  std::optional<std::string> through = {};  // the module's path
};
std::optional<GradientTap> gradient_of_tap(std::string_view name);
// The tap of what a call gives, beside that of what it takes.
std::string output_of_call(std::string_view input);

class TapPattern {
 public:
  explicit TapPattern(std::string_view text);
  // Whether the pattern asks for the value of this name.
  bool matches(std::string_view name) const;
  // The op that it means, without what stands for other text: "scores" of "h.0.attn/*scores*".
  std::string word() const;
  // The module path that it asks for, a glob.
  std::string path() const;
  // A pattern for what is called nearly so among the paths, ops or names of these values, or "".
  std::string nearest(const std::vector<std::string>& names) const;

 private:
  enum class By { Path, Op, Name, Outside };
  std::string text_, prefix_, glob_;  // prefix_: phase and kind, as written
  By by_ = By::Path;
  Phase phase_ = Phase::Forward;
  std::string_view kind_;   // of By::Outside: "parameter:", "input:" or "variable:"
  std::string_view shown_;  // the shown_prefix() of what it means
};

}  // namespace aloft
