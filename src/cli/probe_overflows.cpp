#include "cli/probe_overflows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "observe/probe/overflow.h"
#include "train/overflow_changes.h"

namespace aloft::cli {

namespace {

using Json = nlohmann::ordered_json;

// Whether the run went back behind the step, and made another one of its number.
bool is_undone(const Json& found) { return found.contains("undone"); }

std::int64_t step_of(const Json& one) { return one.at("step").get<std::int64_t>(); }

// Of a gradient in a step that was skipped: it has changed no weight, and a dynamic loss scale
// looks for its height by such steps.
bool may_be_search(const Json& one) {
  return one.at("skipped") == true && one.at("first").at("phase") == "backward";
}

// Which value stopped to be finite, and by which op: "h.3/add#1: add_layer_norm".
std::string name_of(const Json& one) {
  const Json& first = one.at("first");
  const auto name = first.at("name").get<std::string>();
  return first.contains("op") ? name + ": " + first.at("op").get<std::string>() : name;
}

// "6, 8-30", as --at takes them.
std::string list_of(const std::vector<std::int64_t>& steps) {
  constexpr int kShown = 8;
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0, end = 0; i < steps.size(); i = end) {
    for (end = i + 1; end < steps.size() && steps[end] == steps[end - 1] + 1;) ++end;
    if (++ranges > kShown)
      return text + fmt::format(" and {} more up to {}", steps.size() - i, steps.back());
    text += (text.empty() ? "" : ", ") + std::to_string(steps[i]);
    if (end - i > 1) text += "-" + std::to_string(steps[end - 1]);
  }
  return text;
}

// A line for each op, of the step in which it is first the first; the file has all steps.
void say_found(const ProbeAnswer& answer, const Json& found, const Path& file) {
  constexpr std::size_t kShown = 10;
  struct Told {
    const Json* one;
    std::vector<std::int64_t> again;
  };
  std::vector<Told> all;
  for (const Json& one : found) {
    const auto same = std::ranges::find_if(all, [&](const Told& t) {
      return name_of(*t.one) == name_of(one) && t.one->at("skipped") == one.at("skipped") &&
             is_undone(*t.one) == is_undone(one);
    });
    if (same == all.end())
      all.push_back({&one, {}});
    else
      same->again.push_back(step_of(one));
  }
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i) {
    const Json& one = *all[i].one;
    answer.say(fmt::format(
        "{}, loss scale {}{}{}: {}\n", probe::step_text(step_of(one)),
        one.at("loss_scale").get<double>(), one.at("skipped") == true ? ", skipped" : "",
        is_undone(one) ? ", undone" : "", probe::overflow_text(one.at("first"))));
    if (const auto& again = all[i].again; !again.empty())
      answer.say(
          fmt::format("  the same in step{} {}\n", again.size() == 1 ? "" : "s", list_of(again)));
    if (may_be_search(one))
      answer.say(
          "  a skipped step changes no weight; a dynamic loss scale finds its height by such\n");
  }
  if (all.size() > kShown)
    answer.say(fmt::format("{} more ops were the first in other steps: {}\n", all.size() - kShown,
                           file.string()));
}

// What would have kept a step finite; into its entry, too.
void try_changes_of(const ProbeAnswer& answer, Json& one, const Path& run,
                    const std::vector<Override>& overrides) {
  const auto added = overflow_changes(run, one, overrides);
  answer.say(fmt::format("{}, {}:\n{}", probe::step_text(step_of(one)), name_of(one),
                         overflow_changes_text(added)));
  one.update(added);
}

// Of the first step that stopped to be finite; where that may be the search of a loss scale, of the
// first one, too, that is not; into the file, too.
void try_changes(const ProbeAnswer& answer, Json& all, const Path& file, const Path& run,
                 const std::vector<Override>& overrides) {
  auto& found = all.at("found");
  const auto first = std::find_if_not(found.begin(), found.end(), is_undone);
  if (first == found.end())
    return log_warning("no change of the recipe was tried: the run has gone back behind each step");
  const auto lasting = std::find_if(
      first, found.end(), [](const Json& one) { return !is_undone(one) && !may_be_search(one); });
  try {
    for (const auto& one : {first, lasting}) {
      if (one == found.end() || one->contains("tried")) continue;  // both may be the same
      try_changes_of(answer, *one, run, overrides);
      write_file_atomic(file, all.dump(1) + "\n");
    }
  } catch (const EnvironmentError& e) {  // the step once more takes as much memory again
    log_warning("no change of the recipe was tried: {}", e.headline());
  } catch (const UserError& e) {
    if (e.code() != "E0862") throw;
    log_warning("no change of the recipe was tried: {}", e.headline());
  }
}

}  // namespace

void answer_overflows(ProbeAnswer& answer, const Path& file, const Path& run,
                      const std::vector<Override>& overrides) {
  auto all = nlohmann::ordered_json::parse(read_file(file));
  const auto& found = all.at("found");
  const auto steps = all.at("steps").get<std::int64_t>();
  if (found.empty())
    answer.say(fmt::format("in {} everything was finite\n", counted(steps, "step")));
  say_found(answer, found, file);
  if (!found.empty()) try_changes(answer, all, file, run, overrides);
  answer.set("found", all.at("found"));
}

}  // namespace aloft::cli
