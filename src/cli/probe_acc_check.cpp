// aloft probe acc-check DUMP
#include "cli/probe_acc_check.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/output.h"
#include "base/text.h"
#include "cli/made_folder.h"
#include "cli/one_line.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "train/acc_check.h"

namespace aloft::cli {

namespace {

struct Options {
  std::string dump, out = "checked";
  std::vector<std::string> list;
  bool as_json = false;
};

constexpr std::size_t kMostNames = 5;

// Of an op: how many calls, how many of them not right, the largest of their figures.
struct OfOp {
  std::size_t calls = 0, wrong = 0;
  std::string standard;
  double worst = 0;
};

std::string table_of_ops(const std::vector<CheckedCall>& calls) {
  std::map<std::string, OfOp> ops;
  for (const CheckedCall& call : calls) {
    OfOp& of = ops[call.op];
    ++of.calls;
    of.wrong += !call.is_passed();
    for (const CheckedResult& r : call.results) {
      const std::string own(name_of(r.accuracy.standard));
      if (of.standard.find(own) == std::string::npos)
        of.standard += (of.standard.empty() ? "" : ", ") + own;
      of.worst = std::max(of.worst, r.accuracy.max_relative);
    }
  }
  std::vector<std::vector<std::string>> rows{
      {"op", "calls", "wrong", "standard", "largest relative error"}};
  for (const auto& [op, of] : ops)
    rows.push_back({one_line(op), std::to_string(of.calls), std::to_string(of.wrong), of.standard,
                    fmt::format("{:.2e}", of.worst)});
  return table(rows);
}

std::string text_of(const CheckedCall& call) {
  std::string text =
      fmt::format("{} {}: {} ({}, {})", call.step, call.entry, call.name, call.op, call.kernel);
  const CheckedResult* failed = call.failed();
  if (!failed) return text + ": " + call.unchecked + call.contradiction;
  const accuracy::Accuracy& a = failed->accuracy;
  return text + fmt::format(": {} of {}; farthest off is element {}: {:.9g}, which means {:.9g}",
                            a.why, failed->type, a.worst, a.worst_result, a.worst_meaning);
}

// How many entries there are, and which of them nothing is said of; "" where each is judged.
std::string text_of_unjudged(const CheckedDump& dump) {
  const std::size_t without = dump.unjudged.size();
  if (without == 0) return "";
  std::vector<std::string> names;
  for (const CheckedDump::Unjudged& u : dump.unjudged)
    if (names.size() < kMostNames) names.push_back(one_line(u.entry));
  return fmt::format("{} entries, {} of them with a `call`; not judged: {}{}\n",
                     dump.calls.size() + without, dump.calls.size(), join(names, ", "),
                     without > kMostNames ? fmt::format(" and {} more", without - kMostNames) : "");
}

// Which steps could not be looked at, a line each.
std::string text_of_unread(const CheckedDump& dump) {
  std::string text;
  for (const CheckedDump::Unread& u : dump.unread)
    text += one_line(u.step + ": not checked: " + u.why) + "\n";
  return text;
}

ExitCode check(const Options& o) {
  refuse_folder_of_others(o.out);
  const CheckedDump dump = check_calls(o.dump, o.list);
  const std::vector<CheckedCall>& calls = dump.calls;
  write_checked(dump, o.out);
  std::size_t wrong = 0;
  for (const CheckedCall& call : calls) {
    if (call.is_passed()) continue;
    if (wrong++ < 20 && !o.as_json) print_result("{}\n", one_line(text_of(call)));
  }
  if (o.as_json)
    print_result("{}\n", json_text_of(dump));
  else
    print_result("{}\n{}{}{} calls, {} of them not as their ops mean\n", table_of_ops(calls),
                 text_of_unjudged(dump), text_of_unread(dump), calls.size(), wrong);
  print_talk("  {}\n", (Path(o.out) / "accuracy_checking_details.csv").string());
  if (wrong > 0)
    throw DivergedError("E0864", "calls gave other results than their ops mean")
        .saw(fmt::format("{} of {}", wrong, calls.size()))
        .advice("the first of them is the place to look: those behind it took what it gave");
  if (!dump.unread.empty())
    throw DataError("E0940", "steps of the dump were not checked")
        .at(o.dump)
        .saw(fmt::format(
            "{} without a dump.json that can be read; all calls of the others are right",
            dump.unread.size()))
        .need("of each step the dump.json that `aloft probe run --task acc_check` writes behind it")
        .advice("make the dump again, or check the other steps by their own dump.json");
  return ExitCode::Ok;
}

}  // namespace

Action probe_acc_check(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("dump", o->dump, "what `probe run --task acc_check` wrote, or one dump.json of it")
      ->required();
  app.add_option("--out", o->out, "folder of the results")->capture_default_str();
  app.add_option("--list", o->list, "only calls whose names have one of these parts")
      ->delimiter(',');
  add_json(app, o->as_json, "what accuracy_checking.json has");
  return [o] { return check(*o); };
}

}  // namespace aloft::cli
