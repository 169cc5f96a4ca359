#include "observe/compare/function_names.h"

#include <map>
#include <string_view>

#include "base/text.h"
#include "observe/function_table.h"

namespace aloft::compare {

namespace {

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

}  // namespace aloft::compare
