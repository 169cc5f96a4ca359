// Runs every case of tests/passes/*.graph (case_file.h says what a case is). For each:
// - the input and the result are valid graphs: structure, and every node against its op's record;
// - the result's text is the expected one;
// - input and result give the same values on random inputs, in double: to the bit, or within the
//   tolerance where the case says that the arithmetic changes; a pass that claims to keep bits
//   keeps them also where every result is rounded to its type; a tap may be lost, and then says so;
// - what runs is what runs without the taps, in the same order;
// - a pass says truly whether it changed the graph, and a second run changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <set>

#include "base/error.h"
#include "ops/op.h"
#include "ops/statistics.h"
#include "ops/verify_graph.h"
#include "passes/case_file.h"
#include "passes/graph_values.h"
#include "passes/layer_error_names.h"
#include "passes/pipeline.h"
#include "passes/tap_pattern.h"
#include "scalar/philox.h"

namespace aloft::testing {
namespace {

const Path kFolder = "tests/passes";

const Pass* find_pass(std::string_view name) {
  for (const Pass* p : compile_pipeline().passes())
    if (p->name == name) return p;
  return nullptr;
}

// Every op has a kernel but those that the case takes away.
PassContext context_of(const PassCase& c) {
  PassContext context;
  context.choose = [&c](const CallSpec& call) {
    const bool missing =
        std::find(c.without.begin(), c.without.end(), call.op.str()) != c.without.end();
    KernelChoice choice;
    if (!missing) choice.kernel = "test." + call.op.str();
    return choice;
  };
  return context;
}

bool has_gradients(const Graph& graph) {
  for (std::uint32_t n : graph.order())
    if (graph.node(n).op == Name("gradients")) return true;
  return false;
}

// Random inputs and variables, rounded to the narrowest type in which a pass may store them.
std::map<Name, HostArray> random_inputs(const PassCase& c, const Graph& graph) {
  std::map<Name, HostArray> given;
  std::uint64_t stream = 0;
  for (std::uint32_t n : graph.order()) {
    const Node& node = graph.node(n);
    if (node.op != Name("input") && node.op != Name("state")) continue;
    const auto name = std::get<std::string>(*node.attrs.find("name"));
    const TensorType type = bind_lengths(node.out[0], c.lengths);
    HostArray a = HostArray::zeros(type.dtype, type.shape.max_extents());
    const scalar::RandomKey key{17, 0, 0, ++stream};
    const auto ids = c.ids.find(name);
    const auto range = c.uniform.find(name);
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      const double u = scalar::uniform(key, i);
      if (!is_float(a.dtype)) {
        const auto [from, to] = ids == c.ids.end() ? std::pair{0.0, 2.0} : ids->second;
        a[i] = std::floor(from + (to - from) * u);
      } else {
        const bool even = range != c.uniform.end();
        a[i] = even ? range->second.first + (range->second.second - range->second.first) * u
                    : scalar::normal(key, i);
      }
    }
    if (const AttrValue* stored = node.attrs.find("stored")) a.dtype = std::get<DType>(*stored);
    round_to_dtype(a);
    given[name] = a;
  }
  return given;
}

void expect_equal(const HostArray& before, const HostArray& after, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(before.shape, after.shape) << what;
  double largest = 0;
  for (double v : before.values)
    largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
  for (std::int64_t i = 0; i < before.numel(); ++i) {
    if (tolerance == 0)
      ASSERT_EQ(std::memcmp(&before.values[i], &after.values[i], sizeof(double)), 0)
          << what << "[" << i << "] was " << before[i] << " and is " << after[i];
    else
      ASSERT_NEAR(before[i], after[i], tolerance * largest) << what << "[" << i << "]";
  }
}

// A tap of a value has become one of its statistics.
bool shows_statistics(Name tap, const HostArray& before, const HostArray& after) {
  return is_statistics(tap.str()) && before.shape != after.shape;
}

HostArray statistics_of(const HostArray& value) {
  return evaluate_op(op_named("statistics"), to_attrs(StatisticsAttrs{}), {&value, 1})[0];
}

// What a step adds to the variable of which an update tap shows the new value, or to its master,
// which cases call so.
HostArray added(Name tap, const GraphValues& values, const std::map<Name, HostArray>& given) {
  const std::string own = tap.str().substr(update_tap(kStatisticsPrefix, "").find(".update"));
  const std::string variable = own.substr(0, own.rfind('.')), master = variable + ".master";
  const Name id(given.contains(Name(master)) ? master : variable);
  HostArray change = HostArray::zeros(DType::F32, given.at(id).shape);
  for (std::int64_t i = 0; i < change.numel(); ++i)
    change[i] = values.updates.at(id)[i] - given.at(id)[i];
  return change;
}

// `lost`: taps that the pass left no value for; `given`: inputs and variables, or nothing where
// what a step adds is not compared.
void expect_equal(const GraphValues& before, const GraphValues& after, const std::set<Name>& lost,
                  const std::map<Name, HostArray>& given, double tolerance) {
  constexpr double kInF32 = 1e-6;  // what a step adds is
  for (const auto& [name, value] : before.outputs) {
    ASSERT_NE(after.outputs.contains(name), lost.contains(name)) << name.str();
    if (lost.contains(name)) continue;
    const HostArray& shown = after.outputs.at(name);
    const bool is_update = is_update_tap(name.str());
    if (is_update && given.empty()) continue;
    expect_equal(!shows_statistics(name, value, shown) ? value
                 : is_update                           ? statistics_of(added(name, before, given))
                                                       : statistics_of(value),
                 shown, is_update ? kInF32 : tolerance, "output " + name.str());
  }
  for (const auto& [name, value] : before.updates)
    expect_equal(value, after.updates.at(name), tolerance, "update " + name.str());
  EXPECT_EQ(before.updates.size(), after.updates.size());
}

void expect_same_values(const PassCase& c, const Graph& before, const Graph& after,
                        bool keeps_bits) {
  const std::map<Name, HostArray> given = random_inputs(c, before);
  const auto meaning = [&](const Graph& g, EvalRounding rounding) {
    return GraphMeaning(g, given, c.lengths, rounding).run();
  };
  // Differences are good to six digits; a changed order of a sum is worth some units of roundoff.
  constexpr double kDifferences = 1e-6, kReordered = 1e-12;
  const bool differences = has_gradients(before) && !has_gradients(after);
  const double tolerance = differences ? kDifferences : c.arithmetic_changes ? kReordered : 0;
  const std::set<Name> lost(after.lost_taps().begin(), after.lost_taps().end());
  expect_equal(meaning(before, EvalRounding::None), meaning(after, EvalRounding::None), lost, given,
               tolerance);
  if (keeps_bits && !has_gradients(before))
    expect_equal(meaning(before, EvalRounding::ToDType), meaning(after, EvalRounding::ToDType),
                 lost, {}, 0);
  const auto results = [](const Graph& g) {
    return std::count_if(g.outputs().begin(), g.outputs().end(), [](const GraphOutput& o) {
      return o.kind != OutputKind::Tap && !parse_layer_error(o.name.str());
    });
  };
  EXPECT_EQ(results(before), results(after));
}

// Node by node, and what each stands for; statistics are taken beside.
std::vector<std::string> what_runs(const Graph& graph) {
  std::vector<std::string> nodes;
  for (std::uint32_t n : graph.order())
    if (graph.node(n).where.pass != Name("take-statistics"))
      nodes.push_back(graph.node(n).identity() + " of " + graph.node(n).members);
  return nodes;
}

// The case's graph without its taps becomes the same, but for results of a loop that only taps see.
void expect_taps_change_nothing(const PassCase& c, const Graph& after) {
  static const std::regex tap(R"(\n  taps [^\n]*| tap:("[^"]*"|[A-Za-z0-9_.]+)=%[0-9.]+)");
  Graph graph = parse_graph(std::regex_replace(c.graph, tap, ""));
  for (const GraphOutput& o : graph.outputs()) ASSERT_NE(o.kind, OutputKind::Tap) << o.name.str();
  const PassContext context = context_of(c);
  for (const std::string& name : c.passes) find_pass(name)->run(graph, context);
  EXPECT_EQ(what_runs(graph), what_runs(after)) << "who looks on changes what runs";
}

// Runs the case's passes; each must say truly whether it changed anything, and the result must
// hold.
void run_passes(const PassCase& c, Graph& graph) {
  const PassContext context = context_of(c);
  for (const std::string& name : c.passes) {
    const std::string before = print(graph);
    const bool changed = find_pass(name)->run(graph, context).changed;
    EXPECT_EQ(changed, print(graph) != before) << name << " does not say whether it changed it";
    verify_graph(graph);
  }
}

class CaseTest : public ::testing::Test {
 public:
  CaseTest(Path file, int index) : file_(std::move(file)), index_(index) {}

