#include "passes/tap_pattern.h"

#include "base/error.h"
#include "base/text.h"

namespace aloft {
namespace {

constexpr std::string_view kInputKind = "input:", kVariable = "variable:";
constexpr std::string_view kParameter = "parameter:", kCall = "call:", kGradient = ".gradient";
constexpr std::string_view kUpdate = ".update";
constexpr std::string_view kInput = ".input", kOutput = ".output", kPerhaps = "perhaps:";

std::string_view without_prefix(std::string_view name) {
  return name.substr(shown_prefix(name).size());
}

// A value's name taken apart: "path/op.phase#occurrence.index".
struct NameParts {
  std::string_view path, op;
  Phase phase = Phase::Forward;
  std::string in_phase;  // the name without its phase
};

NameParts parts_of(std::string_view name) {
  NameParts parts;
  const std::size_t count = name.rfind('#'), slash = name.rfind('/', count);
  if (count == std::string_view::npos || slash == std::string_view::npos) return parts;
  parts.path = name.substr(0, slash);
  parts.op = name.substr(slash + 1, count - slash - 1);
  if (const std::size_t dot = parts.op.find('.'); dot != std::string_view::npos) {
    parts.phase = parse_phase(parts.op.substr(dot + 1)).value_or(Phase::Forward);
    parts.op = parts.op.substr(0, dot);
  }
  parts.in_phase = std::string(parts.path) + "/";
  parts.in_phase += parts.op;
  parts.in_phase += name.substr(count);
  return parts;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string tap_name(const Node& node, std::uint32_t index) {
  return node.identity() + (index > 0 ? "." + std::to_string(index) : "");
}

std::string_view shown_prefix(std::string_view name) {
  for (const std::string_view prefix : {kStatisticsPrefix, kExponentsPrefix})
    if (name.starts_with(prefix)) return prefix;
  return {};
}

std::string parameter_tap(std::string_view variable) {
  return std::string(kParameter) + std::string(variable);
}

std::string input_tap(std::string_view input) {
  return std::string(kInputKind) + std::string(input);
}

std::string variable_tap(std::string_view variable) {
  return std::string(kVariable) + std::string(variable);
}

std::string update_tap(std::string_view prefix, std::string_view variable) {
  return std::string(prefix) + parameter_tap(variable) + std::string(kUpdate);
}

bool is_update_tap(std::string_view name) {
  return is_statistics(name) && without_prefix(name).starts_with(kParameter) &&
         name.ends_with(kUpdate);
}

std::string call_tap(std::string_view module, int call, std::string_view role) {
  return std::string(kCall) + std::string(module) + "#" + std::to_string(call) + "." +
         std::string(role);
}

std::optional<GradientTap> gradient_of_tap(std::string_view name) {
  const std::string_view own = without_prefix(name);
  const bool is_call = own.starts_with(kCall);
  if ((!is_call && !own.starts_with(kParameter)) || own.ends_with(kGradient) || is_update_tap(name))
    return std::nullopt;
  GradientTap tap{std::string(name) + std::string(kGradient)};
  if (is_call && own.ends_with(kInput))
    tap.through = own.substr(kCall.size(), own.rfind('#') - kCall.size());
  return tap;
}

std::string output_of_call(std::string_view input) {
  return std::string(input.substr(0, input.size() - kInput.size())) + std::string(kOutput);
}

std::string_view node_of_tap(std::string_view name) {
  name = without_prefix(name);
  const std::size_t count = name.rfind('#');
  return name.substr(0, count == std::string_view::npos ? count : name.find('.', count));
}

std::string_view path_of_tap(std::string_view name) { return parts_of(without_prefix(name)).path; }

TapPattern::TapPattern(std::string_view text) : text_(text) {
  take(text, kPerhaps);
  std::string_view rest = text;
  shown_ = shown_prefix(rest);
  rest.remove_prefix(shown_.size());
  for (const std::string_view kind : {kParameter, kInputKind, kVariable}) {
    if (!take(rest, kind)) continue;
    by_ = By::Outside;
    kind_ = kind;
    prefix_ = text.substr(0, text.size() - rest.size());
    glob_ = rest;
    return;
  }
  for (Phase phase : {Phase::Forward, Phase::Backward, Phase::Update})
    if (take(rest, std::string(name_of(phase)) + ":")) {
      phase_ = phase;
      break;
    }
  if (take(rest, "op:"))
    by_ = By::Op;
  else if (rest.find('/') != std::string_view::npos)
    by_ = By::Name;
  prefix_ = text.substr(0, text.size() - rest.size());
  glob_ = rest;
  if (by_ == By::Name && rest.rfind('#') == std::string_view::npos) glob_ += "#*";
}

bool TapPattern::matches(std::string_view name) const {
  if (name == text_) return true;
  if (shown_prefix(name) != shown_) return false;
  const bool is_update = is_update_tap(name);
  name = without_prefix(name);
  if (by_ == By::Outside) {
    if (!take(name, kind_)) return false;
    if (is_update) name.remove_suffix(kUpdate.size());
    if (name.ends_with(kGradient)) name.remove_suffix(kGradient.size());
    return glob_match(glob_, name);
  }
  const NameParts parts = parts_of(name);
  if (parts.phase != phase_ || parts.op.empty()) return false;
  if (by_ == By::Path) return glob_match(glob_, parts.path);
  if (by_ == By::Op) return glob_match(glob_, parts.op);
  return glob_match(glob_, parts.in_phase) || glob_match(glob_, name);
}

std::string TapPattern::word() const {
  if (by_ == By::Path || by_ == By::Outside) return "";
  std::string word;
  for (char c : glob_.substr(glob_.rfind('/') + 1)) {
    if (c == '#') break;
    if (c != '*' && c != '?') word += c;
  }
  return word;
}

std::string TapPattern::path() const {
  if (by_ == By::Outside) return "";
  return by_ == By::Path ? glob_ : by_ == By::Op ? "*" : glob_.substr(0, glob_.rfind('/'));
}

std::string TapPattern::nearest(const std::vector<std::string>& names) const {
  std::vector<std::string> known;
  for (const std::string& full : names) {
    std::string_view name = without_prefix(full);
    if (by_ == By::Outside) {
      if (take(name, kind_)) known.emplace_back(name);
      continue;
    }
    const NameParts parts = parts_of(name);
    known.emplace_back(by_ == By::Path ? parts.path : by_ == By::Op ? parts.op : name);
  }
  const std::string near = nearest_name(glob_, known);
  return near.empty() || by_ == By::Name ? near : prefix_ + near;
}

}  // namespace aloft
