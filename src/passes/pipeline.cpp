#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/text.h"

namespace aloft {

Pipeline& Pipeline::then(const Pass& pass) {
  if (pass.needs > form_)
    throw InternalError("pass '" + std::string(pass.name) + "' comes too early in '" +
                        std::string(name_) + "'")
        .saw("a graph that is " + std::string(name_of(form_)))
        .need("one that is " + std::string(name_of(pass.needs)));
  if (pass.gives) form_ = std::max(form_, *pass.gives);
  stages_.push_back({{&pass}, false});
  return *this;
}

Pipeline& Pipeline::until_stable(std::initializer_list<const Pass*> passes) {
  for (const Pass* p : passes) ensure(p->needs <= form_, "a repeated pass has the form it needs");
  stages_.push_back({passes, true});
  return *this;
}

std::vector<const Pass*> Pipeline::passes() const {
  std::vector<const Pass*> all;
  for (const Stage& s : stages_) all.insert(all.end(), s.passes.begin(), s.passes.end());
  return all;
}

std::vector<std::string> Pipeline::optional_passes() const {
  std::vector<std::string> names;
  for (const Pass* p : passes())
    if (!p->gives && !p->on_request &&
        std::find(names.begin(), names.end(), p->name) == names.end())
      names.emplace_back(p->name);
  return names;
}

void Pipeline::check(const PipelineOptions& options) const {
  const std::vector<std::string> known = optional_passes();
  for (const std::string& name : options.skip) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    throw UserError("E0317", in_quotes(name) + " is no pass that may be left out")
        .need("one of: " + join(known, ", "))
        .advice(near.empty() ? "`aloft passes` lists them" : near);
  }
}

std::vector<PassTime> Pipeline::run(Graph& graph, const PassContext& context,
                                    const PipelineOptions& options) const {
  using Clock = std::chrono::steady_clock;
  constexpr int kMostRounds = 10;
  std::vector<PassTime> times;
  int number = 0;
  const auto run_one = [&](const Pass& pass) {
    if (pass.gives && *pass.gives <= context.form) return false;  // the graph is so already
    if (std::find(options.skip.begin(), options.skip.end(), pass.name) != options.skip.end())
      return false;
    if (pass.on_request && !std::count(options.also.begin(), options.also.end(), pass.name))
      return false;
    const auto start = Clock::now();
    PassReport report = pass.run(graph, context);
    verify_structure(graph);
    const bool changed = report.changed;
    times.push_back({pass.name, std::chrono::duration<double>(Clock::now() - start).count(),
                     std::move(report)});
    if (options.dump) options.dump(number, pass.name, graph);
    ++number;
    return changed;
  };
  for (const Stage& stage : stages_) {
    bool changed = true;
    for (int round = 0; changed && round < (stage.repeat ? kMostRounds : 1); ++round) {
      changed = false;
      for (const Pass* pass : stage.passes) changed |= run_one(*pass);
    }
  }
  return times;
}

const Pipeline& compile_pipeline() {
  static const Pipeline pipeline = [] {
    Pipeline p("compile");
    p.then(insert_casts)
        .then(mark_taps)
        .then(fuse_head)
        .then(differentiate_pass)
        .then(mark_taps)
        .then(measure_layers)
        .until_stable({&simplify, &cse, &dce})
        .then(fuse_head_gradient)
        .then(fuse_embedding_gradient)
        .then(fuse_norm)
        .then(expand_bodies)
        .until_stable({&simplify, &cse, &dce})
        .then(recompute_elementwise)
        .then(fuse_elementwise)
        .then(hoist_updates)
        .then(take_statistics);
    return p;
  }();
  return pipeline;
}

}  // namespace aloft
