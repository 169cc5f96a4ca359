// Optimizer::add: parameters of a module that has grown since the optimizer was made.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "frontend/check_optimizer.h"
#include "frontend/eager_emitter.h"
#include "frontend/optimizer.h"
#include "frontend/premises.h"

namespace aloft {

void Optimizer::check_added(const OptimizerSpec& grown, const std::vector<VariablePtr>& all) const {
  if (premises_of_trace())
    throw UserError("E0305", "an optimizer is given more parameters in a function that is traced")
        .saw("Optimizer::add() in a compiled function")
        .need("a call outside of it: it changes the optimizer at once, whatever the program does")
        .advice("call it between the steps: the function is then compiled for what there is");
  check_optimizer(grown, all, scaler());
  // The numbers of those that are trained already are not to change.
  for (const VariablePtr& p : given()) {
    const std::string name = p->name.str();
    const auto takes = [&](const ParameterGroup& g) { return glob_match_any(g.parameters, name); };
    const auto first = std::find_if(grown.groups.begin(), grown.groups.end(), takes);
    if (first - grown.groups.begin() >= std::ssize(spec().groups) && first != grown.groups.end())
      throw UserError("E0809", "a group of added parameters takes one that was there before")
          .saw("patterns " + join(first->parameters, ", ") + ", which match '" + name + "'")
          .need("patterns of the parameters that are added alone");
  }
}

void Optimizer::add(const std::vector<VariablePtr>& parameters,
                    const std::vector<ParameterGroup>& groups) {
  OptimizerSpec grown = spec();
  grown.groups.insert(grown.groups.end(), groups.begin(), groups.end());
  std::vector<VariablePtr> all = given();
  all.insert(all.end(), parameters.begin(), parameters.end());
  check_added(grown, all);

  Optimizer draft = *this;
  draft.content_ = std::make_shared<Content>(*content_);
  Content& c = *draft.content_;
  c.spec = std::move(grown);
  c.given = std::move(all);
  c.trained.reset();
  std::vector<std::size_t> late;
  for (const VariablePtr& p : parameters) {
    if (!p->requires_grad) continue;
    late.push_back(c.parameters.size());
    draft.take(late.back(), p);
  }
  eager().let_go_of_variables();  // they are stored anew
  for (const VariablePtr& p : parameters)
    if (c.late_storage && p->type.dtype == DType::F32) c.late_storage(*p);
  for (const std::size_t i : late) give_master(*c.parameters[i]);
  const bool has_begun = applied->buffer && applied->buffer->read_one<std::int64_t>() > 0;
  if (has_begun && !late.empty()) draft.share_count(late, nullptr);
  *content_ = c;
  ++modes().regroupings;  // programs that were traced without them hold no longer
}

}  // namespace aloft
