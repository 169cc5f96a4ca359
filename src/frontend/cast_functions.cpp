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
    if (found->numeric != Numeric::Follow && found->numeric != Numeric::Exact)
      throw UserError("E0711", "this op does not compute in its operands' widest type by its name")
          .saw(found->name.str())
          .need("an op of the class Follow, which does so anyway")
          .advice("amp::promote_function([](Tensor a, Tensor b) { ... }) casts what it is given");
}

}  // namespace aloft::amp
