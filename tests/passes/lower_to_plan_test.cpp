// Graphs lowered to programs of a Plan that holds together.
#include "passes/lower_to_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace aloft {
namespace {

PassContext every_op_has_a_kernel() {
  PassContext context;
  context.choose = [](const CallSpec& call) {
    KernelChoice choice;
    choice.kernel = "test." + call.op.str();
    return choice;
  };
  return context;
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

}  // namespace
}  // namespace aloft
