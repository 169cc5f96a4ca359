// The Plan's two text forms.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace aloft {
namespace {

using nlohmann::json;

// y = softmax(x + w), with scratch, an output and a symbol.
Plan small_plan() {
  const TensorType row{DType::BF16, {Dim::symbolic("B", 8), 16}};
  const TensorType weight{DType::F32, {Dim(1), Dim(16)}};
  Program p;
  p.name = "train";
  p.symbols = {"B"};
  p.bounds = {8};
  const auto buffer = [&](std::string name, Arena arena, std::size_t bytes, std::size_t offset,
                          int first, int last) {
    p.buffers.push_back({std::move(name), arena, bytes, {.offset = offset}, first, last});
  };
  buffer("input:x", Arena::Staging, 256, 0, 0, 2);
  buffer("w", Arena::Parameters, 64, 0, 0, 2);
  buffer("h/add#0", Arena::Activations, 256, 64, 0, 1);
  buffer("h/softmax#0", Arena::Activations, 256, 320, 1, 2);
  buffer("scratch", Arena::Activations, 40, 0, 1, 1);
  Instruction add;
  add.call = {"add", {}, {row, weight}, {row}, 2};
  add.kernel = "cpu.add";
  add.in = {{0, row}, {1, weight}};
  add.out = {{2, row}};
  add.identity = "h/add#0";
  add.path = "h";
  add.file = "model.cpp";
  add.line = 12;
  Instruction softmax = add;
  softmax.call = {
      "softmax", parse_attrs("{axis=-1, scale=0.1, mode=\"a \\\"b\"}"), {row}, {row}, 2};
  softmax.kernel = "cpu.softmax";
  softmax.refusals = {"cpu.fast_softmax: rows < 1024"};
  softmax.in = {{2, row}};
  softmax.out = {{3, row}};
  softmax.scratch = 4;
  softmax.identity = "h/softmax#0";
  softmax.phase = Phase::Backward;
  p.instructions = {add, softmax};
  p.inputs = {{"x", {0, row}, false}};
  p.outputs = {{"y", {3, row}, true}};
  p.activation_lower_bound = 576;
  Plan plan;
  plan.backend = "cpu";
  plan.threads = 2;
  plan.choices = {{"tile", "8x16"}};
  StateSlot w;
  w.id = w.name = "w";
  w.type = weight;
  w.is_norm = true;
  add_program(plan, p, {w});
  verify(plan);
  return plan;
}

TEST(PlanJson, RoundTrip) {
  const Plan plan = small_plan();
  const std::string text = to_json(plan);
  const Plan again = plan_from_json(text);
  EXPECT_EQ(to_json(again), text);
  EXPECT_EQ(again.signature(), plan.signature());
  EXPECT_EQ(again.peak_bytes(), plan.peak_bytes());
  EXPECT_EQ(print(again), print(plan));
  const Instruction& i = again.programs[0].instructions[1];
  EXPECT_EQ(i.call.attrs, plan.programs[0].instructions[1].call.attrs);
  EXPECT_EQ(i.call.in, plan.programs[0].instructions[1].call.in);
  EXPECT_EQ(i.phase, Phase::Backward);
  EXPECT_TRUE(again.programs[0].outputs[0].is_tap);
  EXPECT_TRUE(again.state[0].is_norm);
}

void expect_refused(const json& j);

// What a call asks for and what its kernel does are two fields; nobody computes what was not asked.
TEST(PlanJson, TheFormOfProductsIsAField) {
  Plan plan = small_plan();
  const std::string plain = plan.signature();
  Instruction& i = plan.programs[0].instructions[0];
  i.call.form = i.form = ProductForm::Bf16x6;
  const std::string text = to_json(plan);
  const Plan again = plan_from_json(text);
  EXPECT_EQ(to_json(again), text);
  EXPECT_EQ(again.programs[0].instructions[0].call.form, ProductForm::Bf16x6);
  EXPECT_EQ(again.programs[0].instructions[0].form, ProductForm::Bf16x6);
  EXPECT_EQ(again.programs[0].instructions[1].form, ProductForm::Plain);
  EXPECT_EQ(again.signature(), plan.signature());
  EXPECT_NE(plan.signature(), plain);
  EXPECT_NE(print(plan).find("cpu.add as bf16x6"), std::string::npos);
  i.form = ProductForm::Plain;  // what a machine without such units does
  EXPECT_NE(again.signature(), plan.signature());
  verify(plan);
  i.form = ProductForm::Bf16x3;
  EXPECT_THROW(verify(plan), InternalError);
  json other = json::parse(text);
  other["programs"][0]["instructions"][0]["form"] = "int7";
  expect_refused(other);
}

// Two models with a "w" each: two slots, told apart by their ids, and by nothing else.
TEST(PlanJson, VariablesOfOneNameKeepTheirIds) {
  Plan plan = small_plan();
  Program p = plan.programs[0];
  p.name = "other";
  StateSlot w = plan.state[0];
  for (PlannedBuffer& b : p.buffers)
    if (b.name == "w") b.name = "w#2";
  w.id = "w#2";
  add_program(plan, p, {w});
  ASSERT_EQ(plan.state.size(), 2u);
  EXPECT_NE(plan.state[0].parts[0].offset, plan.state[1].parts[0].offset);
  const std::string text = to_json(plan);
  const Plan again = plan_from_json(text);
  EXPECT_EQ(to_json(again), text);
  EXPECT_EQ(again.state[1].id.str(), "w#2");
  EXPECT_EQ(again.state[1].name.str(), "w");
  json twice = json::parse(text);
  twice["state"][1].erase("id");
  expect_refused(twice);
}

TEST(PlanJson, AFusedCallCarriesItsProgramAndItsMembers) {
  json good = json::parse(to_json(small_plan()));
  json& call = good["programs"][0]["instructions"][1];
  std::string steps;
  const std::size_t inputs = call["in"].size();
  std::string out;
  for (std::size_t i = 0; i < call["out"].size(); ++i) {
    const std::string number = "%" + std::to_string(inputs + i);
    steps += number + " = neg(%0) : f32; ";
    out += (i ? ", " : "") + number;
  }
  call["op"] = "fused";
  const auto attrs = [](const std::string& program) {
    Attrs a;
    a.set("program", program);
    return a.str();
  };
  call["attrs"] = attrs(steps + "return " + out);
  call["members"] = {"a/neg#0", "b/neg#0"};
  const Plan plan = plan_from_json(good.dump());
  EXPECT_EQ(plan.programs[0].instructions[1].members,
            (std::vector<std::string>{"a/neg#0", "b/neg#0"}));
  EXPECT_EQ(json::parse(to_json(plan)), good);
  for (const std::string& wrong :
       {attrs(""), attrs("return %0"), attrs(steps + "return " + out + ", " + out), attrs(steps),
        std::string("{program=3}"), std::string("")}) {
    call["attrs"] = wrong;
    expect_refused(good);
  }
}

void expect_refused(const json& j) {
  try {
    plan_from_json(j.dump());
    FAIL() << "accepted: " << j.dump().substr(0, 2000);
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0640");
  }
}

TEST(PlanJson, EveryNumberIsChecked) {
  const json good = json::parse(to_json(small_plan()));
  const auto with = [&](const char* pointer, const json& value) {
    json j = good;
    const json::json_pointer at(pointer);
    EXPECT_TRUE(j.contains(at)) << pointer;
    j[at] = value;
    return j;
  };
  const char* instruction = "/programs/0/instructions/1";
  for (const json& bad : {json(99), json(-1), json(1e18), json("0"), json(nullptr)})
    expect_refused(with((std::string(instruction) + "/in/0/0").c_str(), bad));
  expect_refused(with((std::string(instruction) + "/in/0/1").c_str(), "f32[1000000]"));
  expect_refused(with((std::string(instruction) + "/in/0/1").c_str(), "f32[-4]"));
  expect_refused(
      with((std::string(instruction) + "/in/0/1").c_str(), "f32[9999999999,9999999999]"));
  // 2^61 elements of 8 bytes: 0 bytes, where the product wraps.
  expect_refused(with((std::string(instruction) + "/in/0/1").c_str(), "f64[2305843009213693952]"));
  expect_refused(with((std::string(instruction) + "/scratch").c_str(), 5));
  expect_refused(with((std::string(instruction) + "/phase").c_str(), "sideways"));
  expect_refused(with((std::string(instruction) + "/attrs").c_str(), "{axis="));
  expect_refused(with("/programs/0/buffers/2/offset", 1 << 20));
  expect_refused(with("/programs/0/buffers/2/offset", 18446744073709551615ull));
  expect_refused(with("/programs/0/buffers/2/bytes", 18446744073709551615ull));
  expect_refused(with("/programs/0/buffers/2/offset", 320));  // lies on the softmax's result
  expect_refused(with("/programs/0/buffers/2/last", 3));
  expect_refused(with("/programs/0/buffers/2/first", -1));
  expect_refused(with("/programs/0/buffers/2/arena", "cellar"));
  expect_refused(with("/programs/0/bounds", json::array()));
  expect_refused(with("/programs/0/bounds", {1e67}));
  expect_refused(with("/programs/0/bounds", {-1}));
  expect_refused(with("/programs/0/outputs/0/ref/0", 5));
  expect_refused(with("/state/0/offset", 64));
  expect_refused(with("/state/0/type", "f32[1000,1000]"));
  expect_refused(with("/threads", 0));
  expect_refused(with("/aloft_plan", 3));
  expect_refused(json::array());
}

TEST(PlanJson, APathOfAnyBytesIsWritten) {
  Plan plan = small_plan();
  plan.programs[0].instructions[0].file = "caf\xe9.cpp";
  const Plan again = plan_from_json(to_json(plan));
  EXPECT_EQ(again.programs[0].instructions[0].file, "caf\xef\xbf\xbd.cpp");
  EXPECT_EQ(again.signature(), plan.signature());
}

TEST(PlanJson, DeepNestingIsRefused) {
  const int depth = 1'000'000;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  EXPECT_THROW(plan_from_json("{\"aloft_plan\": " + deep + "}"), DataError);
}

TEST(PlanJson, CutTextIsRefused) {
  const std::string text = to_json(small_plan());
  for (std::size_t n = 0; n + 2 < text.size(); n += 7)
    EXPECT_THROW(plan_from_json(text.substr(0, n)), DataError) << n;
}

TEST(PlanPrint, NamesThePeakAndItsTensors) {
  const std::string text = print(small_plan());
  for (const char* part : {"program train: 2 instructions", "h/softmax#0", "most activations at",
                           "B<=8", "cpu.softmax", "scratch %4", "tap y"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace aloft
