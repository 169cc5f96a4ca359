// What ops take whose results are looked at, as a Plan says it and as a dump has it.
#include "observe/probe/operands.h"

#include <gtest/gtest.h>

#include <optional>

#include "observe/probe/dump.h"
#include "types/step_program.h"
#include "unit/step_statistics.h"

namespace aloft::probe {
namespace {

constexpr std::size_t kNumbers = TensorStatistics::kNumbers;
using Json = nlohmann::ordered_json;

// A program of which instructions and looks are written down one by one.
class Written {
 public:
  // `members`: of a fused call, the calls that it stands for.
  void call(const std::string& op, const std::string& identity, const std::vector<int>& in,
            const std::vector<int>& out, const std::vector<std::string>& members = {},
            Phase phase = Phase::Forward, Attrs attrs = {}) {
    Instruction i;
    i.call.op = Name(op);
    i.call.attrs = std::move(attrs);
    i.identity = identity;
    i.members = members;
    i.phase = phase;
    for (const int b : in) i.in.push_back({b, type_}), i.call.in.push_back(type_);
    for (const int b : out) i.out.push_back({b, type_});
    program_.instructions.push_back(std::move(i));
  }
  Instruction& last() { return program_.instructions.back(); }
  void look(const std::string& name, int buffer, Phase phase = Phase::Forward,
            const std::optional<TensorType>& type = {}) {
    const TensorType numbers{DType::F64, Shape{static_cast<std::int64_t>(kNumbers)}};
    const int at = next_++;
    call("statistics", "", {buffer}, {at}, {}, phase);
    if (type) last().in[0].type = last().call.in[0] = *type;
    program_.outputs.push_back({std::string(kStatisticsPrefix) + name, {at, numbers}, true});
    taken_.push_back({at, numbers});
  }
  // Of each value that is looked at "NAME: OPERAND, OPERAND"; of the backward pass with '<' behind.
  std::vector<std::string> operands() {
    call("concat", "", {}, {next_});
    program_.instructions.back().in = taken_;
    program_.outputs.push_back({std::string(kAllStatistics), {next_, type_}, true});
    std::vector<std::string> lines;
    for (const LookedAt& value : looked_at_in(program_)) {
      std::string line = value.name + ":";
      for (const LookedAt::Operand& o : value.operands)
        line += " " + (o.name.empty() ? "-" : o.name) + (o.is_backward ? "<" : "");
      lines.push_back(line);
    }
    return lines;
  }

