// What a map (name_map.h) says of the modules of two runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "observe/compare/module_tree.h"
#include "observe/compare/name_map.h"

namespace aloft::compare {

class MappedModules {
 public:
  // The trees outlive this.
  MappedModules(const ModuleNode& npu, const ModuleNode& bench, const NameMap& map);

  // The path in the second run that the map gives a module of the first, less what all paths of a
  // run may begin with; nothing where it says nothing of the module. No module may be there.
  std::optional<std::string> other_name_of(const ModuleNode& npu) const;
  // Of each line of a map without values whether it has an effect.
  const std::vector<LineFit>& fits() const { return fits_; }

 private:
  std::map<const ModuleNode*, std::string> names_;
  std::vector<LineFit> fits_;
};

}  // namespace aloft::compare
