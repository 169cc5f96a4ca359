#include "train/probe_taps.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/attention_taps.h"
#include "train/listed_words.h"
#include "types/statistics.h"

namespace aloft {

namespace {

using Strings = std::vector<std::string>;

// Whether a name in the list is one of the module's, or a part of one.
bool is_asked(const nn::Module& m, const Strings& list) {
  const std::string base = fmt::format("Module.{}.", m.path());
  const std::string own = base + std::string(m.kind().empty() ? "Module" : m.kind());
  return std::ranges::any_of(list, [&](const std::string& name) {
    constexpr std::string_view kWords = ".forward.backward.parameters_grad.parameters_update";
    if (kWords.find(name) != std::string_view::npos) return true;
    std::string_view module = name;  // "mlp.c_fc.Linear" of "mlp.c_fc.Linear.backward.0"
    for (const std::string_view word : {".forward", ".backward", ".parameters"})
      module = module.substr(0, module.find(word));
    return (own + ".").find(module) != std::string::npos;
  });
}

// Of the modules that the list names, and at level mix of those inside these.
Strings asked_paths(nn::Module& model, const Strings& list, bool is_mix) {
  Strings paths;
  const auto is_inside = [&](const std::string& path) {
    return std::ranges::any_of(paths, [&](const std::string& outer) {
      return outer.empty() || path.starts_with(outer + ".");
    });
  };
  for (const nn::Module* m : model.modules())
    if (is_asked(*m, list) || (is_mix && is_inside(m->path()))) paths.push_back(m->path());
  return paths;
}

// Of all modules, calls and parameters; of a list, of those that it names.
void add_modules(AskedTaps& asked, std::string_view prefix, const Strings& list, nn::Module* model,
                 bool is_mix = false) {
  if (list.empty() || !model) {
    asked.patterns.push_back(std::string(prefix) + "parameter:*");
    asked.calls.push_back({model, std::string(prefix)});
    return;
  }
  const Strings paths = asked_paths(*model, list, is_mix);
  const auto is_listed = [paths](const std::string& path) {
    return std::ranges::find(paths, path) != paths.end();
  };
  asked.calls.push_back({model, std::string(prefix), is_listed});
  for (const VariablePtr& p : model->parameters()) {
    const std::string& name = p->name.str();
    if (is_listed(name.substr(0, std::min(name.rfind('.'), name.size()))))
      asked.patterns.push_back(std::string(prefix) + "parameter:" + name);
  }
}

void add_ops(AskedTaps& asked, std::string_view prefix, const Strings& patterns) {
  for (const std::string& pattern : patterns)
    asked.patterns.push_back(std::string(prefix) + pattern);
}

const Strings kInside = {"op:attention_scores", "op:attention_probabilities"};

// Whether attentions are looked into, as is said or as the list names it.
bool looks_inside(const ProbeSection& probe) {
  return probe.level != "module" &&
         (probe.attention || std::ranges::any_of(probe.list, [](const std::string& word) {
            return is_pattern(word) && asks_for_attention(word);
          }));
}

// The values themselves, which task "tensor" writes.
void add_tensors(AskedTaps& asked, const ProbeSection& probe, nn::Module* model) {
  const Strings all_ops = {"*", "backward:*"};
  const std::string perhaps = "perhaps:";
  const bool is_mix = probe.level == "mix";
  if (probe.level == "module" || (is_mix && probe.list.empty()))
    add_modules(asked, "", probe.list, model);
  if (probe.level == "module") return;
  if (probe.list.empty()) {
    add_ops(asked, "", all_ops);
    if (probe.attention) add_ops(asked, "", kInside);
    return;
  }
  Strings parts;
  for (const std::string& word : probe.list) {
    const Strings functions = is_pattern(word) ? Strings() : taps_of_functions(word);
    for (const std::string& function : functions) asked.patterns.push_back(perhaps + function);
    if (!is_pattern(word) && is_mix)
      parts.push_back(word);
    else
      asked.patterns.push_back(functions.empty() ? word : perhaps + word);
  }
  if (parts.empty()) return;
  add_modules(asked, "", parts, model, is_mix);
  // Of a module that a word names, what it computes inside.
  for (const std::string& path : model ? asked_paths(*model, parts, is_mix) : Strings{"*"})
    for (const char* phase : {"", "backward:"}) asked.patterns.push_back(perhaps + phase + path);
}

}  // namespace

bool is_pattern(const std::string& word) { return word.find_first_of(":/*?") != std::string::npos; }

AskedTaps taps_of(Look look, const ProbeSection& probe, const MonitorSection& monitor,
                  nn::Module* model) {
  AskedTaps asked;
  const bool counts = look == Look::Exponents || (look == Look::Trends && monitor.exponents);
  const std::string_view prefix = counts ? kExponentsPrefix : kStatisticsPrefix;
  // Who looks on for acc_check sees all calls as they are.
  const bool is_of_calls = probe.task == "acc_check";
  if (is_of_calls && !monitor.on) return asked;
  if (look == Look::Trends || is_of_calls) {
    add_modules(asked, prefix, {}, model);
    return asked;
  }
  if (probe.task == "tensor") add_tensors(asked, probe, model);
  if (probe.task == "overflow") {
    add_ops(asked, prefix, {"*", "backward:*", "update:*", "parameter:*"});
    for (const char* outside : {"input:*", "variable:*"})  // what a step is given, of which floats
      asked.patterns.push_back(fmt::format("perhaps:{}{}", prefix, outside));
    if (monitor.on) asked.calls.push_back({model, std::string(prefix)});
    return asked;
  }
  // Where nobody asks for what is between two entries, nor for what others are numbered by, those
  // that are named are enough.
  const bool are_few =
      probe.task == "statistics" && probe.level == "module" && probe.scope.empty() && !monitor.on;
  if (probe.level != "op" || monitor.on)
    add_modules(asked, prefix, are_few ? probe.list : Strings(), model);
  if (probe.level != "module") add_ops(asked, prefix, {"*", "backward:*"});
  if (looks_inside(probe)) add_ops(asked, prefix, kInside);
  // What is computed only for who names it.
  if (probe.level != "module")
    for (const std::string& word : probe.list)
      if (is_pattern(word)) asked.patterns.push_back("perhaps:" + std::string(prefix) + word);
  return asked;
}

}  // namespace aloft
