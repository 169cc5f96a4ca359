#include "ops/verify_graph.h"

#include "base/error.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"

namespace aloft {
namespace {

class NodeCheck {
 public:
  NodeCheck(const Graph& graph, std::uint32_t n) : graph_(graph), n_(n), node_(graph.node(n)) {}

  void run() const {
    if (node_.op == Name("input") || node_.op == Name("state"))
      source();
    else if (node_.op == Name("gradients"))
      gradients();
    else
      call();
  }

 private:
  [[noreturn]] void fail(const std::string& headline, const std::string& saw,
                         const std::string& need) const {
    UserError e("E0316", headline);
    if (const std::string place = place_of(node_.where); !place.empty()) e.add_line("at", place);
    throw std::move(e).line("node", print_node(graph_, n_)).saw(saw).need(need);
  }

  void need(bool ok, const std::string& what) const {
    if (!ok) fail("the graph's node is not well formed", node_.attrs.str(), what);
  }

  // An attribute that may be absent holds a T.
  template <class T>
  const T* attr(const char* name) const {
    const AttrValue* value = node_.attrs.find(name);
    if (value == nullptr) return nullptr;
    const T* t = std::get_if<T>(value);
    need(t != nullptr, "attribute '" + std::string(name) + "' of another kind");
    return t;
  }

  void source() const {
    need(node_.form == ProductForm::Plain, "no form of products");
    need(node_.in.empty() && node_.out.size() == 1, "no operand and one result");
    if (node_.op == Name("input")) return;
    const auto* cls = attr<std::string>("class");
    need(cls != nullptr, "a class");
    bool known = false;
    for (StateClass c : {StateClass::Parameter, StateClass::Optimizer, StateClass::Gradient,
                         StateClass::Buffer, StateClass::Control})
      known = known || name_of(c) == *cls;
    need(known, "class parameter, optimizer, gradient, buffer or control");
    attr<bool>("requires_grad");
    attr<bool>("is_norm");
    if (const auto* stored = attr<DType>("stored"))
      need(is_low(*stored) && node_.out[0].dtype == DType::F32,
           "a variable that is f32 while tracing and stored as bf16 or f16");
  }

  void gradients() const {
    const std::size_t known = attr<bool>(kExactAttr) != nullptr;
    need(node_.attrs.all().size() == known && node_.in.size() >= 2 &&
             node_.out.size() + 2 == node_.in.size(),
         "a target, a seed, and a result for each further operand");
    for (ValueId v : node_.in) need(is_float(graph_.type(v).dtype), "floating-point operands");
    const Shape& target = graph_.type(node_.in[0]).shape;
    const Shape& seed = graph_.type(node_.in[1]).shape;
    need(seed.rank() == 0 || seed == target, "a seed that is a scalar or has the target's shape");
    for (std::size_t i = 0; i < node_.out.size(); ++i)
      need(node_.out[i] == graph_.type(node_.in[i + 2]), "results of the operands' types");
  }

  void call() const {
    std::vector<TensorType> in, inferred;
    for (ValueId v : node_.in) in.push_back(graph_.type(v));
    try {
      inferred = infer_types(op_named(node_.op), node_.attrs, in, node_.where);
    } catch (const UserError& e) {
      fail("the graph's node is no call of its op", e.headline(), "a call that the op accepts");
    }
    if (!may_have_form(op_named(node_.op), node_.form, in))
      fail("the graph's node has products in a form that they cannot have",
           std::string(name_of(node_.form)), "a form of the op's record, and operands for it");
    if (inferred == node_.out) return;
    std::string types;
    for (const TensorType& t : inferred) types += (types.empty() ? "" : ", ") + t.str();
    std::string stated;
    for (const TensorType& t : node_.out) stated += (stated.empty() ? "" : ", ") + t.str();
    fail("the graph's node states other types than its op gives", stated, types);
  }

  const Graph& graph_;
  std::uint32_t n_;
  const Node& node_;
};

}  // namespace

void verify_graph(const Graph& graph) {
  try {
    verify_structure(graph);
  } catch (const InternalError& e) {
    throw UserError("E0316", e.headline());
  }
  for (std::uint32_t n : graph.order()) NodeCheck(graph, n).run();
}

}  // namespace aloft
