// What acc-check says of a dump: tables and JSON.
#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.h"
#include "files/csv_cell.h"
#include "train/acc_check.h"

namespace aloft {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kUnjudged =
    "no `call`: which op made it, and of what, is not written down";

// A line of cells, each of which may be a name that somebody else has written.
std::string line_of(std::initializer_list<std::string_view> cells) {
  std::string line;
  for (const std::string_view cell : cells) line += csv_cell(cell) + ",";
  line.pop_back();
  return line;
}

const char* verdict(const CheckedCall& call) { return call.is_passed() ? "pass" : "error"; }

std::string message(const CheckedCall& call) {
  if (!call.unchecked.empty()) return call.unchecked;
  const CheckedResult* const failed = call.failed();
  if (!failed) return call.contradiction;
  return failed->accuracy.why + (call.contradiction.empty() ? "" : "; " + call.contradiction);
}

std::string table_of_results(const std::vector<CheckedCall>& calls) {
  std::string text =
      "Step,API Name,Op,Kernel,Name,Phase,Result Number,Type,Standard,Max Absolute Error,"
      "Max Relative Error,Mean Relative Error,RMSE,Max ULP,Mean ULP,Share Over ULP Limit,RMSE "
      "Ratio,Max Error Ratio,Mean Relative Ratio,Result,Message\n";
  for (const CheckedCall& call : calls)
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      const accuracy::Accuracy& a = call.results[i].accuracy;
      text += line_of({call.step, call.entry, call.op, call.kernel, call.name, call.phase,
                       std::to_string(i), call.results[i].type, name_of(a.standard)});
      for (const double figure :
           {a.max_absolute, a.max_relative, a.mean_relative, a.rmse, a.max_ulp, a.mean_ulp,
            a.share_over_limit, a.rmse_ratio, a.max_ratio, a.mean_ratio})
        text += fmt::format(",{:.6g}", figure);
      text += "," + line_of({a.is_passed ? "pass" : "error", a.why}) + "\n";
    }
  return text;
}

Json json_of(const CheckedCall& call) {
  Json results = Json::array();
  const auto number = [](double v) {
    return std::isfinite(v) ? Json(v) : Json(fmt::format("{}", v));
  };
  for (const CheckedResult& r : call.results) {
    const accuracy::Accuracy& a = r.accuracy;
    results.push_back({{"type", r.type},
                       {"standard", name_of(a.standard)},
                       {"elements", a.elements},
                       {"max_absolute", number(a.max_absolute)},
                       {"max_relative", number(a.max_relative)},
                       {"mean_relative", number(a.mean_relative)},
                       {"rmse", number(a.rmse)},
                       {"max_ulp", number(a.max_ulp)},
                       {"mean_ulp", number(a.mean_ulp)},
                       {"share_over_limit", number(a.share_over_limit)},
                       {"rmse_ratio", number(a.rmse_ratio)},
                       {"max_ratio", number(a.max_ratio)},
                       {"mean_ratio", number(a.mean_ratio)},
                       {"worst", a.worst},
                       {"worst_result", number(a.worst_result)},
                       {"worst_meaning", number(a.worst_meaning)},
                       {"result", a.is_passed ? "pass" : "error"},
                       {"message", a.why}});
  }
  return {{"step", call.step},
          {"entry", call.entry},
          {"op", call.op},
          {"kernel", call.kernel},
          {"name", call.name},
          {"module", call.module},
          {"phase", call.phase},
          {"result", verdict(call)},
          {"message", message(call)},
          {"results", std::move(results)}};
}

}  // namespace

Json json_of(const CheckedDump& dump) {
  Json all = Json::array();
  for (const CheckedCall& call : dump.calls) all.push_back(json_of(call));
  for (const CheckedDump::Unjudged& u : dump.unjudged)
    all.push_back({{"step", u.step},
                   {"entry", u.entry},
                   {"result", "skip"},
                   {"message", kUnjudged},
                   {"results", Json::array()}});
  for (const CheckedDump::Unread& u : dump.unread)
    all.push_back({{"step", u.step},
                   {"entry", ""},
                   {"result", "error"},
                   {"message", u.why},
                   {"results", Json::array()}});
  return all;
}

std::string json_text_of(const CheckedDump& dump) { return json_text(json_of(dump), 1); }

void write_checked(const CheckedDump& dump, const Path& folder) {
  make_folder(folder);
  std::string text = "Step,API Name,Op,Kernel,Name,Phase,Result,Message\n";
  for (const CheckedCall& call : dump.calls)
    text += line_of({call.step, call.entry, call.op, call.kernel, call.name, call.phase,
                     verdict(call), message(call)}) +
            "\n";
  for (const CheckedDump::Unjudged& u : dump.unjudged)
    text += line_of({u.step, u.entry, "", "", "", "", "skip", kUnjudged}) + "\n";
  for (const CheckedDump::Unread& u : dump.unread)
    text += line_of({u.step, "", "", "", "", "", "error", u.why}) + "\n";
  write_file_atomic(folder / "accuracy_checking_result.csv", text);
  write_file_atomic(folder / "accuracy_checking_details.csv", table_of_results(dump.calls));
  write_file_atomic(folder / "accuracy_checking.json", json_text_of(dump) + "\n");
}

}  // namespace aloft
