#include "passes/attention_taps.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ops/attention_inside.h"
#include "ops/graph_emitter.h"
#include "passes/taken_in.h"
#include "passes/tap_pattern.h"
#include "types/statistics.h"

namespace aloft {
namespace {

constexpr std::string_view kScores = "attention_scores", kProbabilities = "attention_probabilities";

std::string tap_of(std::string_view path, std::string_view what, int call) {
  return std::string(path) + "/" + std::string(what) + "#" + std::to_string(call);
}

// The names, with what stands in front of each, by which a value is asked for.
std::vector<std::string> asked(const std::vector<TapPattern>& patterns, const std::string& value) {
  std::vector<std::string> names;
  for (const std::string_view prefix : {std::string_view(), kStatisticsPrefix, kExponentsPrefix}) {
    const std::string name = std::string(prefix) + value;
    if (std::ranges::any_of(patterns, [&](const TapPattern& p) { return p.matches(name); }))
      names.push_back(name);
  }
  return names;
}

bool has_tap(const Graph& graph, const std::string& name) {
  return std::ranges::any_of(graph.outputs(),
                             [&](const GraphOutput& o) { return o.name == Name(name); });
}

}  // namespace

bool asks_for_attention(std::string_view pattern) {
  const std::string word = TapPattern(pattern).word();
  constexpr std::string_view kFirst = "attention_";
  const auto is_begun = [&](std::string_view name) {
    return word.size() >= kFirst.size() && name.starts_with(word);
  };
  return is_begun(kScores) || is_begun(kProbabilities);
}

bool shows_scores(std::string_view tap) {
  const std::size_t count = tap.rfind('#'), slash = tap.rfind('/', count);
  return count != std::string_view::npos && slash != std::string_view::npos &&
         tap.substr(slash + 1, count - slash - 1) == kScores;
}

std::string scores_tap(std::string_view path, int call) { return tap_of(path, kScores, call); }
std::string probabilities_tap(std::string_view path, int call) {
  return tap_of(path, kProbabilities, call);
}

bool show_attention(Graph& graph) {
  std::vector<TapPattern> patterns;
  for (const Name p : graph.tap_patterns())
    if (!is_note_of_fusion(p.str()) && asks_for_attention(p.str())) patterns.emplace_back(p.str());
  if (patterns.empty()) return false;
  AttentionNumbers numbers;
  bool is_changed = false;
  const std::vector<std::uint32_t> order = graph.order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Node node = graph.node(order[i]);
    if (!has_attention_inside(node.op)) continue;
    const int call = numbers.of(node.where.path, node.occurrence);
    std::vector<std::string> scores = asked(patterns, scores_tap(node.where.path.str(), call));
    std::vector<std::string> shares =
        asked(patterns, probabilities_tap(node.where.path.str(), call));
    const auto is_there = [&](const std::string& name) { return has_tap(graph, name); };
    std::erase_if(scores, is_there);
    std::erase_if(shares, is_there);
    if (scores.empty() && shares.empty()) continue;
    GraphEmitter emitter(graph);
    emitter.insert_before(i + 1 < order.size() ? std::optional(order[i + 1]) : std::nullopt);
    const EmitterScope emitter_scope(emitter);
    Where where = node.where;
    where.pass = "take-statistics";
    where.path = node.where.path.str() + "/" + node.op.str();
    where.reason = "what is inside is asked for";
    where.policy = {};
    const Scope scope(where);
    std::vector<Tensor> in;
    for (const ValueId v : node.in) in.push_back(emitter.handle(v));
    const AttentionInside inside = inside_attention(node.op, node.attrs, in);
    for (const std::string& name : scores)
      graph.set_output(name, inside.scores.id(), OutputKind::Tap);
    for (const std::string& name : shares)
      graph.set_output(name, inside.probabilities.id(), OutputKind::Tap);
    is_changed = true;
  }
  return is_changed;
}

}  // namespace aloft
