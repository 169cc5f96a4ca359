#include "frontend/cast_functions.h"

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "graph/scope.h"
#include "ops/op.h"
#include "precision/rules.h"

namespace aloft::amp {
namespace {

std::vector<const OpDef*> ops_like(const std::string& pattern) {
  std::vector<const OpDef*> found;
  std::vector<std::string> names;
  for (const OpDef& op : op_table()) {
    names.push_back(op.name.str());
    if (glob_match(pattern, names.back())) found.push_back(&op);
  }
  if (found.empty())
    throw UserError("E0809", "there is no op of this name")
        .saw(in_quotes(pattern, 60))
        .need("the name of an op, with * for any letters")
        .advice("did you mean \"" + nearest_name(pattern, names) + "\"?");
  return found;
}

// Whether floating operands of several types meet in the widest at O1.
bool promotes(const OpDef& op) {
  return op.numeric == Numeric::Follow ||
         (op.numeric == Numeric::Exact && op.fusion == Fusion::Elementwise);
}

const char* why_not(Numeric numeric) {
  switch (numeric) {
    case Numeric::Narrow:
      return "which O1 computes in the low type, whatever its operands have";
    case Numeric::Widen:
      return "which O1 computes in f32, whatever its operands have";
    default:
      return "whose operands keep their types: indices, masks, state, or a single tensor";
  }
}

}  // namespace

DType wider_of(std::optional<DType> a, DType b) { return a ? wider(*a, b) : b; }

std::optional<DType> low_type_of_o1() {
  const Policy& policy = current_where().policy;
  if (!policy || policy.recipe().level != Level::O1) return std::nullopt;
  return policy.recipe().low;
}

void register_half_function(Options& options, const std::string& op) {
  ops_like(op);
  options.half_ops.push_back(op);
}

void register_float_function(Options& options, const std::string& op) {
  ops_like(op);
  options.float_ops.push_back(op);
}

void register_promote_function(Options& options, const std::string& op) {
  static_cast<void>(options);
  for (const OpDef* found : ops_like(op))
    if (!promotes(*found))
      throw UserError("E0711", "this op does not compute in its operands' widest type by its name")
          .saw(found->name.str() + ", " + why_not(found->numeric))
          .need("an op of the class Follow or a comparison, which do so anyway")
          .advice("amp::promote_function([](Tensor a, Tensor b) { ... }) casts what it is given");
}

}  // namespace aloft::amp