  void TestBody() override {
    const PassCase c = read_cases(file_)[static_cast<std::size_t>(index_)];
    SCOPED_TRACE(file_.string() + ":" + std::to_string(c.line));
    bool keeps_bits = true;
    for (const std::string& name : c.passes) {
      ASSERT_NE(find_pass(name), nullptr) << "no pass '" << name << "'";
      keeps_bits = keeps_bits && find_pass(name)->keeps_bits;
    }
    ASSERT_FALSE(keeps_bits && c.arithmetic_changes) << "these passes claim to keep bits";
    const Graph before = parse_graph(c.graph);
    ASSERT_EQ(print(before), c.graph) << "the graph is not written as it prints";
    ASSERT_NO_THROW(verify_graph(before));
    if (!c.expected_error.empty()) return expect_refusal(c, before);
    Graph after = before;
    run_passes(c, after);
    EXPECT_EQ(print(after), c.expects_same ? c.graph : c.expected)
        << "ALOFT_UPDATE=1 takes what came out as what is expected";
    expect_same_values(c, before, after, keeps_bits);
    expect_taps_change_nothing(c, after);
    EXPECT_FALSE(find_pass(c.passes.back())->run(after, context_of(c)).changed)
        << "a second run changes the graph again";
  }

 private:
  static void expect_refusal(const PassCase& c, Graph graph) {
    try {
      run_passes(c, graph);
      ADD_FAILURE() << "taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), c.expected_error) << e.what();
    }
  }

