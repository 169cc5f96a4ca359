#include "frontend/compiled_program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace aloft {
namespace {

using nlohmann::json;

json json_of(const PassTime& p) {
  json remarks = json::array();
  for (const Remark& r : p.report.remarks)
    remarks.push_back({r.node, name_of(r.kind), r.about, r.beside});
  return json::array({p.pass, p.seconds, p.report.changed, std::move(remarks)});
}

json json_of(const DecisionRecord& r) {
  const Decision& d = r.decision;
  return json::array({r.op.str(), r.path.str(), name_of(r.phase), d.applies, name_of(d.compute),
                      name_of(d.accumulate), name_of(d.store),
                      d.cast_inputs ? json(name_of(*d.cast_inputs)) : json(), text_of(d.reason),
                      name_of(r.form)});
}

// What a compiled program's own text says is wrong ends here; compiled_from() gives nothing.
[[noreturn]] void refuse() { throw DataError("E0640", "the text is not a compiled program"); }

template <class T>
T or_refuse(const std::optional<T>& value) {
  if (!value) refuse();
  return *value;
}

DType dtype_from(const json& j) { return or_refuse(parse_dtype(j.get<std::string>())); }

PassTime pass_from(const json& j) {
  const std::string name = j.at(0);
  const auto passes = compile_pipeline().passes();
  const auto pass =
      std::find_if(passes.begin(), passes.end(), [&](const Pass* p) { return p->name == name; });
  if (pass == passes.end()) refuse();
  PassTime time{(*pass)->name, j.at(1).get<double>(), {j.at(2).get<bool>()}};
  for (const json& r : j.at(3))
    time.report.remarks.push_back(
        {r.at(0), or_refuse(parse_remark_kind(r.at(1).get<std::string>())), r.at(2), r.at(3)});
  return time;
}

DecisionRecord decision_from(const json& j) {
  DecisionRecord r;
  r.op = j.at(0).get<std::string>();
  r.path = j.at(1).get<std::string>();
  r.phase = or_refuse(parse_phase(j.at(2).get<std::string>()));
  r.decision.applies = j.at(3).get<bool>();
  r.decision.compute = dtype_from(j.at(4));
  r.decision.accumulate = dtype_from(j.at(5));
  r.decision.store = dtype_from(j.at(6));
  if (!j.at(7).is_null()) r.decision.cast_inputs = dtype_from(j.at(7));
  r.decision.reason = or_refuse(parse_reason(j.at(8).get<std::string>()));
  r.form = or_refuse(parse_product_form(j.at(9).get<std::string>()));
  return r;
}

json notes_of(const CompiledProgram& p) {
  json notes = {
      {"passes", json::array()}, {"decisions", json::array()}, {"refused", json::array()}};
  for (const PassTime& t : p.passes) notes["passes"].push_back(json_of(t));
  for (const DecisionRecord& d : p.decisions) notes["decisions"].push_back(json_of(d));
  for (const RefusedTap& t : p.refused_taps) notes["refused"].push_back({t.name, t.why});
  return notes;
}

void read_notes(const json& notes, CompiledProgram& p) {
  for (const json& j : notes.at("passes")) p.passes.push_back(pass_from(j));
  for (const json& j : notes.at("decisions")) p.decisions.push_back(decision_from(j));
  for (const json& j : notes.at("refused")) p.refused_taps.push_back({j.at(0), j.at(1)});
}

// The text's parts, each behind a line with its number of bytes.
constexpr std::size_t kParts = 3;  // graph, plan, notes

std::string_view take_part(std::string_view& text) {
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const std::size_t from = static_cast<std::size_t>(end - text.data()) + 1;
  if (error != std::errc{} || from > text.size() || *end != '\n' || bytes > text.size() - from)
    refuse();
  const std::string_view part = text.substr(from, bytes);
  text.remove_prefix(from + bytes);
  return part;
}

CompiledProgram read(std::string_view text) {
  std::array<std::string_view, kParts> parts;
  for (std::string_view& part : parts) part = take_part(text);
  if (!text.empty()) refuse();
  CompiledProgram p;
  p.graph = parse_graph(parts[0]);
  verify_structure(p.graph);
  Plan plan = plan_from_json(parts[1]);
  if (plan.programs.size() != 1) refuse();
  p.lowered = {std::move(plan.programs[0]), std::move(plan.state)};
  const json notes = parse_json(parts[2]);
  if (notes.is_discarded()) refuse();
  read_notes(notes, p);
  return p;
}

}  // namespace

CompiledProgram compile_graph(Graph traced, PassContext context, const PipelineOptions& options) {
  CompiledProgram result;
  context.decisions = &result.decisions;
  const Graph before = traced.tap_patterns().empty() ? Graph() : traced;
  result.graph = std::move(traced);
  result.passes = compile_pipeline().run(result.graph, context, options);
  result.refused_taps = check_taps(result.graph, before, context, options);
  result.lowered = lower_to_plan(result.graph, context);
  return result;
}

std::string text_of(const CompiledProgram& program, int threads) {
  const std::string graph = print(program.graph);
  if (!is_utf8(graph)) return {};
  Plan plan;
  plan.threads = threads;
  add_program(plan, program.lowered.program, program.lowered.state);
  std::string text;
  for (const std::string& part : {graph, to_json(plan, -1), json_text(notes_of(program))})
    text += std::to_string(part.size()) + "\n" + part;
  return text;
}

std::optional<CompiledProgram> compiled_from(std::string_view text) {
  try {
    return read(text);
  } catch (const std::exception&) {  // of our own, of JSON, no memory for a number of things
    return std::nullopt;
  }
}

}  // namespace aloft
