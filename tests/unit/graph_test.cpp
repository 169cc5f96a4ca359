#include "graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"

namespace aloft {
namespace {

constexpr const char* kText = R"(graph mlp {
  %0 = input {name="x"} : f32[B<=8,16]
  %1 = state {name="fc.w", class="parameter", requires_grad=true, is_norm=false} : f32[4,16]
  %2 = linear(%0, %1) : f32[B<=8,4] @ "examples/a \"b\".cpp":31 path="h.0.fc" policy="O2:bf16"
  %3 = split(%2) {axis=-1, parts=2} : f32[B<=8,2], f32[B<=8,2]
  %4 = add(%3, %3.1) : f32[B<=8,2] phase="backward" pass="differentiate" reason="sum of 2 uses"
  taps "op:linear" "h.*/split#0.1"
  return y=%4 tap:h=%2 watch:w=%2 lost:"h.0.fc/cast#0"
  update "fc.w"=%1
}
)";

TEST(GraphText, ParsesBackToTheSameGraph) {
  const Graph g = parse_graph(kText);
  EXPECT_EQ(print(g), kText);
  EXPECT_NO_THROW(verify_structure(g));
  EXPECT_EQ(g.node(2).identity(), "h.0.fc/linear#0");
}

// Two variables may have one name: the second has an id, and updates name the ids.
TEST(GraphText, AVariableIsKnownByItsId) {
  const std::string text =
      "graph g {\n"
      "  %0 = state {class=\"parameter\", name=\"w\"} : f32[2]\n"
      "  %1 = state {class=\"parameter\", id=\"w#2\", name=\"w\"} : f32[3]\n"
      "  update \"w#2\"=%1\n"
      "  update \"w\"=%0\n"
      "}\n";
  Graph g = parse_graph(text);
  EXPECT_EQ(print(parse_graph(print(g))), print(g));
  EXPECT_NO_THROW(verify_structure(g));
  EXPECT_EQ(g.find_state("w"), (ValueId{0, 0}));
  EXPECT_EQ(g.find_state("w#2"), (ValueId{1, 0}));
  g.set_update("w", {1, 0});
  EXPECT_THROW(verify_structure(g), InternalError);
  EXPECT_THROW(verify_structure(parse_graph("graph g {\n  %0 = state {name=\"w\"} : f32[2]\n"
                                            "  %1 = state {name=\"w\"} : f32[3]\n}\n")),
               InternalError);
}

// How a call's products may be computed stands behind its attributes; the plain form goes without
// saying.
TEST(GraphText, ACallKeepsTheFormOfItsProducts) {
  const std::string text =
      "graph g {\n"
      "  %0 = input {name=\"x\"} : f32[2,2]\n"
      "  %1 = matmul(%0, %0) {transpose_a=true} as bf16x6 : f32[2,2] path=\"a\"\n"
      "  %2 = linear(%1, %0) as bf16x3 : f32[2,2]\n"
      "  return y=%2\n"
      "}\n";
  const Graph g = parse_graph(text);
  EXPECT_EQ(print(g), text);
  EXPECT_EQ(g.node(0).form, ProductForm::Plain);
  EXPECT_EQ(g.node(1).form, ProductForm::Bf16x6);
  EXPECT_EQ(g.node(2).form, ProductForm::Bf16x3);
  EXPECT_EQ(g.node(1).attrs.all().size(), 1u);
  for (const char* form : {"plain", "bf16x9", ""})
    EXPECT_THROW(parse_graph("graph g {\n  %0 = eye as " + std::string(form) + " : f32[2,2]\n}\n"),
                 UserError)
        << form;
}

// A policy is a value: texts that mean the same are one, what means none is refused at its line.
TEST(GraphText, APolicyIsReadOnce) {
  const auto graph = [](const std::string& policy) {
    return parse_graph("graph g {\n  %0 = eye : f32[2,2] policy=\"" + policy + "\"\n}\n");
  };
  const Policy given = graph("O2:bf16").node(0).where.policy;
  EXPECT_EQ(given, graph("o2").node(0).where.policy);
  EXPECT_NE(given, graph("O1:bf16").node(0).where.policy);
  EXPECT_NE(print(graph("o2")).find("policy=\"O2:bf16\""), std::string::npos);
  for (const char* wrong : {"O9", "auto", "O2:bf16 matmul=bf16x6"})
    EXPECT_THROW(graph(wrong), UserError) << wrong;
}