 private:
  const TensorType type_{DType::F32, Shape{2, 3}};
  Program program_;
  int next_ = 1000;
  std::vector<BufferRef> taken_;
};

using Lines = std::vector<std::string>;

TEST(Operands, AreWhatTheInstructionTakesInItsOrder) {
  Written p;  // 0: tokens, 1: a parameter
  p.call("embedding", "wte/embedding#0", {1, 0}, {2});
  p.look("wte/embedding#0", 2);
  p.call("linear", "m/linear#0", {2, 1}, {3});
  p.look("m/linear#0", 3);
  EXPECT_EQ(p.operands(), (Lines{"wte/embedding#0: - -", "m/linear#0: wte/embedding#0 -"}));
}

TEST(Operands, OfABufferThatIsWrittenTwiceAreThoseOfTheTime) {
  Written p;
  p.call("exp", "a/exp#0", {0}, {1});
  p.look("a/exp#0", 1);
  p.call("neg", "a/neg#0", {1}, {1});  // in place
  p.look("a/neg#0", 1);
  p.call("sqrt", "a/sqrt#0", {1}, {2});
  p.look("a/sqrt#0", 2);
  EXPECT_EQ(p.operands(), (Lines{"a/exp#0: -", "a/neg#0: a/exp#0", "a/sqrt#0: a/neg#0"}));
}

TEST(Operands, ParametersAreKnownWhereSomebodyLooksAtThem) {
  Written p;
  p.look("parameter:m.weight", 1);
  p.look("call:m#0.input", 0);
  p.call("linear", "m/linear#0", {0, 1}, {2});
  p.look("call:m#0.output", 2);
  p.look("m/linear#0", 2);
  p.call("relu", "m/relu#0", {2}, {3});
  p.look("m/relu#0", 3);
  const Lines found = p.operands();
  EXPECT_EQ(found[3], "m/linear#0: call:m#0.input parameter:m.weight");
  EXPECT_EQ(found[4], "m/relu#0: m/linear#0");  // of its names that of the op
}

TEST(Operands, OfAStepInALoopAreWhatTheStepTakes) {
  Written p;
  Attrs attrs;
  attrs.set("program", std::string("%2 = mul(%0, %1) : f32; %3 = exp(%2) : f32; "
                                   "%4 = add(%3, %2) : f32; return %4, %2"));
  p.call("neg", "m/neg#0", {8}, {0});
  p.look("m/neg#0", 0);
  p.call("fused", "m/fused#0", {0, 1}, {2, 3}, {"m/mul#0", "m/exp#0", "m/add#0"}, Phase::Forward,
         attrs);
  p.look("m/add#0", 2);
  p.look("m/mul#0", 3);
  EXPECT_EQ(p.operands(), (Lines{"m/neg#0: -", "m/add#0: - m/mul#0", "m/mul#0: m/neg#0 -"}));
}

TEST(Operands, OfTwoOpsInOneAreThoseOfEach) {
  Written p;  // 0, 1: what is added; 2, 3: of the norm
  p.call("exp", "m/exp#0", {9}, {0});
  p.look("m/exp#0", 0);
  p.call("add_layer_norm", "m/add_layer_norm#0", {0, 1, 2, 3}, {4, 5, 6, 7},
         {"m/add#0", "m/layer_norm#0"});
  p.look("m/layer_norm#0", 4);
  p.look("m/layer_norm#0.1", 5);
  p.look("m/add#0", 7);
  p.call("linear_cross_entropy", "loss/linear_cross_entropy#0", {4, 2, 8}, {10},
         {"head/linear#0", "loss/cross_entropy#0"});
  p.look("loss/cross_entropy#0", 10);
  const Phase back = Phase::Backward;
  p.call("linear_cross_entropy_grad", "loss/linear_cross_entropy_grad.backward#0", {4, 2, 8, 11},
         {12, 13}, {}, back);
  p.look("loss/linear_cross_entropy_grad.backward#0", 12, back);
  p.call("layer_norm_grad_add", "m/layer_norm_grad_add.backward#0", {12, 12, 0, 2}, {14, 15},
         {"m/layer_norm_grad.backward#0", "m/add.backward#0"}, back);
  p.look("m/add.backward#0", 14, back);
  p.look("m/layer_norm_grad.backward#0.1", 15, back);
  const std::string grad = "loss/linear_cross_entropy_grad.backward#0<";
  EXPECT_EQ(p.operands(),
            (Lines{"m/exp#0: -", "m/layer_norm#0: m/add#0 - -", "m/layer_norm#0.1: m/add#0 - -",
                   "m/add#0: m/exp#0 -", "loss/cross_entropy#0: - -",
                   "loss/linear_cross_entropy_grad.backward#0: m/layer_norm#0 - - -",
                   "m/add.backward#0: " + grad + " -<",
                   "m/layer_norm_grad.backward#0.1: " + grad + " m/exp#0 -"}));
}

// A value in another shape lies where it lay.
TEST(Operands, InAnotherShapeAreTheOnesThatAreTaken) {
  const TensorType flat{DType::F32, Shape{6}};
  for (const bool is_flat : {false, true}) {
    Written p;
    p.call("exp", "a/exp#0", {0}, {1});
    p.look("a/exp#0", 1);
    p.look("a/reshape#0", 1, Phase::Forward, flat);
    p.call("neg", "a/neg#0", {1}, {2});
    if (is_flat) p.last().in[0].type = flat;
    p.look("a/neg#0", 2);
    EXPECT_EQ(p.operands()[2], is_flat ? "a/neg#0: a/reshape#0" : "a/neg#0: a/exp#0");
  }
}

// An op that the program leaves out gives what it takes; the same op at another place is none that
// it takes, nor do ops of a body say what the op takes that they stand for.
TEST(Operands, OfAnOpThatIsLeftOutAreWhatItGives) {
  Written p;
  p.call("exp", "a/exp#0", {0}, {1});
  p.look("a/exp#0", 1);
  p.look("b/reshape#0", 1);
  p.look("b/exp#0", 1);
  p.call("mul", "c/mul#0", {0}, {2});
  p.look("c/silu#0", 2);
  EXPECT_EQ(p.operands(), (Lines{"a/exp#0: -", "b/reshape#0: a/exp#0", "b/exp#0:", "c/silu#0:"}));
}

LookedAt value(std::string name, std::size_t place, std::vector<LookedAt::Operand> operands,
               Phase phase = Phase::Forward) {
  LookedAt v{std::move(name), {DType::BF16, Shape{2, 3}}, place * kNumbers, phase};
  v.order = place;
  v.operands = std::move(operands);
  return v;
}

// The norms of a list; null where it has no record.
Json norms(const Json& list) {
  Json all = Json::array();
  for (const Json& r : list) all.push_back(r.is_null() ? Json() : r["Norm"]);
  return all;
}

std::vector<LookedAt> pass() {
  const Phase back = Phase::Backward;
  return {value("m/linear#0", 1, {{""}, {"gone"}}),
          value("m/layer_norm#0", 2, {{"m/linear#0"}, {""}, {""}}),
          value("m/layer_norm#0.1", 3, {{"m/linear#0"}, {""}, {""}}),
          value("m/mul#0", 4, {{"m/layer_norm#0"}, {""}, {"m/linear#0"}}),
          value("m/mul.backward#0", 5, {{""}, {"m/linear#0"}}, back),
          value("m/reshape.backward#0", 6, {{"m/layer_norm#0"}}, back),  // no gradient
          value("m/matmul.backward#0", 7,
                {{"m/reshape.backward#0", true}, {"m/sum.backward#0", true}, {"", true}}, back),
          value("m/sum.backward#0", 0, {{""}}, back)};  // of what nobody looks at
}

TEST(Operands, StandInTheirPlaces) {
  const Dump dump(pass(), {}, "op");
  const Json data = dump.numbers(step_statistics(8))["data"];
  EXPECT_EQ(norms(data["Torch.linear.0.forward"]["input_args"]), Json::parse("[null, null]"));
  EXPECT_EQ(norms(data["Torch.layer_norm.0.forward"]["input_args"]),
            Json::parse("[1, null, null]"));
  EXPECT_EQ(norms(data["Torch.mul.0.forward"]["input_args"]), Json::parse("[2, null, 1]"));
  EXPECT_EQ(data["Torch.mul.0.forward"]["input_args"][0],
            data["Torch.layer_norm.0.forward"]["output"][0]);
  EXPECT_EQ(dump.taken()[5].data_name(), "Torch.mul.0.forward.input.0");
  // What a call gives is what it was.
  EXPECT_EQ(norms(data["Torch.layer_norm.0.forward"]["output"]), Json::parse("[2, 3]"));
}

// msprobe has gradients there, and nothing else.
TEST(Operands, OfTheBackwardPassAreGradients) {
  const Json data = Dump(pass(), {}, "op").numbers(step_statistics(8))["data"];
  EXPECT_EQ(norms(data["Torch.mul.0.backward"]["input"]), Json::array());
  EXPECT_EQ(norms(data["Torch.reshape.0.backward"]["input"]), Json::array());
  EXPECT_EQ(norms(data["Torch.matmul.0.backward"]["input"]), Json::parse("[0, null]"));
  EXPECT_EQ(data["Torch.matmul.0.backward"]["input"][0]["requires_grad"], false);
}

TEST(Operands, AreWrittenWhereTheyAreMeant) {
  Dump dump(pass(), {}, "op");
  std::vector<bool> taken(dump.taken().size(), false);
  taken[7] = true;  // the last of mul
  dump.keep(std::vector<bool>(8, false), taken);
  EXPECT_EQ(dump.entries(), std::vector<std::string>{"Torch.mul.0.forward"});
  const Json entry = dump.numbers(step_statistics(8))["data"]["Torch.mul.0.forward"];
  EXPECT_EQ(norms(entry["input_args"]), Json::parse("[null, null, 1]"));
  EXPECT_EQ(entry["output"], Json::array());
}

}  // namespace
}  // namespace aloft::probe
