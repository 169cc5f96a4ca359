// What verify() refuses, and what stays when implied waits go.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "plan/happens_before.h"
#include "plan/plan.h"

namespace aloft {
namespace {

constexpr int kBytes = 64;
const TensorType kRow{DType::F32, {16}};

Instruction instruction(const char* identity, std::vector<int> in, std::vector<int> out) {
  Instruction i;
  i.call = {"add", {}, {}, {}, 1};
  i.kernel = "cpu.add";
  for (const int b : in) i.in.push_back({b, kRow});
  for (const int b : out) i.out.push_back({b, kRow});
  i.identity = identity;
  return i;
}

// y = v + (w + x + z), two inputs, two variables, scratch.
Plan sum_plan() {
  Program p;
  p.name = "sum";
  const auto buffer = [&](std::string name, Arena arena) {
    p.buffers.push_back({.name = std::move(name), .arena = arena, .bytes = kBytes});
  };
  buffer("input:x", Arena::Staging);
  buffer("input:z", Arena::Staging);
  buffer("w", Arena::Parameters);
  buffer("v", Arena::Parameters);
  buffer("a", Arena::Activations);
  buffer("b", Arena::Activations);
  buffer("y", Arena::Activations);
  buffer("scratch", Arena::Activations);
  p.instructions = {instruction("a", {2, 0}, {4}), instruction("b", {4, 1}, {5}),
                    instruction("y", {5, 3}, {6})};
  p.instructions[1].scratch = 7;
  p.inputs = {{"x", {0, kRow}, false}, {"z", {1, kRow}, false}};
  p.outputs = {{"y", {6, kRow}, false}};
  place_activations(p);
  StateSlot w, v;
  w.id = w.name = "w";
  v.id = v.name = "v";
  w.type = v.type = kRow;
  Plan plan;
  plan.backend = "cpu";
  add_program(plan, std::move(p), {w, v});
  return plan;
}

std::string refusal(const std::function<void(Plan&, Program&)>& change) {
  Plan plan = sum_plan();
  change(plan, plan.programs[0]);
  try {
    verify(plan);
  } catch (const InternalError& e) {
    EXPECT_THROW(plan_from_json(to_json(plan)), DataError);
    return e.what();
  }
  return "none";
}

void expect_refused(const char* why, const std::function<void(Plan&, Program&)>& change) {
  EXPECT_NE(refusal(change).find(why), std::string::npos) << why << ": " << refusal(change);
}

TEST(Verify, TakesAWholePlan) {
  EXPECT_EQ(refusal([](Plan&, Program&) {}), "none");
}

TEST(Verify, RefusesOutputsThatAreGoneOrWereNeverThere) {
  expect_refused("does not live to the end", [](Plan&, Program& p) { p.buffers[6].last = 2; });
  expect_refused("nothing writes the output", [](Plan&, Program& p) {
    p.buffers.push_back(p.buffers[7]);
    p.buffers.back().first = p.buffers.back().last = 3;
    p.outputs[0].ref.buffer = 8;
  });
}

TEST(Verify, RefusesMemoryOfTwoOwners) {
  expect_refused("'input:x' and 'input:z' lie over each other", [](Plan&, Program& p) {
    p.buffers[1].placement.offset = p.buffers[0].placement.offset;
  });
  expect_refused("variables 'w' and 'v' lie over each other", [](Plan& plan, Program& p) {
    plan.state[1].parts[0].offset = plan.state[0].parts[0].offset;
    p.buffers[3].placement.offset = plan.state[0].parts[0].offset;
  });
  expect_refused("lies elsewhere than the variable", [](Plan&, Program& p) {
    p.buffers[3].placement.offset = p.buffers[2].placement.offset;
  });
  expect_refused("its scratch is an operand or a result",
                 [](Plan&, Program& p) { p.instructions[1].scratch = 4; });
  expect_refused("its scratch is an operand or a result",
                 [](Plan&, Program& p) { p.instructions[1].scratch = 5; });
  expect_refused("two results share a buffer", [](Plan&, Program& p) {
    p.instructions[1].out.push_back(p.instructions[1].out[0]);
  });
}

TEST(Verify, RefusesLengthsThatAreNotThePrograms) {
  const TensorType rows = parse_tensor_type("f32[B<=8,2]");
  const auto of_length = [&](Program& p) {
    p.instructions[0].call.in = {rows, kRow};
    p.instructions[0].in[0].type = rows;
    p.symbols = {"B"};
    p.bounds = {8};
  };
  EXPECT_EQ(refusal([&](Plan&, Program& p) { of_length(p); }), "none");
  for (const auto& change : std::initializer_list<std::function<void(Program&)>>{
           [](Program& p) { p.symbols[0] = "A"; }, [](Program& p) { p.bounds[0] = 7; },
           [](Program& p) { p.symbols.clear(), p.bounds.clear(); }})
    EXPECT_NE(refusal([&](Plan&, Program& p) {
                of_length(p), change(p);
              }).find("a length that is none of the program's: f32[B<=8,2]"),
              std::string::npos);
  EXPECT_NE(refusal([&](Plan&, Program& p) {
              of_length(p);
              p.symbols.emplace_back("B");
              p.bounds.push_back(8);
            }).find("two lengths are named B"),
            std::string::npos);
}

TEST(Verify, RefusesKernelsOnMemoryThatIsNotAtHand) {
  const auto move = [](Plan& plan, Program& p, const Placement& where) {
    Placement& slot = plan.state[1].parts[0];
    slot.space = where.space;
    p.buffers[3].placement = slot;
    plan.arena_bytes[ArenaAt(Arena::Parameters, slot)] = 2 * kBytes;
  };
  expect_refused("which lies in parameters@host",
                 [&](Plan& plan, Program& p) { move(plan, p, {.space = Space::Host}); });
}

// Chains of kernels and copies as insert_copies makes them, drawn at random.
Program streams(unsigned seed) {
  Program p;
  int events = 0;
  const auto draw = [&](unsigned n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
  };
  std::vector<int> signalled;
  for (int i = 0; i < 24; ++i) {
    Instruction ins = instruction("i", {}, {});
    ins.stream = static_cast<int>(draw(3));
    for (unsigned w = draw(4); w > 0 && !signalled.empty(); --w)
      ins.waits.push_back(signalled[draw(static_cast<unsigned>(signalled.size()))]);
    if (draw(3) > 0) signalled.push_back(ins.signals = events++);
    p.instructions.push_back(std::move(ins));
  }
  return p;
}

TEST(ImpliedWaits, GoAndTheOrderStays) {
  int taken = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const Program before = streams(seed);
    Program after = before;
    drop_implied_waits(after);
    const HappensBefore was(before), is(after);
    const int n = static_cast<int>(before.instructions.size());
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b)
        ASSERT_EQ(was.is_before(a, b), is.is_before(a, b)) << seed << ": " << a << ", " << b;
    for (int i = 0; i < n; ++i) {
      const auto& waits = after.instructions[static_cast<std::size_t>(i)].waits;
      taken += static_cast<int>(before.instructions[static_cast<std::size_t>(i)].waits.size()) -
               static_cast<int>(waits.size());
      for (std::size_t w = 0; w < waits.size(); ++w) {  // each that is left makes a difference
        Program without = after;
        auto& fewer = without.instructions[static_cast<std::size_t>(i)].waits;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(w));
        const HappensBefore looser(without);
        int lost = 0;
        for (int a = 0; a < n; ++a) lost += is.is_before(a, i) && !looser.is_before(a, i);
        EXPECT_GT(lost, 0) << seed << ", " << i;
      }
    }
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace aloft
