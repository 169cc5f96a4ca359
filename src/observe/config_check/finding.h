// What came out of comparing two sides: a row for each thing that both could have said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aloft::config_check {

enum class Level { Pass, Warning, Error };
std::string_view name_of(Level level);  // "pass", "warning", "error"

struct Finding {
  Level level = Level::Pass;
  std::string a_name, b_name;    // "" where that side has none
  std::string a_value, b_value;  // for people
  std::string matched;           // why the two names are one: "name", "synonym", "similar 0.88"
  std::string advice = {};       // what to do; "" of what is alike
  std::vector<std::string> row = {};  // in msprobe's sheet, but for the level (msprobe_sheets.h)
  bool is_of_both() const { return !a_name.empty() && !b_name.empty(); }
};

// All of one kind, by the name of msprobe's sheet: env, pip, dataset, weights, hyperparameters,
// random.
struct Section {
  std::string name;
  std::vector<Finding> findings;
  Level level() const;  // the worst
};

// The worst of all.
Level verdict(const std::vector<Section>& sections);

}  // namespace aloft::config_check
