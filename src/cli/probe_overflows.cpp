#include "cli/probe_overflows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "observe/probe/overflow.h"
#include "train/overflow_changes.h"

namespace aloft::cli {

namespace {

using Json = nlohmann::ordered_json;

// Whether the run went back behind the step, and made another one of its number.
bool is_undone(const Json& found) { return found.contains("undone"); }

// Of the first step that stopped to be finite, what would have kept it so; into the file, too.
void try_changes(const ProbeAnswer& answer, Json& all, const Path& file, const Path& run,
                 const std::vector<Override>& overrides) {
  auto& found = all.at("found");
  const auto first = std::find_if_not(found.begin(), found.end(), is_undone);
  if (first == found.end())
    return log_warning("no change of the recipe was tried: the run has gone back behind each step");
  try {
    const auto added = overflow_changes(run, *first, overrides);
    answer.say(fmt::format("{}:\n{}", probe::step_text(first->at("step").get<std::int64_t>()),
                           overflow_changes_text(added)));
    first->update(added);
    write_file_atomic(file, all.dump(1) + "\n");
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
    answer.say(fmt::format("in {} step{} everything was finite\n", steps, steps == 1 ? "" : "s"));
  for (const auto& one : found)
    answer.say(fmt::format(
        "{}, loss scale {}{}{}: {}\n", probe::step_text(one.at("step").get<std::int64_t>()),
        one.at("loss_scale").get<double>(), one.at("skipped") ? ", skipped" : "",
        is_undone(one) ? ", undone" : "", probe::overflow_text(one.at("first"))));
  if (!found.empty()) try_changes(answer, all, file, run, overrides);
  answer.set("found", all.at("found"));
}

}  // namespace aloft::cli
