#include "train/listed_words.h"

#include <algorithm>

#include "observe/function_table.h"
#include "observe/probe/tap_words.h"
#include "ops/op.h"
#include "passes/tap_pattern.h"

namespace aloft {

namespace {

constexpr std::string_view kOps = "Torch.", kForward = ".forward", kBackward = ".backward";

// Of which module of Python a function is says its first word; here all are of one.
std::string plain(std::string_view word) {
  for (const std::string_view type :
       {"Functional.", "Tensor.", "NPU.", "VF.", "Aten.", "Distributed.", "MindSpeed.", "Triton.",
        "Mint.", "MintFunctional.", "Primitive.", "Jit."})
    if (word.starts_with(type)) return std::string(kOps) + std::string(word.substr(type.size()));
  if (word.starts_with("Cell.")) return "Module." + std::string(word.substr(5));
  return std::string(word);
}

// A gradient's op is the function's own backward call there.
std::vector<std::string> functions_of(std::string_view op) {
  std::vector<std::string> names = {std::string(op)};
  if (probe::take_suffix(op, "_grad")) names.emplace_back(op);
  for (const NamedFunction& f : named_functions())
    if (f.op == op && f.is_listed) names.emplace_back(f.name);
  return names;
}

// "linear" of "Torch.linear.0.forward": the part of a word that is of a function's name.
std::string_view function_in(std::string_view word) {
  probe::take_prefix(word, kOps);
  for (std::size_t dot = word.find('.'); dot != std::string_view::npos;
       dot = word.find('.', dot + 1)) {
    const std::string_view rest = word.substr(dot);
    const bool is_number = rest.size() > 1 && rest[1] >= '0' && rest[1] <= '9';
    if (is_number || rest.starts_with(kForward) || rest.starts_with(kBackward))
      return word.substr(0, dot);
  }
  return word;
}

}  // namespace

bool names_entry(std::string_view word, const std::string& name, bool is_whole) {
  const std::string own = plain(word);
  const auto is_meant = [&](const std::string& text) {
    return is_whole ? text == own : text.find(own) != std::string::npos;
  };
  if (!name.starts_with(kOps)) return is_meant(name);
  const std::size_t end = name.find('.', kOps.size());
  const std::string_view op = std::string_view(name).substr(kOps.size(), end - kOps.size());
  return std::ranges::any_of(functions_of(op), [&](const std::string& function) {
    return is_meant(std::string(kOps) + function + name.substr(kOps.size() + op.size()));
  });
}

bool names_module_around(std::string_view word, const probe::Dump& dump,
                         const probe::LookedAt& value) {
  std::string_view path = value.name;
  if (probe::take_prefix(path, probe::kParameter))
    path = path.substr(0, path.find_last_of('.'));
  else if (probe::take_prefix(path, probe::kCall))
    path = path.substr(0, path.rfind('#'));
  else
    path = path_of_tap(value.name);
  const std::string own = plain(word);
  const bool is_backward = value.phase != Phase::Forward;
  while (!path.empty()) {
    const std::string call =
        dump.class_of(path) + std::string(is_backward ? kBackward : kForward) + ".0";
    if (call.find(own) != std::string::npos) return true;
    const std::size_t dot = path.rfind('.');
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return false;
}

std::vector<std::string> taps_of_functions(std::string_view word) {
  const std::string own = plain(word);
  const bool is_of_ops = own.starts_with(kOps);
  if (own.starts_with("Module.")) return {};
  const std::string_view part = function_in(own);
  std::vector<std::string> taps;
  // Of both phases: what a fusion computes later has the name of where it was called.
  const auto add = [&](std::string_view op) {
    for (const char* phase : {"op:", "backward:op:"}) taps.push_back(phase + std::string(op));
  };
  // "backward", "0.forward": of whatever function.
  if (part == "forward" || part == "backward" ||
      part.find_first_not_of("0123456789") == std::string_view::npos) {
    add("*");
    return taps;
  }
  for (const OpDef& op : op_table()) {
    const bool is_named =
        std::ranges::any_of(functions_of(op.name.str()), [&](const std::string& function) {
          if (is_of_ops) return (function + ".").starts_with(part);
          // Of two letters, such as "h", every other op has them: they are a module's.
          return function == part || (part.size() > 2 && function.find(part) != std::string::npos);
        });
    if (is_named) add(op.name.str());
  }
  return taps;
}

}  // namespace aloft
