#include "observe/compare/function_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "base/text.h"
#include "observe/function_table.h"

namespace aloft::compare {

namespace {

// What moves values, or their types, and computes nothing.
constexpr std::string_view kMoves[] = {
    "__getitem__", "broadcast_to", "cast",   "chunk",       "clone",      "concat",   "cat",
    "contiguous",  "detach",       "expand", "expand_as",   "flatten",    "float",    "permute",
    "reshape",     "slice",        "split",  "squeeze",     "stack",      "swapaxes", "transpose",
    "to",          "type_as",      "unbind", "unflatten",   "unsqueeze",  "view",     "view_as",
    "bfloat16",    "half",         "t",      "__setitem__", "empty_like", "arange"};

// "add" of "__add__" and of "add_", which writes in place.
std::string bare(std::string name) {
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4)
    name = name.substr(2, name.size() - 4);
  while (name.ends_with('_') && name.size() > 1) name.pop_back();
  return name;
}

std::map<std::string, std::string_view> ops_by_name() {
  std::map<std::string, std::string_view> ops;
  for (const NamedFunction& f : named_functions()) ops.emplace(bare(std::string(f.name)), f.op);
  return ops;
}

}  // namespace

std::string plain_function(const Entry& call) {
  static const std::map<std::string, std::string_view> ops = ops_by_name();
  std::string name = bare(lower(call.kind));
  const auto known = ops.find(name);
  return known == ops.end() ? name : std::string(known->second);
}

bool commutes(const Entry& call) {
  if (call.is_module) return false;
  const std::string name = plain_function(call);
  return name == "add" || name == "mul" || name == "maximum" || name == "minimum";
}

bool moves_values(const Entry& call) {
  return std::ranges::find(kMoves, call.kind) != std::end(kMoves);
}

}  // namespace aloft::compare
