// simplify: rewrites that never change a bit. Each rule is a named row.
#include "ops/cast.h"
#include "ops/op.h"
#include "ops/transpose.h"
#include "passes/pass.h"

namespace aloft {
namespace {

// A rule looks at one node and returns the value that may stand for its output 0, if any.
struct Rule {
  const char* name;
  std::optional<ValueId> (*match)(const Graph&, const Node&);
};

bool is(const Graph& g, ValueId v, const char* op) {
  return v.index == 0 && g.node(v.node).op == Name(op);
}

// Every value of `from` is representable in `to`.
bool widens(DType from, DType to) {
  return from == to || (to == DType::F64 && is_float(from)) || (to == DType::F32 && is_low(from));
}

const Rule kRules[] = {
    // cast(x) to x's own type.
    {"cast-to-same",
     [](const Graph& g, const Node& n) -> std::optional<ValueId> {
       if (n.op != Name("cast") || g.type(n.in[0]) != n.out[0]) return std::nullopt;
       return n.in[0];
     }},
    // cast(cast(x, wider), x's type): nothing was lost on the way.
    {"cast-there-and-back",
     [](const Graph& g, const Node& n) -> std::optional<ValueId> {
       if (n.op != Name("cast") || !is(g, n.in[0], "cast")) return std::nullopt;
       const ValueId source = g.node(n.in[0].node).in[0];
       if (g.type(source) != n.out[0] || !widens(g.type(source).dtype, g.type(n.in[0]).dtype))
         return std::nullopt;
       return source;
     }},
    // reshape(x) to x's own shape, and a reshape of a reshape that restores it.
    {"reshape-to-same",
     [](const Graph& g, const Node& n) -> std::optional<ValueId> {
       if (n.op != Name("reshape")) return std::nullopt;
       if (g.type(n.in[0]) == n.out[0]) return n.in[0];
       if (!is(g, n.in[0], "reshape")) return std::nullopt;
       const ValueId source = g.node(n.in[0].node).in[0];
       return g.type(source) == n.out[0] ? std::optional(source) : std::nullopt;
     }},
    // transpose(transpose(x)) that restores the order of the axes.
    {"transpose-there-and-back",
     [](const Graph& g, const Node& n) -> std::optional<ValueId> {
       if (n.op != Name("transpose") || !is(g, n.in[0], "transpose")) return std::nullopt;
       const Node& first = g.node(n.in[0].node);
       const Ints p = from_attrs<TransposeAttrs>(first.attrs).perm;
       const Ints q = from_attrs<TransposeAttrs>(n.attrs).perm;
       const int rank = static_cast<int>(p.size());
       for (int i = 0; i < rank; ++i)
         if (normal_axis(p[normal_axis(q[i], rank)], rank) != i) return std::nullopt;
       return first.in[0];
     }},
    // A copy that nobody asked for by name. A copy of a variable or an input stays: it separates
    // the value from before the step from what the step writes.
    {"identity",
     [](const Graph& g, const Node& n) -> std::optional<ValueId> {
       if (n.op != Name("identity") && n.op != Name("detach")) return std::nullopt;
       const Name source = g.node(n.in[0].node).op;
       if (source == Name("state") || source == Name("input")) return std::nullopt;
       return n.in[0];
     }},
    // broadcast(x) to x's own shape.
    {"broadcast-to-same",
     [](const Graph& g, const Node& n) -> std::optional<ValueId> {
       if (n.op != Name("broadcast") || g.type(n.in[0]) != n.out[0]) return std::nullopt;
       return n.in[0];
     }},
};

PassReport run(Graph& graph, const PassContext&) {
  PassReport report;
  for (std::uint32_t n : std::vector(graph.order())) {
    const Node& node = graph.node(n);
    if (node.erased || node.in.empty() || node.out.size() != 1) continue;
    for (const Rule& rule : kRules)
      if (const auto value = rule.match(graph, node)) {
        graph.replace_uses({n, 0}, *value);
        graph.erase(n);
        report.changed = true;
        break;
      }
  }
  return report;
}

}  // namespace

const Pass simplify{"simplify",
                    "removes casts, reshapes and copies that change nothing",
                    Form::Differentiated,
                    std::nullopt,
                    true,
                    run};

}  // namespace aloft
