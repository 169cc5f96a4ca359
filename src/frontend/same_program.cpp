// Whether a program that was read from outside is one for a trace: what a reader of the text cannot
// know and the trace, the op table and the device do.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "frontend/compiled_program.h"
#include "ops/op.h"

namespace aloft {
namespace {

bool has_inputs_of(const Program& program, const Graph& traced) {
  std::unordered_map<std::string, TensorType> known;
  for (std::uint32_t n : traced.inputs())
    known.emplace(std::get<std::string>(*traced.node(n).attrs.find("name")), traced.node(n).out[0]);
  return std::ranges::all_of(program.inputs, [&](const NamedRef& r) {
    const auto it = known.find(r.name);
    return it != known.end() && it->second == r.ref.type;
  });
}

// All of the trace's, of their types, but for taps, which may be lost, or show another thing of
// their value; what else there is are taps that somebody asked for.
bool has_outputs_of(const Program& program, const Graph& traced) {
  std::unordered_map<std::string_view, const NamedRef*> has;
  for (const NamedRef& r : program.outputs)
    if (!has.emplace(r.name, &r).second) return false;
  bool is_tapped = !traced.tap_patterns().empty();
  for (const GraphOutput& o : traced.outputs()) {
    if (o.kind == OutputKind::Tap) {
      is_tapped = true;
      continue;
    }
    const auto it = has.find(o.name.str());
    if (it == has.end() || it->second->ref.type != traced.type(o.value)) return false;
    if (it->second->is_tap != (o.kind == OutputKind::Watch)) return false;
    has.erase(it);
  }
  if (!is_tapped) return has.empty();
  return std::ranges::all_of(has, [](const auto& other) { return other.second->is_tap; });
}

bool has_variables_of(const CompiledProgram& p, const Graph& traced) {
  const auto is_known = [&](const StateSlot& s) {
    const auto v = traced.find_state(s.id);
    if (!v) return false;
    const StateSlot asked = slot_of(traced.node(v->node));
    return s.name == asked.name && s.type == asked.type && s.cls == asked.cls &&
           s.requires_grad == asked.requires_grad && s.is_norm == asked.is_norm;
  };
  return std::ranges::all_of(p.lowered.state, is_known) &&
         p.graph.updates().size() == traced.updates().size() &&
         std::ranges::all_of(p.graph.updates(), [&](const StateUpdate& u) {
           return traced.find_state(u.id).has_value();
         });
}

// The results are those that its op has for these operands: kernels count on it.
bool is_a_call(const Instruction& i) {
  const OpDef* op = find_op(i.call.op);
  if (op == nullptr) return false;
  return may_have_form(*op, i.call.form, i.call.in) &&
         infer_types(*op, i.call.attrs, i.call.in, {}) == i.call.out;
}

}  // namespace

bool is_of(const CompiledProgram& p, const Graph& traced, const ChooseKernel& choose) {
  const Program& program = p.lowered.program;
  if (program.name != traced.name.str() || !has_inputs_of(program, traced) ||
      !has_outputs_of(program, traced) || !has_variables_of(p, traced))
    return false;
  const auto runs_here = [&](const Instruction& i) {
    if (i.copy) return true;  // streams do that, no kernel
    if (!is_a_call(i)) return false;
    const KernelChoice here = choose(i.call);
    const std::size_t scratch = i.scratch < 0 ? 0 : program.buffers[i.scratch].bytes;
    return here.kernel == i.kernel && here.form == i.form && here.refusals == i.refusals &&
           here.scratch_bytes == scratch;
  };
  try {
    return std::ranges::all_of(program.instructions, runs_here);
  } catch (const Error&) {  // a call that no compiler would have made
    return false;
  }
}

}  // namespace aloft
