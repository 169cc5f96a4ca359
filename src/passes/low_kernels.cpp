#include "passes/low_kernels.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/log.h"
#include "ops/graph_emitter.h"
#include "types/bound_watch.h"

namespace aloft {
namespace {

bool computes(const TakesCall& takes, const CallSpec& call, int depth);

// Whether all ops of the body are computed, traced on operands of the call's types.
bool computes_body(const TakesCall& takes, const OpDef& op, const CallSpec& call, int depth) {
  constexpr int kDeepest = 16;
  if (!op.body || depth == kDeepest) return false;
  Graph body;
  GraphEmitter emitter(body);
  std::vector<Tensor> in;
  for (std::size_t i = 0; i < call.in.size(); ++i)
    in.push_back(emitter.handle(body.add_input("in" + std::to_string(i), call.in[i])));
  const EmitterScope scope(emitter);
  op.body(call.attrs, in);
  return std::ranges::all_of(body.order(), [&](std::uint32_t n) {
    const Node& node = body.node(n);
    if (!find_op(node.op)) return true;  // an operand
    CallSpec part{node.op, node.attrs, {}, node.out, 1, node.form};
    for (const ValueId v : node.in) part.in.push_back(body.type(v));
    return computes(takes, part, depth + 1);
  });
}

bool computes(const TakesCall& takes, const CallSpec& call, int depth) {
  return takes(call) || computes_body(takes, op_named(call.op), call, depth);
}

std::mutex& told_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// Whether this is the first time that it is said.
bool is_new_type(DType low, bool is_stored) {
  static auto& told = *new std::set<std::pair<DType, bool>>;
  const std::scoped_lock lock(told_mutex());
  return told.emplace(low, is_stored).second;
}

std::string written_at(const Where& where) {
  std::string place = where.file ? where.file.str() + ":" + std::to_string(where.line) : "";
  if (where.path) place += (place.empty() ? "" : ", ") + ("module " + where.path.str());
  return place.empty() ? "" : " (" + place + ")";
}

}  // namespace

bool LowKernels::lack(const OpDef& op, const OpCall& call, std::span<const TensorType> in,
                      const Where& where) {
  if (!takes_) return false;
  const BoundWatch inference(nullptr);  // a program that asks this still takes shorter batches
  const auto low = std::ranges::find_if(in, [](const TensorType& t) { return is_low(t.dtype); });
  if (low == in.end()) return false;
  const std::pair key{op.name, low->dtype};
  if (known_.contains(key)) return false;
  CallSpec spec{op.name, call.attrs, {in.begin(), in.end()}, {}, 1, call.form};
  spec.out = infer_types(op, call.attrs, in, where);
  if (!computes(takes_, spec, 0)) return true;
  known_.insert(key);
  return false;
}

void tell_no_low_kernel(Name op, DType low, const Where& where) {
  static auto& told = *new std::set<std::tuple<Name, DType, Name, int>>;
  {
    const std::scoped_lock lock(told_mutex());
    if (!told.emplace(op, low, where.file, where.line).second) return;
  }
  log_warning("{} has no kernel in {} here, and is computed in f32{}", op.str(), name_of(low),
              written_at(where));
}

void tell_no_low_type(Name op, DType low, bool is_stored, const Where& where) {
  if (!is_new_type(low, is_stored)) return;
  if (is_stored)
    log_warning("{} is not multiplied here: {} and the like are stored in it and computed in f32{}",
                name_of(low), op.str(), written_at(where));
  else
    log_warning("{} is no type of this device: {} and what else would be of it is f32{}",
                name_of(low), op.str(), written_at(where));
}

void no_low_type_is_told(DType low, bool is_stored) { is_new_type(low, is_stored); }

}  // namespace aloft
