#include "plan/choices.h"

namespace aloft {

const MeasuredChoice& Choices::choose(const std::string& name,
                                      const std::function<MeasuredChoice()>& measure) {
  if (const auto it = by_name_.find(name); it != by_name_.end()) return it->second;
  return by_name_.emplace(name, measure()).first->second;
}

std::map<std::string, std::string> Choices::values() const {
  std::map<std::string, std::string> values;
  for (const auto& [name, choice] : by_name_) values.emplace(name, choice.value);
  return values;
}

}  // namespace aloft
