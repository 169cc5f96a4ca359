#include "observe/compare/results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/json_number.h"
#include "base/text.h"
#include "files/csv_cell.h"

namespace aloft::compare {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOurColumns[] = {"Difference", "Difference of", "Allowed", "Max ULP",
                                       "Matched by"};

// A number, null where the dump has none; of what is no tensor the value that it shows, as a word.
Json figure(const Record& r, const Figure& f) {
  if (r.is_tensor && f.text != "True" && f.text != "False")
    return f.number ? json_number(*f.number) : Json();
  return f.text == "None" ? Json() : Json(f.text);
}

Json side_of(const Record* r) {
  if (!r) return nullptr;
  Json side = {{"name", r->name},
               {"dtype", r->type},
               {"shape", r->shape},
               {"max", figure(*r, r->max)},
               {"min", figure(*r, r->min)},
               {"mean", figure(*r, r->mean)},
               {"norm", figure(*r, r->norm)}};
  if (!r->hash.empty()) side["md5"] = r->hash;
  return side;
}

Json record_of(const Compared& c) {
  return {{"call", c.moment.entry->npu->name},
          {"npu", side_of(c.records.npu)},
          {"bench", side_of(c.records.bench)},
          {"difference", json_number(c.difference.size)},
          {"of", c.difference.of},
          {"allowed", json_number(c.difference.allowed)},
          {"diverges", c.difference.is_more()},
          {"matched_by", c.records.matched_by}};
}

// What the module that computes otherwise was given, in both runs; where that is the model itself,
// what the call was given that shows it.
Json inputs_of(const Comparison& c) {
  Json inputs = Json::array();
  if (!c.divergence->compared) return inputs;
  const Entry& shows = *c.divergence->compared->moment.entry->npu;
  for (const Compared& other : c.compared) {
    const Entry& e = *other.moment.entry->npu;
    const bool is_taken = other.records.npu && (other.records.npu->part == Part::Input ||
                                                other.records.npu->part == Part::Parameter);
    const bool is_it = c.divergence->module.empty() || !shows.is_module
                           ? &e == &shows
                           : e.path == c.divergence->module;
    const bool is_same_pass =
        (e.direction == Direction::Forward) == (shows.direction == Direction::Forward);
    if (is_taken && is_it && is_same_pass) inputs.push_back(record_of(other));
  }
  return inputs;
}

}  // namespace

WholeTable whole_table(const Comparison& c, const ElementsOf& elements_of) {
  std::map<std::string_view, const Compared*> by_name;
  for (const Compared& one : c.compared)
    if (one.records.npu) by_name.emplace(one.records.npu->name, &one);
  std::map<std::string_view, std::string_view> matched_by;
  for (const EntryPair& p : c.pairs.entries)
    for (const RecordPair& r : p.records)
      if (r.npu) matched_by.emplace(r.npu->name, r.matched_by);
  WholeTable table{c.table.columns, {}};
  table.columns.insert(table.columns.end(), std::begin(kOurColumns), std::end(kOurColumns));
  for (const std::vector<std::string>& row : c.table.rows) {
    std::vector<std::string> cells = row;
    const auto it = by_name.find(row[0]);
    if (it == by_name.end()) {
      cells.insert(cells.end(), std::size(kOurColumns) - 1, "");
    } else {
      const Difference& d = it->second->difference;
      const ElementFigures* const e = elements_of(it->second->records);
      cells.push_back(shortest(d.size)), cells.push_back(d.of);
      cells.push_back(shortest(d.allowed));
      cells.push_back(e && e->max_ulps ? shortest(*e->max_ulps) : "");
    }
    cells.emplace_back(matched_by[row[0]]);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string csv_of(const WholeTable& table) {
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) (i ? text += ',' : text) += csv_cell(cells[i]);
    text += '\n';
  };
  add_line(table.columns);
  for (const std::vector<std::string>& row : table.rows) add_line(row);
  return text;
}

XlsxSheet sheet_of(const WholeTable& table) {
  XlsxSheet sheet{"Sheet1", table.columns, table.rows};
  const auto result = std::ranges::find(table.columns, "Result") - table.columns.begin();
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const std::string& word = table.rows[r][static_cast<std::size_t>(result)];
    sheet.fills[{r, static_cast<std::size_t>(result)}] = word == "error"     ? XlsxFill::Red
                                                         : word == "warning" ? XlsxFill::Yellow
                                                         : word == "pass"    ? XlsxFill::Green
                                                                             : XlsxFill::None;
  }
  return sheet;
}

Json json_of(const Comparison& c) {
  Json compared = Json::array(), only_npu = Json::array(), only_bench = Json::array();
  for (const Compared& one : c.compared) compared.push_back(record_of(one));
  for (const EntryPair& p : c.pairs.entries)
    if (!p.bench) only_npu.push_back(p.npu->name);
  for (const Entry* b : c.pairs.only_bench) only_bench.push_back(b->name);
  Json divergence = nullptr, arguments = Json::array(), functions = Json::array();
  if (c.divergence)
    for (const LoneArgument& a : c.divergence->arguments)
      arguments.push_back({{"call", a.call},
                           {"argument", a.name},
                           {"dtype", a.type},
                           {"run", a.is_in_first ? "npu" : "bench"}});
  if (c.divergence)
    for (const LoneFunction& f : c.divergence->functions)
      functions.push_back({{"call", f.call},
                           {"function", f.function},
                           {"module", f.module},
                           {"run", f.is_in_first ? "npu" : "bench"}});
  if (c.divergence)
    divergence = {{"place", c.divergence->place},
                  {"module", c.divergence->module},
                  {"kind", c.divergence->kind},
                  {"behind", c.divergence->behind},
                  {"line", c.divergence->line},
                  {"record", c.divergence->compared ? record_of(*c.divergence->compared) : Json()},
                  {"inputs", inputs_of(c)},
                  {"arguments", std::move(arguments)},
                  {"functions", std::move(functions)}};
  Json loop = Json::array();
  for (const TrainingDifference& t : c.loop)
    loop.push_back({{"place", t.place},
                    {"text", t.text},
                    {"difference", json_number(t.size)},
                    {"allowed", json_number(t.allowed)}});
  Json renamed = Json::array(), unreadable = Json::array();
  for (const Pairs::Renamed& r : c.pairs.renamed)
    renamed.push_back({{"npu", r.npu}, {"bench", r.bench}, {"by", r.by}});
  for (const Unreadable& u : c.unreadable)
    unreadable.push_back({{"name", u.name}, {"file", u.file.string()}, {"why", u.why}});
  return {
      {"sentence", c.sentence},
      {"npu", c.npu.file.string()},
      {"bench", c.bench.file.string()},
      {"coverage",
       {{"compared", c.coverage.compared}, {"of", c.coverage.all}, {"lacks", c.coverage.lacks}}},
      {"divergence", std::move(divergence)},
      {"loop", std::move(loop)},
      {"remark", c.remark},
      {"unreadable", std::move(unreadable)},
      {"renamed", std::move(renamed)},
      {"compared", std::move(compared)},
      {"only_npu", std::move(only_npu)},
      {"only_bench", std::move(only_bench)}};
}

}  // namespace aloft::compare
