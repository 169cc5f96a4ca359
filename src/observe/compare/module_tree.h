// The tree of a run's modules, of their paths alone, and which module of one tree is which of
// another.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/compare/dump_file.h"
#include "observe/compare/name_map.h"

namespace aloft::compare {

struct ModuleNode {
  std::string path;    // "h.0.mlp"; of the root ""
  std::string kind;    // of its class; "" of one that is never called, as a list of modules
  double weights = 0;  // how many elements the parameters have, of it and below
  std::vector<std::unique_ptr<ModuleNode>> children;  // in the order of their first calls

  ModuleNode* child(std::string_view name);
  std::string_view name() const;  // the last part of its path
};

// Of the modules that are called in a dump, or call the functions in it.
std::unique_ptr<ModuleNode> module_tree(const DumpFile& dump);

// What lies below a module, in order.
std::vector<const ModuleNode*> all_below(const ModuleNode& node);

// For paths of one run those of the other. Modules are the same where `map` says so; else where
// their paths are, up to what all paths of a run begin with ("transformer."); and below a pair, or
// at the roots, where both have as many weights, in order.
std::map<std::string, std::string> pair_modules(const ModuleNode& npu, const ModuleNode& bench,
                                                const NameMap& map);

}  // namespace aloft::compare