  Path file_;
  int index_;
};

std::vector<Path> case_files() {
  std::set<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".graph") files.insert(entry.path());
  return {files.begin(), files.end()};
}

void update(const Path& file) {
  std::vector<PassCase> cases = read_cases(file);
  for (PassCase& c : cases) try {
      Graph graph = parse_graph(c.graph);
      c.graph = print(graph);
      if (!c.expected_error.empty()) continue;
      run_passes(c, graph);
      const std::string text = print(graph);
      c.expects_same = text == c.graph;
      c.expected = text;
    } catch (const Error& e) {  // the case itself reports it
      std::fprintf(stderr, "%s:%d stays as it is: %s\n", file.c_str(), c.line, e.what());
    }
  write_file_atomic(file, print_cases(cases));
}

TEST(PassCases, EveryPassHasItsFile) {
  for (const Pass* p : compile_pipeline().passes())
    EXPECT_FALSE(read_cases(kFolder / (std::string(p->name) + ".graph")).empty()) << p->name;
}

}  // namespace

void register_cases() {
  const char* wanted = std::getenv("ALOFT_UPDATE");
  for (const Path& file : case_files()) {
    if (wanted != nullptr && std::string_view(wanted) == "1") update(file);
    const std::vector<PassCase> cases = read_cases(file);
    for (std::size_t i = 0; i < cases.size(); ++i)
      ::testing::RegisterTest(
          file.stem().c_str(), cases[i].name.c_str(), nullptr, nullptr, file.c_str(), cases[i].line,
          [file, i]() -> ::testing::Test* { return new CaseTest(file, static_cast<int>(i)); });
  }
}

}  // namespace aloft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  aloft::testing::register_cases();
  return RUN_ALL_TESTS();
}
