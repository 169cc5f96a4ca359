// aloft probe check-config A B
#include "cli/probe_check_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/config_side.h"
#include "cli/made_folder.h"
#include "cli/option_checks.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/pack.h"
#include "observe/config_check/results.h"

namespace aloft::cli {

namespace {

namespace checks = aloft::config_check;
using checks::Finding;
using checks::Level;
using checks::Section;

const std::vector<std::string> kChecks = {"env",   "pip", "dataset", "weights", "hyperparameters",
                                          "random"};

struct Options {
  std::string a, b, out = "checked", pack;
  std::vector<std::string> checks = kChecks;
  std::int64_t batches = 4;
  bool is_strict = false, shows_all = false, as_json = false;
};

// Cells of a table are for reading: a list of a thousand names is not.
std::string cell(const std::string& text) {
  constexpr std::size_t kLongest = 200;
  std::string short_text = harmless(text);
  if (short_text.size() > kLongest) {
    std::size_t end = kLongest;
    while (end > 0 && (static_cast<unsigned char>(short_text[end]) & 0xc0) == 0x80) --end;
    short_text = short_text.substr(0, end) + "...";
  }
  return short_text;
}

bool is_of_tensors(const Section& s) { return s.name == "dataset" || s.name == "weights"; }

std::vector<std::string> row_of(const Section& s, const Finding& f) {
  std::string name = f.a_name.empty() ? f.b_name : f.a_name;
  if (!f.a_name.empty() && !f.b_name.empty() && f.a_name != f.b_name) name += " / " + f.b_name;
  if (!f.matched.empty() && f.matched != "name") name += " (" + f.matched + ")";
  // Of a tensor with a hash, "[8,16] 46f4ffa7, norm 106, ...", that is enough to see it is another.
  const auto value = [&](const std::string& text) {
    const bool is_hashed = is_of_tensors(s) && text.starts_with('[');
    return cell(is_hashed ? text.substr(0, text.find(", ")) : text);
  };
  // Names of hyper-parameters speak for themselves.
  if (s.name != "hyperparameters") name = s.name + ": " + name;
  return {std::string(name_of(f.level)), cell(name), value(f.a_value), value(f.b_value),
          harmless(f.advice)};
}

// Rows of one level. Of tensors of which the same is to be said the first stands for all, unless
// all are asked for: hundreds of hashes hide the rest.
void add_rows(const Section& s, Level level, bool shows_all,
              std::vector<std::vector<std::string>>& rows) {
  std::map<std::string, std::size_t> alike;
  for (const Finding& f : s.findings) alike[f.advice] += f.level == level;
  std::set<std::string> said;
  for (const Finding& f : s.findings) {
    if (f.level != level || (level == Level::Pass && !f.is_of_both())) continue;
    const std::size_t others = alike[f.advice] - 1;
    if (shows_all || !is_of_tensors(s) || others < 2) {
      rows.push_back(row_of(s, f));
    } else if (said.insert(f.advice).second) {
      rows.push_back(row_of(s, f));
      rows.back()[1] += fmt::format(" and {} more", others);
    }
  }
}

// "weights 3 of 5 alike and 2 on one side alone"; settings that differ in what changes nothing are
// no findings, and not alike.
std::string counts_of(const Section& s) {
  const auto both = std::ranges::count_if(s.findings, &Finding::is_of_both);
  std::ptrdiff_t alike = 0, harmless = 0;
  for (const Finding& f : s.findings) {
    if (!f.is_of_both() || f.level != Level::Pass) continue;
    const bool is_other = !is_of_tensors(s) && !f.advice.empty();
    ++(is_other ? harmless : alike);
  }
  std::string text = fmt::format("{} {} of {} alike", s.name, alike, both);
  if (harmless > 0)
    text += fmt::format(" ({} other{} nothing)", harmless, harmless == 1 ? " changes" : "s change");
  if (const auto alone = std::ssize(s.findings) - both; alone > 0)
    text += fmt::format(" and {} on one side alone", alone);
  return text;
}

// Where no name is on both sides nothing is alike, and nothing differs: that says nothing.
void need_something_in_common(const Options& o, const std::vector<Section>& sections) {
  std::string alone;
  for (const Section& s : sections) {
    if (std::ranges::any_of(s.findings, &Finding::is_of_both)) return;
    const auto of_a =
        std::ranges::count_if(s.findings, [](const Finding& f) { return f.b_name.empty(); });
    alone += fmt::format("{}{}: {} of A alone, {} of B alone", alone.empty() ? "" : "; ", s.name,
                         of_a, std::ssize(s.findings) - of_a);
  }
  throw DataError("E0651", "nothing to compare")
      .at(o.b)
      .saw(alone.empty() ? "no check of which both sides say anything" : alone)
      .need("two sides that both say something: of " + join(o.checks, ", "))
      .advice("look whether the paths are the ones that are meant, or at other --checks");
}

// Where stdout is a terminal whose owner has not asked for none (no-color.org), the levels that
// lines begin with get a colour: red, yellow.
std::string in_colours(const std::string& text) {
  const char* const none = std::getenv("NO_COLOR");
  if (!is_terminal(Output::Out) || (none && *none)) return text;
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    if (!out.empty()) out += '\n';
    std::size_t colored = 0;
    for (const auto& [level, code] : {std::pair(Level::Error, "31"), {Level::Warning, "33"}}) {
      const std::string_view word = name_of(level);
      if (!line.starts_with(word)) continue;
      out += fmt::format("\x1b[{}m{}\x1b[0m", code, word);
      colored = word.size();
    }
    out += line.substr(colored);
  }
  return out;
}

void print_table(const std::vector<Section>& sections, bool shows_all) {
  std::vector<std::vector<std::string>> rows = {{"", "what", "A", "B", "what to do"}};
  for (const Level level : {Level::Error, Level::Warning, Level::Pass})
    for (const Section& s : sections)
      if (level != Level::Pass || shows_all) add_rows(s, level, shows_all, rows);
  std::string counts;
  for (const Section& s : sections) counts += (counts.empty() ? "" : ", ") + counts_of(s);
  constexpr std::size_t kMost = 300;  // and the head: more are read in a page
  const std::size_t more = shows_all || rows.size() <= kMost + 1 ? 0 : rows.size() - kMost - 1;
  rows.resize(rows.size() - more);
  if (rows.size() > 1) print_result("{}", in_colours(table(rows)));
  if (more > 0)
    print_result("and {} more: --all prints them, result.html has them\n",
                 counted(static_cast<std::int64_t>(more), "row"));
  print_result("{}\n", in_colours(fmt::format("{}: {}", name_of(verdict(sections)), counts)));
}

// "3 errors, 1 warning"
std::string count_text(const std::vector<Section>& sections) {
  std::int64_t errors = 0, warnings = 0;
  for (const Section& s : sections)
    for (const Finding& f : s.findings) {
      errors += f.level == Level::Error;
      warnings += f.level == Level::Warning;
    }
  return counted(errors, "error") + ", " + counted(warnings, "warning");
}

// --pack writes over a pack that was there, and over nothing else.
void refuse_to_overwrite(const Options& o) {
  if (!path_exists(o.pack)) return;
  const auto refuse = [&](const std::string& saw) {
    throw UserError("E0700", "--pack would write over a file that is there")
        .at(o.pack)
        .saw(saw)
        .need("a new file, or a packed configuration")
        .advice("another name behind --pack");
  };
  std::error_code none;
  for (const std::string& side : {o.a, o.b})
    if (!side.empty() && std::filesystem::equivalent(o.pack, side, none))
      refuse("what is to be compared");
  try {
    checks::read_pack(o.pack);
  } catch (const Error&) {
    refuse("a file that is no packed configuration");
  }
}

ExitCode check(const Options& o) {
  if (!o.pack.empty()) refuse_to_overwrite(o);
  const SideOptions side_options{{o.checks.begin(), o.checks.end()}, o.batches};
  const checks::Side a = side_of(o.a, side_options);
  if (!o.pack.empty()) checks::write_pack(o.pack, a);
  if (o.b.empty() && !o.pack.empty()) {
    print_talk("  {}\n", o.pack);
    return ExitCode::Ok;
  }
  if (o.b.empty())
    throw UserError("E0700", "there is nothing to compare with")
        .need("a second side, or --pack FILE.zip");
  refuse_folder_of_others(o.out);
  const checks::Side b = side_of(o.b, side_options);
  std::vector<Section> sections = checks::check_sides(a, b);
  std::erase_if(sections, [&](const Section& s) { return !side_options.checks.contains(s.name); });
  need_something_in_common(o, sections);
  checks::write_results(o.out, a, b, sections);
  if (o.as_json)
    print_result("{}\n", json_text(checks::json_of(a, b, sections)));
  else
    print_table(sections, o.shows_all);
  print_talk("  {}\n", (Path(o.out) / "result.html").string());
  const Level worst = verdict(sections);
  if (worst == Level::Error || (worst == Level::Warning && o.is_strict))
    throw DivergedError("E0843", "the two are not told the same").saw(count_text(sections));
  return ExitCode::Ok;
}

}  // namespace

Action probe_check_config(CLI::App& app) {
  auto o = std::make_shared<Options>();
  const char* const what =
      "a recipe, the folder of a run, a file of settings\n(*.sh, *.py, *.yaml, *.json), a zip "
      "file of msprobe config_check,\nor weights (*.safetensors, *.pt, a folder with a model)";
  app.add_option("a", o->a, std::string("the one side: ") + what)->required();
  app.add_option("b", o->b, "the other side, the run that is looked at");
  add_results_folder(app, o->out);
  app.add_option("--pack", o->pack,
                 "FILE.zip: A, packed as msprobe config_check does; without B that is all");
  // Not shown as a set, nor is the usual one: a line of help would be too long.
  app.add_option("--checks", o->checks, "of " + join(kChecks, ", ") + " (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(kChecks).description(""));
  app.add_option("--batches", o->batches, "batches of training that are looked at")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_flag("--all", o->shows_all, "show what is alike too, and all rows");
  add_strict(app, o->is_strict, "a warning, too,");
  add_json(app, o->as_json);
  return [o] { return check(*o); };
}

}  // namespace aloft::cli
