// One module of a run that does what several of the other do: a projection to query, key and value
// beside three.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "observe/compare/module_tree.h"

namespace aloft::compare {

// By the path of the one the paths of the several, in order.
using FusedModules = std::map<std::string, std::vector<std::string>>;

// Which modules without a partner are so, of runs whose other modules are `paired`: they lie below
// modules that are the same, and have as many weights. `one`: whether of the first run one module
// is several of the second; else of the second one is several of the first.
FusedModules fused_modules(const ModuleNode& npu, const ModuleNode& bench,
                           const std::map<std::string, std::string>& paired, bool one_in_npu);

// The calls of several modules as if one had made them: what it takes is what the first takes, what
// it gives, its parameters and their gradients are those of all, laid side by side. Only what can
// be said of these from the statistics is there: what flows back through one of several is no part
// of what flows back through all. Empty where they are not called alike. `made` keeps the entries.
std::vector<const Entry*> calls_as_one(const DumpFile& dump, const std::vector<std::string>& paths,
                                       std::deque<Entry>& made);

}  // namespace aloft::compare