TEST(GraphText, ErrorsNameTheLine) {
  const std::string good = kText;
  // Cutting the text anywhere must give a user error, never a crash or a graph.
  for (std::size_t n = 0; n + 2 < good.size(); ++n)
    EXPECT_THROW(parse_graph(good.substr(0, n)), UserError) << n;
  try {
    parse_graph("graph g {\n  %0 = neg(%1) : f32[]\n}\n");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("line 2"), std::string::npos) << e.what();
  }
}

TEST(GraphText, NamesThatAreMoreThanWordsAreQuoted) {
  Graph g = parse_graph(kText);
  g.name = "step 1";
  g.set_output("grad h/0", {4, 0});
  const std::string text = print(g);
  EXPECT_NE(text.find("graph \"step 1\" {"), std::string::npos);
  EXPECT_NE(text.find("\"grad h/0\"=%4"), std::string::npos);
  EXPECT_EQ(print(parse_graph(text)), text);
}

// An identity survives the text also where another node of that place came or went before it.
TEST(GraphText, KeepsOccurrences) {
  const std::string text =
      "graph g {\n"
      "  %0 = input {name=\"x\"} : f32[2]\n"
      "  %1 = neg(%0) : f32[2] path=\"a\" occurrence=3\n"
      "  %2 = neg(%1) : f32[2] path=\"a\"\n"
      "  %3 = neg(%2) : f32[2] path=\"a\" occurrence=0\n"
      "  return y=%3\n"
      "}\n";
  const Graph g = parse_graph(text);
  EXPECT_EQ(print(g), text);
  EXPECT_EQ(g.node(1).identity(), "a/neg#3");
  EXPECT_EQ(g.node(2).identity(), "a/neg#4");
  EXPECT_EQ(g.node(3).identity(), "a/neg#0");
  EXPECT_EQ(g.next_occurrence(g.node(1).where, "neg"), 5);
}

TEST(GraphText, ANodeWithoutResultsKeepsItsReason) {
  const std::string text =
      "graph g {\n  %0 = barrier : reason=\"order\"\n  %1 = barrier : occurrence=7\n}\n";
  EXPECT_EQ(print(parse_graph(text)), text);
}

TEST(Graph, KeepsUseDefWhileItChanges) {
  Graph g = parse_graph(kText);
  EXPECT_EQ(g.use_count({2, 0}), 2);
  g.replace_uses({3, 1}, {3, 0});
  EXPECT_EQ(g.use_count({3, 0}), 2);
  EXPECT_EQ(g.use_count({3, 1}), 0);
  EXPECT_THROW(g.erase(3), InternalError);
  g.replace_uses({4, 0}, {3, 0});
  g.erase(4);
  EXPECT_NO_THROW(verify_structure(g));
  EXPECT_EQ(g.order().size(), 4u);
}

