#include "passes/taps.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "ops/op.h"
#include "passes/taken_in.h"
#include "passes/tap_pattern.h"

namespace aloft {
namespace {

constexpr std::size_t kMostNamed = 6;

bool has_member(const Node& node, std::string_view identity) {
  for (std::string_view member : split(node.members, ','))
    if (trim(member) == identity) return true;
  return false;
}

// The node that runs in place of the one of this identity, through all that were fused again.
std::optional<std::uint32_t> taken_in_by(const Graph& g, std::string identity) {
  for (std::uint32_t n = 0; n < g.capacity(); ++n) {
    if (!has_member(g.node(n), identity)) continue;
    if (!g.node(n).erased) return n;
    identity = g.node(n).identity();  // what it was fused into was made later
  }
  return std::nullopt;
}

std::string why_lost(const Graph& g, const std::string& name) {
  if (name.find('/') == std::string::npos)  // of a call or a parameter, not of a node
    return "the program has no value that is just that: a fused op computes it in parts, or nobody "
           "needs it";
  const auto by = taken_in_by(g, std::string(node_of_tap(name)));
  if (!by) return "nothing that the program gives or keeps depends on it: it is not computed";
  const Node& node = g.node(*by);
  return "it is inside " + node.identity() + " (" + node.members + "), which never has all of it" +
         (is_shown_by_name(g, name) ? "; a tap of this name has it computed once more" : "");
}

std::vector<std::string> taps_of(const Graph& g) {
  std::vector<std::string> names;
  for (const GraphOutput& o : g.outputs())
    if (o.kind == OutputKind::Tap) names.push_back(o.name.str());
  return names;
}

// Everything that can be tapped: taps change nothing, so that the rest is as it was.
Graph with_all_taps(const Graph& traced, PassContext context, PipelineOptions options) {
  Graph all = traced;
  for (const char* pattern : {"*", "backward:*", "update:*", "parameter:*"}) all.ask_tap(pattern);
  context.decisions = nullptr;
  options.dump = {};
  compile_pipeline().run(all, context, options);
  return all;
}

std::string listed(std::vector<std::string> names) {
  const std::size_t rest = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - rest);
  return join(names, ", ") + (rest > 0 ? " and " + std::to_string(rest) + " more" : "");
}

std::optional<std::uint32_t> find_node(const Graph& g, std::string_view identity) {
  for (std::uint32_t n : g.order())
    if (g.node(n).identity() == identity) return n;
  return std::nullopt;
}

// What goes into the node that runs for the named one, and what comes out; else what its module
// has.
std::string nearest_to(const Graph& all, const std::string& name) {
  const std::string identity(node_of_tap(name));
  std::vector<std::string> near;
  const auto itself = find_node(all, identity);
  if (const auto by = itself ? itself : taken_in_by(all, identity)) {
    const auto add = [&](ValueId v) {
      for (const GraphOutput& o : all.outputs())
        if (o.kind == OutputKind::Tap && o.value == v) return near.push_back(o.name.str());
    };
    for (ValueId v : all.node(*by).in) add(v);
    for (std::uint32_t i = 0; i < all.node(*by).out.size(); ++i) add({*by, i});
  } else {
    for (const std::string& tap : taps_of(all))
      if (path_of_tap(tap) == path_of_tap(name)) near.push_back(tap);
  }
  return near.empty() ? "a value that the program needs" : listed(near);
}

[[noreturn]] void refuse_lost(const Graph& all, const std::string& pattern, const std::string& name,
                              const std::string& why) {
  throw UserError("E0326", "the value cannot be had: " + name)
      .saw("a tap on " + in_quotes(pattern) + "; " + why)
      .need("a value that is whole at some point: " + nearest_to(all, name));
}

// The node whose op computes inside what the pattern asks for, and never has it whole, as the op's
// doc says: an attention for "op:softmax" or "h.0.attn/scores".
std::optional<std::string> holder_of(const TapPattern& pattern, const Graph& traced) {
  const std::string word = pattern.word();
  if (word.empty()) return std::nullopt;
  for (std::uint32_t n : traced.order()) {
    const Node& node = traced.node(n);
    const OpDef* op = find_op(node.op);
    const std::size_t inside = op ? op->doc.find("Never whole: ") : std::string::npos;
    if (inside != std::string::npos && op->doc.find(word, inside) != std::string::npos &&
        glob_match(pattern.path(), node.where.path.str()))
      return node.identity();
  }
  return std::nullopt;
}

[[noreturn]] void refuse_unknown(const Graph& all, const Graph& traced, const std::string& text) {
  const TapPattern pattern(text);
  if (const auto holder = holder_of(pattern, traced))
    throw UserError("E0326", "the value cannot be had: " + text)
        .saw("a value inside " + *holder + ", which never has all of it")
        .need("a value that is whole at some point: " + nearest_to(all, *holder))
        .advice(
            "tap these, and compute it from them by hand; an attention's scores and "
            "probabilities are had by op:attention_scores and op:attention_probabilities");
  std::vector<std::string> names = taps_of(all);
  const std::string some = listed(names);
  for (Name lost : all.lost_taps()) names.push_back(lost.str());  // asked for, they are explained
  UserError error("E0327", "no value is meant by the tap " + in_quotes(text));
  for (const char* phase : {"backward:", "update:"}) {
    const TapPattern later(phase + text);
    if (std::any_of(names.begin(), names.end(), [&](auto& n) { return later.matches(n); }))
      throw std::move(error).need("a value of the forward phase").advice(phase + text);
  }
  std::string near = pattern.nearest(names);
  // Of a phase that the program does not have, or another, it may mean nothing either.
  if (const TapPattern meant(near);
      std::none_of(names.begin(), names.end(), [&](auto& n) { return meant.matches(n); }))
    near = "";
  throw std::move(error)
      .need("a module path, op:NAME, or the name of a value: " + some)
      .advice(near.empty() ? "the tap \"*\" gives all of the forward phase" : near);
}

}  // namespace

std::vector<RefusedTap> check_taps(const Graph& compiled, const Graph& traced,
                                   const PassContext& context, const PipelineOptions& options) {
  std::vector<RefusedTap> refused;
  for (Name name : compiled.lost_taps())
    refused.push_back({name.str(), why_lost(compiled, name.str())});
  const std::vector<std::string> had = taps_of(compiled);
  for (Name text : compiled.tap_patterns()) {
    if (std::ranges::find(context.optional_taps, text.str()) != context.optional_taps.end())
      continue;
    if (text.str().starts_with("perhaps:") || is_note_of_fusion(text.str())) continue;
    const TapPattern pattern(text.str());
    const auto is_meant = [&](const std::string& name) { return pattern.matches(name); };
    if (std::any_of(had.begin(), had.end(), is_meant)) continue;
    const Graph all = with_all_taps(traced, context, options);
    for (const RefusedTap& r : refused)
      if (is_meant(r.name)) refuse_lost(all, text.str(), r.name, r.why);
    refuse_unknown(all, traced, text.str());
  }
  return refused;
}

}  // namespace aloft
