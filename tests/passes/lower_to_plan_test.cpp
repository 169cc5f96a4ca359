// Graphs lowered to programs of a Plan that holds together.
#include "passes/lower_to_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace aloft {
namespace {

PassContext every_op_has_a_kernel() {
  PassContext context;
  context.choose = [](const CallSpec& call) {
    KernelChoice choice;
    choice.kernel = "test." + call.op.str();
    choice.is_view = call.op == Name("reshape");
    return choice;
  };
  return context;
}

int buffer_of(const Program& program, std::string_view output) {
  for (const NamedRef& r : program.outputs)
    if (r.name == output) return r.ref.buffer;
  return -1;
}

// The old values of both variables are read last: neither update can be written in place.
TEST(LowerToPlan, SeveralUpdatesAreCopiedAtTheEnd) {
  const Graph graph = parse_graph(R"(graph g {
  %0 = state {name="a", class="buffer"} : f32[3]
  %1 = state {name="b", class="buffer"} : f32[3]
  %2 = exp(%0) : f32[3]
  %3 = exp(%1) : f32[3]
  %4 = mul(%0, %1) : f32[3]
  return r=%4
  update "a"=%2
  update "b"=%3
}
)");
  Lowered lowered = lower_to_plan(graph, every_op_has_a_kernel());
  const auto& all = lowered.program.instructions;
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Instruction& i) { return i.call.op == Name("identity"); }),
            2);
  Plan plan;
  add_program(plan, std::move(lowered.program), lowered.state);
  EXPECT_NO_THROW(verify(plan));
}

// A tap lies where its value does, to the end. Of a variable's or an input's own memory there is a
// copy from before anything is written there, or right behind the update, which is in place as
// without taps.
TEST(LowerToPlan, ATapIsNoReader) {
  const Graph graph = parse_graph(R"(graph g {
  %0 = state {name="a", class="buffer"} : f32[6]
  %1 = input {name="x"} : f32[6]
  %2 = exp(%1) : f32[6]
  %3 = mul(%2, %2) : f32[6]
  %4 = add(%0, %3) : f32[6]
  %5 = reshape(%0) {shape=[2,3]} : f32[2,3]
  return r=%3 tap:e=%2 tap:again=%2 tap:r2=%3 tap:new=%4 tap:old=%0 tap:flat=%5 tap:x=%1
  update "a"=%4
}
)");
  PassContext context = every_op_has_a_kernel();
  context.choose = [choose = context.choose](const CallSpec& call) {
    KernelChoice choice = choose(call);
    if (call.op == Name("mul") || call.op == Name("add")) choice.in_place = {{0, 0}, {1, 0}};
    return choice;
  };
  Lowered lowered = lower_to_plan(graph, context);
  const Program& p = lowered.program;
  std::string ops;
  for (const Instruction& i : p.instructions) ops += i.call.op.str() + " ";
  EXPECT_EQ(ops, "identity identity identity exp mul add identity ");
  EXPECT_EQ(buffer_of(p, "e"), buffer_of(p, "again"));
  EXPECT_EQ(buffer_of(p, "r"), buffer_of(p, "r2"));
  EXPECT_NE(buffer_of(p, "e"), buffer_of(p, "r")) << "the product is written over what is shown";
  EXPECT_EQ(p.buffers.at(static_cast<std::size_t>(p.instructions.at(5).out[0].buffer)).name, "a");
  for (const char* name : {"e", "r", "new", "old", "flat", "x"}) {
    const PlannedBuffer& b = p.buffers.at(static_cast<std::size_t>(buffer_of(p, name)));
    EXPECT_EQ(b.arena, Arena::Activations) << name;
    EXPECT_EQ(b.last, static_cast<int>(p.instructions.size())) << name;
  }
  Plan plan;
  add_program(plan, std::move(lowered.program), lowered.state);
  EXPECT_NO_THROW(verify(plan));
}

// What is returned of a variable's new value, or returned twice, in whatever shape, is not where
// the variable or the other result lies.
TEST(LowerToPlan, ViewsOfWhatIsTakenAreCopied) {
  const Graph graph = parse_graph(R"(graph g {
  %0 = state {name="a", class="buffer"} : f32[2,3]
  %1 = exp(%0) : f32[2,3]
  %2 = reshape(%1) {shape=[6]} : f32[6]
  %3 = reshape(%2) {shape=[3,2]} : f32[3,2]
  %4 = neg(%0) : f32[2,3]
  %5 = reshape(%4) {shape=[6]} : f32[6]
  return new=%2 again=%3 other=%5 same=%4
  update "a"=%1
}
)");
  Lowered lowered = lower_to_plan(graph, every_op_has_a_kernel());
  const Program& p = lowered.program;
  std::set<int> buffers;
  for (const char* name : {"new", "again", "other", "same"}) {
    const int b = buffer_of(p, name);
    EXPECT_EQ(p.buffers.at(static_cast<std::size_t>(b)).arena, Arena::Activations) << name;
    buffers.insert(b);
  }
  EXPECT_EQ(buffers.size(), 4u);
  Plan plan;
  add_program(plan, std::move(lowered.program), lowered.state);
  EXPECT_NO_THROW(verify(plan));
}

}  // namespace
}  // namespace aloft
