// Where two runs would be made: variables of the environment, versions of packages.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/setting_values.h"

namespace aloft::config_check {

namespace {

struct Variable {
  std::string_view npu, gpu, otherwise;
  Level level;
  std::string_view advice;
};
constexpr Variable kVariables[] = {
#define VARIABLE(npu, gpu, otherwise, level, advice) {npu, gpu, otherwise, Level::level, advice},
#include "observe/config_check/variables.inc"
#undef VARIABLE
};

constexpr std::string_view kPackages[] = {
#define PACKAGE(name) name,
#include "observe/config_check/packages.inc"
#undef PACKAGE
};

// What a variable is on a side, by whichever of its names is set there.
struct Value {
  std::string name;
  std::string text;
  bool is_set = false;
};

bool is_npu(const Side& side) {
  return std::ranges::any_of(side.environment, [](const auto& variable) {
    return variable.first.find("ASCEND") != std::string::npos;
  });
}

Value value_on(const Side& side, const Variable& v) {
  for (const std::string_view name : {v.npu, v.gpu}) {
    const auto it = side.environment.find(std::string(name));
    if (!name.empty() && it != side.environment.end()) return {it->first, it->second, true};
  }
  const bool is_npus = v.gpu.empty() || (is_npu(side) && !v.npu.empty());
  return {std::string(is_npus ? v.npu : v.gpu), std::string(v.otherwise), false};
}

// PyPI's rule for names that are one.
std::string package_name(std::string_view name) {
  std::string out;
  for (const char c : lower(name)) {
    const bool is_sign = c == '-' || c == '_' || c == '.';
    if (!is_sign)
      out += c;
    else if (!out.ends_with('-'))
      out += '-';
  }
  return out;
}

std::string version_of(const Side& side, std::string_view package) {
  for (const auto& [name, version] : side.packages)
    if (package_name(name) == package) return version;
  return "";
}

// What a side takes: as Aloft would, or as the variable says by which others are told.
Value in_use_on(const Side& side, const std::string& what) {
  const auto own = side.in_use.find(what);
  if (own != side.in_use.end()) return {what + " in use", own->second, true};
  const auto set = side.environment.find(what == "threads" ? "OMP_NUM_THREADS" : "ALOFT_DEVICE");
  if (set != side.environment.end()) return {set->first, set->second, true};
  return {};
}

void add_in_use(Section& section, const Side& a, const Side& b) {
  const struct {
    const char* what;
    Level level;
    std::string_view advice;
  } kAll[] = {{"threads", Level::Warning,
               "speed differs; PyTorch's sums over threads round otherwise, Aloft's do not"},
              {"device", Level::Error, "another device, with other types perhaps: set it alike"}};
  for (const auto& [what, level, advice] : kAll) {
    if (!a.in_use.contains(what) && !b.in_use.contains(what)) continue;
    const Value x = in_use_on(a, what), y = in_use_on(b, what);
    if (!x.is_set || !y.is_set) continue;
    Finding f{Level::Pass, x.name, y.name, x.text, y.text, x.name == y.name ? "name" : "synonym"};
    if (!same_text(x.text, y.text)) f.level = level, f.advice = advice;
    f.row = {f.a_name, f.b_name, f.a_value, f.b_value};
    section.findings.push_back(std::move(f));
  }
}

}  // namespace

std::vector<std::string> known_variables() {
  std::vector<std::string> all;
  for (const Variable& v : kVariables)
    for (const std::string_view name : {v.npu, v.gpu})
      if (!name.empty()) all.emplace_back(name);
  return all;
}

Section check_environment(const Side& a, const Side& b) {
  Section section{"env", {}};
  for (const Variable& v : kVariables) {
    const Value x = value_on(a, v), y = value_on(b, v);
    // Nobody has set it, or a script does not say what it would find.
    if (!x.is_set && !y.is_set) continue;
    if ((!x.is_set && !a.is_whole_environment) || (!y.is_set && !b.is_whole_environment)) continue;
    Finding f{Level::Pass,
              x.name,
              y.name,
              x.is_set ? x.text : "not set",
              y.is_set ? y.text : "not set",
              x.name == y.name ? "name" : "synonym"};
    // Of what Aloft takes, whatever the variable says, the row "in use" judges.
    const bool is_own = x.name != "OMP_NUM_THREADS" && x.name != "ALOFT_DEVICE";
    const bool is_alone = a.in_use.empty() && b.in_use.empty();
    if (!same_text(x.text, y.text) && (is_own || is_alone)) f.level = v.level, f.advice = v.advice;
    f.row = {f.a_name, f.b_name, f.a_value, f.b_value};
    section.findings.push_back(std::move(f));
  }
  add_in_use(section, a, b);
  return section;
}

Section check_packages(const Side& a, const Side& b) {
  Section section{"pip", {}};
  for (const std::string_view package : kPackages) {
    const std::string x = version_of(a, package), y = version_of(b, package);
    if (x.empty() && y.empty()) continue;
    // Aloft's own run has no packages of Python, and the other way round.
    const bool is_aloft = package == "aloft";
    const auto says = [&](const Side& s) {
      return std::ranges::any_of(s.packages, [&](const auto& p) {
        return (package_name(p.first) == "aloft") == is_aloft;
      });
    };
    if (!says(a) || !says(b)) continue;
    const std::string name(package);
    Finding f{Level::Pass, name, name, x.empty() ? "None" : x, y.empty() ? "None" : y, "name"};
    if (x != y) f.level = Level::Error, f.advice = "install the same version on both sides";
    f.row = {name, f.a_value, f.b_value};
    section.findings.push_back(std::move(f));
  }
  return section;
}

}  // namespace aloft::config_check
