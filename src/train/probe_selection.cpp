#include "train/probe_selection.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "passes/tap_pattern.h"
#include "train/listed_words.h"
#include "train/probe_taps.h"

namespace aloft {

namespace {

bool has_any(std::string_view name, const std::vector<std::string>& parts) {
  return std::ranges::any_of(
      parts, [&](const std::string& p) { return name.find(p) != std::string_view::npos; });
}

// Whether one of the words of a kind is given and none of these fits.
bool is_left_out(const std::vector<std::string>& mode, std::initializer_list<const char*> kind,
                 std::string_view own) {
  const auto is_given = [&](std::string_view word) {
    return std::ranges::find(mode, word) != mode.end();
  };
  return std::ranges::any_of(kind, is_given) && !is_given(own);
}

bool fits_mode(const std::string& name, const std::vector<std::string>& mode) {
  if (mode.empty() || std::ranges::find(mode, "all") != mode.end()) return true;
  const bool is_backward = has_any(name, {".backward", ".parameters_grad", ".parameters_update"});
  const bool is_output = name.find(".output.") != std::string::npos;
  return !is_left_out(mode, {"forward", "backward"}, is_backward ? "backward" : "forward") &&
         !is_left_out(mode, {"input", "output"}, is_output ? "output" : "input");
}

// Of "Module.h.0.mlp.c_fc.Linear.forward.0": "h.0.mlp.c_fc" and "h.0.mlp.c_fc.Linear", and the
// entry; of "Torch.linear.0.forward": "linear". What a word of a list may say of it.
void add_parts(const std::string& entry, std::vector<std::string>& parts) {
  const std::size_t begin = entry.find('.') + 1;
  if (entry.starts_with("Module.")) {
    std::size_t end = std::string::npos;
    for (const char* word : {".forward.", ".backward.", ".parameters_"})
      end = std::min(end, entry.rfind(word));
    const std::string whole = entry.substr(begin, end - begin);
    parts.push_back(whole.substr(0, whole.rfind('.')));
    parts.push_back(whole);
  } else {
    parts.push_back(entry.substr(begin, entry.find('.', begin) - begin));
  }
  parts.push_back(entry);
}

// The first entries that have the word in their names: "a, b and 4 more"; "" where none has.
std::string entries_with(const std::string& word, const std::vector<std::string>& entries) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown;
  std::size_t count = 0;
  for (const std::string& entry : entries)
    if (entry.find(word) != std::string::npos && ++count <= kShown) shown.push_back(entry);
  std::string text = join(shown, ", ");
  if (count > kShown) text += " and " + std::to_string(count - kShown) + " more";
  return text;
}

// "such as wte, h.0 and h.0.attn", each once and not the model's own.
std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (!name.empty() && shown.size() < kShown && std::ranges::find(shown, name) == shown.end())
      shown.push_back(name);
  return "such as " + join(shown, ", ");
}

// The numbers of the entries that the scope begins and ends with.
std::pair<std::size_t, std::size_t> range_of(const std::vector<std::string>& scope,
                                             const std::vector<std::string>& entries) {
  if (scope.empty()) return {0, entries.size()};
  const auto place = [&](const std::string& name) {
    const auto it = std::ranges::find_if(
        entries, [&](const std::string& entry) { return names_entry(name, entry, true); });
    if (it != entries.end()) return static_cast<std::size_t>(it - entries.begin());
    std::string near = entries_with(name, entries);
    if (near.empty()) near = nearest_name(name, entries);
    throw UserError("E0327", "probe.scope names an entry that there is not")
        .saw(in_quotes(name))
        .need("an entry of dump.json")
        .advice(near.empty() ? "probe.task = \"statistics\" lists them" : near);
  };
  if (scope.size() != 2)
    throw UserError("E0327", "probe.scope does not say from where to where")
        .saw(std::to_string(scope.size()) + " names")
        .need("two entries of dump.json, or none");
  return {place(scope[0]), place(scope[1]) + 1};
}

// A word of the list is a part of a name as dump.json has it, or a pattern of taps; at level mix
// what lies in calls of the modules that it names is meant, too. `value`: the one of this name, or
// the result of the op that takes it.
bool is_listed(const ProbeSection& probe, const probe::Dump& dump, const std::string& name,
               const probe::LookedAt& value) {
  if (probe.list.empty()) return true;
  const bool is_of_op = name.starts_with("Torch.");
  return std::ranges::any_of(probe.list, [&](const std::string& word) {
    const bool is_of_taps = probe.level == "op" || is_pattern(word);
    if (is_of_op && is_of_taps && TapPattern(word).matches(value.name)) return true;
    if (is_pattern(word)) return false;
    return names_entry(word, name) ||
           (probe.level == "mix" && names_module_around(word, dump, value));
  });
}

}  // namespace

bool selects(const ProbeSection& probe) {
  return !probe.list.empty() || !probe.scope.empty() || !probe.data_mode.empty();
}

Selected selected(const ProbeSection& probe, const probe::Dump& dump) {
  const auto [from, to] = range_of(probe.scope, dump.entries());
  std::map<std::string_view, std::size_t> place_of;
  for (std::size_t i = 0; i < dump.entries().size(); ++i) place_of.emplace(dump.entries()[i], i);
  const auto is_meant = [&](const std::string& entry, const std::string& name,
                            const probe::LookedAt& value) {
    const std::size_t place = place_of.at(entry);
    return place >= from && place < to && fits_mode(name, probe.data_mode) &&
           is_listed(probe, dump, name, value);
  };
  Selected chosen;
  for (std::size_t i = 0; i < dump.values().size(); ++i)
    chosen.values.push_back(is_meant(dump.entry_of(i), dump.data_name(i), dump.values()[i]));
  for (const probe::Dump::Taken& t : dump.taken())
    chosen.taken.push_back(is_meant(t.entry, t.data_name(), dump.values()[t.of]));
  chosen.has_any = std::ranges::find(chosen.values, true) != chosen.values.end();
  for (std::size_t i = 0; i < chosen.taken.size(); ++i)
    chosen.has_any = chosen.has_any || (chosen.taken[i] && dump.taken()[i].value);
  return chosen;
}

void refuse_empty_selection(const ProbeSection& probe, const probe::Dump& dump,
                            const std::vector<probe::DumpedModule>& modules) {
  std::vector<std::string> names;
  for (const probe::DumpedModule& module : modules) names.push_back(module.path);
  for (const std::string& entry : dump.entries()) add_parts(entry, names);
  UserError e("E0327", "no value is meant by probe.list, probe.scope and probe.data_mode");
  e.add_line("saw", probe.list.empty() ? join(probe.data_mode, ", ") : join(probe.list, ", "));
  e.add_line("need",
             "names of entries of dump.json, or parts of them, or patterns of taps, for what is "
             "there at the level");
  bool is_near = false;
  for (const std::string& word : probe.list)
    if (const std::string near = nearest_name(word, names); !near.empty()) {
      e.add_line("try", in_quotes(near) + " for " + in_quotes(word));
      is_near = true;
    }
  if (!is_near && !names.empty()) e.add_line("try", first_of(names));
  if (!is_near) e.add_line("try", "probe.task = \"statistics\" lists them");
  throw e;
}

}  // namespace aloft