// Random changes; what the graph says of readers and order is compared with a look at every node.
TEST(Graph, KnowsReadersAndOrderAsEveryNodeShowsThem) {
  std::mt19937 random(5);
  const TensorType type{DType::F32, Shape{2}};
  Graph g;
  std::vector<ValueId> values{g.add_input("x", type)};
  const auto any = [&] { return values[random() % values.size()]; };
  const auto before = [&](ValueId a, ValueId b) { return g.comes_before(a.node, b.node); };
  for (int change = 0; change < 3000; ++change) {
    const int kind = static_cast<int>(random() % 8);
    const ValueId v = any(), w = any();
    if (kind < 3) {
      values.push_back({g.add("add", {}, {v, w, v}, {type}, {}), 0});
    } else if (kind == 3 && v.node != 0) {  // with operands of what it is inserted before
      const ValueId first = g.node(v.node).in[0];
      values.push_back({g.add("neg", {}, {first}, {type}, {}, v.node), 0});
    } else if (kind == 4 && before(v, w)) {
      g.set_input(w.node, static_cast<int>(random() % g.node(w.node).in.size()), v);
    } else if (kind == 5 && before(v, w)) {
      g.replace_uses(w, v);
    } else if (kind == 6) {
      g.set_output("out" + std::to_string(random() % 5), v);
    } else if (v.node != 0 && g.use_count(v) == 0) {
      g.erase(v.node);
      std::erase(values, v);
    }
  }
  EXPECT_NO_THROW(verify_structure(g));
  const auto& order = g.order();
  ASSERT_EQ(order.size(), values.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    ASSERT_TRUE(g.comes_before(order[i - 1], order[i]));
    ASSERT_FALSE(g.comes_before(order[i], order[i - 1]));
  }
  for (ValueId v : values) {
    std::vector<std::uint32_t> readers;
    long uses = 0;
    for (std::uint32_t n = 0; n < g.capacity(); ++n) {
      const auto& in = g.node(n).in;
      const long count = std::count(in.begin(), in.end(), v);
      if (count > 0) readers.push_back(n);
      uses += count;
    }
    for (const GraphOutput& o : g.outputs()) uses += o.value == v;
    ASSERT_EQ(g.readers(v), readers);
    ASSERT_EQ(g.users(v.node), readers);
    ASSERT_EQ(g.use_count(v), uses);
  }
}

// As a gradient that is emitted before an update, and always before what came last.
TEST(Graph, KeepsTheOrderOfAnyNumberOfInsertions) {
  const TensorType type{DType::F32, Shape{2}};
  for (const bool always_before_the_last : {false, true}) {
    Graph g;
    const ValueId x = g.add_input("x", type);
    std::uint32_t last = g.add("neg", {}, {x}, {type}, {});
    std::vector<std::uint32_t> expected{x.node, last};
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t n = g.add("neg", {}, {x}, {type}, {}, last);
      expected.insert(always_before_the_last ? expected.begin() + 1 : expected.end() - 1, n);
      if (always_before_the_last) last = n;
    }
    EXPECT_EQ(g.order(), expected);
    for (std::size_t i = 1; i < expected.size(); ++i)
      ASSERT_TRUE(g.comes_before(expected[i - 1], expected[i]));
    std::reverse(expected.begin() + 1, expected.end());
    g.set_order(expected);
    EXPECT_EQ(g.order(), expected);
    EXPECT_TRUE(g.comes_before(expected[1], expected[2]));
    expected.back() = expected[1];
    EXPECT_THROW(g.set_order(expected), InternalError);
  }
}

// A tap is no use: it follows its value, and does not keep the node.
TEST(Graph, LosesATapWithItsNode) {
  Graph g = parse_graph(kText);
  g.set_output("d", {4, 0}, OutputKind::Tap);
  EXPECT_EQ(g.use_count({4, 0}), 1);
  g.replace_uses({4, 0}, {3, 1});
  g.erase(4);
  g.set_output("e", {3, 1}, OutputKind::Tap);
  EXPECT_EQ(g.use_count({3, 1}), 1);  // of y
  g.replace_uses({3, 0}, {2, 0});
  g.set_output("y", {2, 0});
  EXPECT_EQ(g.use_count({3, 1}), 0);
  g.erase(3);
  EXPECT_NO_THROW(verify_structure(g));
  EXPECT_EQ(g.lost_taps(), (std::vector<Name>{"h.0.fc/cast#0", "d", "e"}));
  EXPECT_EQ(g.outputs().size(), 3u);  // y, h, w
  EXPECT_EQ(print(parse_graph(print(g))), print(g));
}

TEST(Graph, RefusesAnUpdateOfAnotherType) {
  Graph g = parse_graph(kText);
  g.set_update("fc.w", {2, 0});
  EXPECT_THROW(verify_structure(g), InternalError);
}

}  // namespace
}  // namespace aloft
