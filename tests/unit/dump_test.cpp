// What a program takes statistics of, and how msprobe calls it: src/observe/probe.
#include "observe/probe/dump.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "observe/probe/dump_text.h"
#include "observe/probe/looked_at.h"
#include "unit/step_statistics.h"

namespace aloft::probe {
namespace {

constexpr std::size_t kNumbers = TensorStatistics::kNumbers;

LookedAt value(std::string name, std::size_t place, DType type = DType::BF16,
               Phase phase = Phase::Forward) {
  return {std::move(name), {type, Shape{2, 3}}, place * kNumbers, phase, "model.cpp", 7};
}

TEST(Probe, AShapeHasTheRowsOfTheRun) {
  const LookedAt v{"x", {DType::F32, Shape{Dim::symbolic("B", 4), 3}}};
  EXPECT_EQ(shape_of(v, {.elements = 6}), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(shape_of(v, {.elements = 12}), (std::vector<std::int64_t>{4, 3}));
  const LookedAt flat{"x", {DType::F32, Shape{Dim::symbolic("B", 4)}}};
  EXPECT_EQ(shape_of(flat, {.elements = 3}), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(shape_of({"x", {DType::F32, Shape{}}}, {.elements = 1}), std::vector<std::int64_t>());
}

// Lines of Aloft's own source, which calls the models of recipes, say nothing of a program.
TEST(Probe, LinesAreThoseOfTheProgram) {
  std::string own = __FILE__;
  const std::string_view test = "tests/unit/dump_test.cpp";
  own.replace(own.rfind(test), test.size(), "src/tasks/language_model.cpp");
  LookedAt library = value("call:a#0.output", 0), user = value("call:b#0.output", 1);
  library.file = own;
  const auto stack = Dump({library, user}, {{"a", "A"}, {"b", "B"}}, "module").stack();
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(stack["0"][0][0], "Module.b.B.forward.0");
  EXPECT_NE(stack["0"][1][0].get<std::string>().find("File model.cpp, line 7"), std::string::npos);
}

// A module stands behind the ops in it, whatever is asked for first, and before what follows; the
// further results of an op do not put it off.
TEST(Probe, EntriesOfAMixLieInTheOrderOfExecution) {
  std::vector<LookedAt> values = {
      value("call:m.fc#0.output", 0),
      value("call:m#0.output", 1),
      value("call:n#0.output", 2),
      value("parameter:n.weight", 3),
      value("m.fc/linear#0", 4),
      value("n/layer_norm#0", 5),
      value("n/layer_norm#0.1", 6),
      value("call:n#0.output.gradient", 7),
      value("call:n#0.input.gradient", 8),
      value("n/layer_norm_grad.backward#0", 9, DType::F32, Phase::Backward)};
  const std::size_t orders[] = {10, 10, 20, 99, 10, 20, 25, 30, 40, 40};
  for (std::size_t i = 0; i < values.size(); ++i) values[i].order = orders[i];
  const Dump dump(values, {{"m", "M"}, {"m.fc", "Linear"}, {"n", "Norm"}}, "mix");
  const std::vector<std::string> want = {
      "Torch.linear.0.forward",  "Module.m.fc.Linear.forward.0",
      "Module.m.M.forward.0",    "Torch.layer_norm.0.forward",
      "Module.n.Norm.forward.0", "Torch.layer_norm_grad.0.backward",
      "Module.n.Norm.backward.0"};
  EXPECT_EQ(dump.entries(), want);
}

TEST(Probe, CallsOfModulesAreNamedAsMsprobeDoes) {
  const Dump dump(
      {value("call:m.fc#0.input", 0), value("call:m.fc#0.output", 1), value("call:m.fc#1.input", 1),
       value("call:m.fc#1.output", 2), value("call:m#0.output", 3),
       value("parameter:m.fc.weight", 4), value("parameter:m.fc.bias", 5),
       value("call:m.fc#1.output.gradient", 6), value("call:m.fc#1.input.gradient", 7),
       value("parameter:m.fc.weight.gradient", 8, DType::F32),
       value("parameter:m.fc.weight.update", 9, DType::F32)},
      {{"m", ""}, {"m.fc", "Linear"}}, "module");
  const auto json = dump.numbers(step_statistics(10));
  EXPECT_EQ(json["level"], "L0");
  EXPECT_EQ(json["framework"], "pytorch");
  const auto& data = json["data"];
  std::vector<std::string> entries;
  for (const auto& [name, entry] : data.items()) entries.push_back(name);
  EXPECT_EQ(entries,
            (std::vector<std::string>{
                "Module.m.fc.Linear.forward.0", "Module.m.fc.Linear.forward.1",
                "Module.m.Module.forward.0", "Module.m.fc.Linear.backward.1",
                "Module.m.fc.Linear.parameters_grad.0", "Module.m.fc.Linear.parameters_update.0"}));
  const auto& first = data["Module.m.fc.Linear.forward.0"];
  EXPECT_EQ(first["input_args"][0]["Norm"], 0);
  EXPECT_EQ(first["output"][0]["dtype"], "torch.bfloat16");
  EXPECT_EQ(first["parameters"]["weight"]["requires_grad"], true);
  EXPECT_EQ(first["parameters"]["bias"]["requires_grad"], false);  // nobody takes its gradient
  EXPECT_EQ(data["Module.m.fc.Linear.forward.1"]["input_args"][0]["Norm"], 1);
  // What flows into the backward pass of a call is the gradient of what it gave.
  EXPECT_EQ(data["Module.m.fc.Linear.backward.1"]["input"][0]["Norm"], 6);
  EXPECT_EQ(data["Module.m.fc.Linear.backward.1"]["output"][0]["Norm"], 7);
  EXPECT_EQ(data["Module.m.fc.Linear.parameters_grad.0"]["weight"][0]["dtype"], "torch.float32");
  EXPECT_EQ(data["Module.m.fc.Linear.parameters_update.0"]["weight"][0]["Norm"], 9);

  const auto construct = dump.construct();
  EXPECT_EQ(construct["Module.m.fc.Linear.forward.0"], "Module.m.Module.forward.0");
  EXPECT_EQ(construct["Module.m.fc.Linear.forward.1"], "Module.m.Module.forward.0");
  EXPECT_TRUE(construct["Module.m.Module.forward.0"].is_null());
  const auto stack = dump.stack();
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack["0"][1][0], "File model.cpp, line 7, in m.fc, \n ");
}

// As msprobe names the model itself, which has no path.
TEST(Probe, AModelWithoutAPathHasNoEmptyPartInItsName) {
  for (const std::string kind : {"", "Net"}) {
    const Dump dump(
        {value("call:#0.input", 0), value("call:#0.output", 1), value("call:#0.output.gradient", 2),
         value("parameter:scale", 3), value("parameter:scale.update", 4, DType::F32)},
        {{"", kind}}, "module");
    const std::string own = "Module." + (kind.empty() ? "Module" : kind);
    EXPECT_EQ(dump.entries(), (std::vector<std::string>{own + ".forward.0", own + ".backward.0",
                                                        own + ".parameters_update.0"}));
    EXPECT_TRUE(dump.construct()[own + ".forward.0"].is_null());
  }
}

// What the model is given has no gradient, and is known by that of what its call gives.
TEST(Probe, WhatComesFromOutsideRequiresNoGradient) {
  const Dump dump(
      {value("call:#0.input", 0), value("call:fc#0.input", 0), value("call:fc#0.output", 1),
       value("call:act#0.input", 1), value("call:act#0.output", 2), value("call:head#0.input", 3),
       value("call:head#0.output", 4), value("call:ids#0.input", 5, DType::I32),
       value("call:act#0.output.gradient", 6), value("call:fc#0.output.gradient", 7)},
      {{"", "Net"}, {"fc", "Linear"}, {"act", "GELU"}, {"head", "Linear"}, {"ids", "Table"}},
      "module");
  const auto data = dump.numbers(step_statistics(8))["data"];
  const auto taken = [&](const char* entry) {
    return data[std::string("Module.") + entry + ".forward.0"]["input_args"][0]["requires_grad"];
  };
  EXPECT_EQ(taken("fc.Linear"), false);
  EXPECT_EQ(taken("Net"), false);         // the same value
  EXPECT_EQ(taken("act.GELU"), true);     // a call gives it
  EXPECT_EQ(taken("head.Linear"), true);  // its backward pass is not seen
  EXPECT_EQ(taken("ids.Table"), false);
  EXPECT_EQ(data["Module.fc.Linear.forward.0"]["output"][0]["requires_grad"], true);
}

TEST(Probe, ResultsOfOpsAreNamedByTheirCalls) {
  const Dump dump(
      {value("h.0/linear#0", 0), value("h.0/layer_norm#0", 1), value("h.0/layer_norm#0.1", 2),
       value("h.1/linear#0", 3), value("h.1/linear.backward#0", 4, DType::F32, Phase::Backward)},
      {}, "op");
  const auto json = dump.numbers(step_statistics(5));
  EXPECT_EQ(json["level"], "L1");
  EXPECT_EQ(json["data"]["Torch.layer_norm.0.forward"]["output"].size(), 2u);
  EXPECT_EQ(json["data"]["Torch.linear.1.forward"]["output"][0]["Norm"], 3);
  EXPECT_EQ(json["data"]["Torch.linear.0.backward"]["output"][0]["Norm"], 4);
  EXPECT_TRUE(dump.construct().empty());
  // By which number a call goes at its place, whatever else the program has.
  EXPECT_EQ(json["taps"], nlohmann::ordered_json::parse(R"({
    "Torch.linear.0.forward": ["h.0/linear#0"],
    "Torch.layer_norm.0.forward": ["h.0/layer_norm#0", "h.0/layer_norm#0.1"],
    "Torch.linear.1.forward": ["h.1/linear#0"],
    "Torch.linear.0.backward": ["h.1/linear.backward#0"]})"));
  EXPECT_EQ(dump.structure()["taps"], json["taps"]);
}

TEST(Probe, WhatJsonHasNoNumberForIsText) {
  const Dump dump({value("h/exp#0", 0)}, {}, "op");
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = INFINITY;
  std::vector<double> all(kNumbers);
  const auto record = [&](const TensorStatistics& s) {
    s.put(all.data());
    return dump.numbers(all)["data"]["Torch.exp.0.forward"]["output"][0];
  };
  const auto bad = record({.max = nan,
                           .min = -inf,
                           .mean = nan,
                           .norm = inf,
                           .elements = 6,
                           .nan = 1,
                           .negative_inf = 2});
  EXPECT_EQ(bad["Max"], "nan");
  EXPECT_EQ(bad["Min"], "-inf");
  EXPECT_EQ(bad["Norm"], "inf");
  EXPECT_EQ(bad["nan"], 1);
  EXPECT_EQ(bad["-inf"], 2);
  const auto empty = record({.max = nan, .min = nan, .mean = nan, .norm = 0, .elements = 0});
  for (const char* key : {"Max", "Min", "Mean", "Norm"}) EXPECT_TRUE(empty[key].is_null()) << key;
}

// A record of every kind: of modules, their parameters and gradients, ops and what they take,
// exponents, no elements, no axes, rows of the run, numbers that JSON has none for.
std::vector<LookedAt> values_of_every_kind() {
  std::vector<LookedAt> all = {value("call:m#0.input", 0),
                               value("call:m \"x\"#0.output", 1),
                               value("call:m#0.input.gradient", 2),
                               value("parameter:m.weight", 3),
                               value("parameter:m.weight.gradient", 4, DType::F32),
                               value("parameter:m.weight.update", 5, DType::F32),
                               value("m/linear#0", 6, DType::F16),
                               value("m/layer_norm#0", 7, DType::F64),
                               value("m/layer_norm#0.1", 8),
                               value("m/mul.backward#0", 9, DType::F32, Phase::Backward),
                               value("m/sum.backward#0", 10, DType::F32, Phase::Backward),
                               value("m/\xff#0", 11)};  // no UTF-8
  all[1].type.shape = Shape{};
  all[6].type.shape = Shape{Dim::symbolic("B", 4), 3};
  all[7].operands = {{"m/linear#0"}, {""}, {"gone"}};
  all[10].operands = {{"m/mul.backward#0", true}, {"", true}};
  for (std::size_t i = 0; i < all.size(); ++i) all[i].order = i;
  return all;
}

std::vector<double> numbers_of_every_kind(std::vector<LookedAt>& values) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = INFINITY;
  const double odd[] = {0.1, -0.0, 1e-5, 123456789.123, 5e-324, 1.7976931348623157e308,
                        3,   1e15, 1e16, -2.5e-7,       1. / 3, 4096};
  std::vector<double> all;
  for (std::size_t i = 0; i < values.size(); ++i) {
    TensorStatistics s{.max = odd[i % 12],
                       .min = i == 2 ? -inf : odd[(i + 1) % 12],
                       .mean = i == 3 ? nan : odd[(i + 2) % 12],
                       .norm = i == 4 ? inf : odd[(i + 3) % 12],
                       .elements = i == 5 ? 0.0 : 6.0,
                       .nan = 9007199254740992.0,
                       .zeros = static_cast<double>(i)};
    values[i].at = all.size();
    values[i].has_exponents = i % 4 == 0;
    all.resize(all.size() + kNumbers);
    s.put(all.data() + values[i].at);
    if (!values[i].has_exponents) continue;
    const std::size_t counts = all.size();
    all.resize(counts + kExponents);
    if (i > 0) all[counts] = 2, all[counts + 127] = 1, all[counts + kExponents - 1] = 3;
  }
  return all;
}

std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// What a file has where JSON has no number: Python's words, as msprobe has them.
std::string with_bare_words(std::string text) {
  for (const auto& [word, bare] : {std::pair(": \"nan\"", ": NaN"),
                                   {": \"inf\"", ": Infinity"},
                                   {": \"-inf\"", ": -Infinity"}})
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;)
      text.replace(at, std::string_view(word).size(), bare);
  return text;
}

TEST(DumpText, IsThatOfTheJson) {
  std::vector<LookedAt> values = values_of_every_kind();
  const std::vector<double> all = numbers_of_every_kind(values);
  for (const char* level : {"module", "op", "mix"})
    for (const bool is_selected : {false, true}) {
      const auto dump =
          std::make_shared<Dump>(values, std::vector<DumpedModule>{{"m", "Linear"}}, level);
      std::vector<bool> some(values.size(), !is_selected),
          taken(dump->taken().size(), !is_selected);
      some[3] = some[7] = true;
      if (!taken.empty()) taken[0] = true;
      dump->keep(some, taken);
      const std::string text = DumpText(dump).of(all);
      EXPECT_EQ(text, with_bare_words(text_of(dump->numbers(all)))) << level << is_selected;
      for (const char* part : {": NaN", ": -Infinity", "null", "\"exponents\": {}", "[]", "-0.0"})
        EXPECT_TRUE(is_selected || text.find(part) != std::string::npos) << part;
    }
}

TEST(DumpText, HasWhatAStepAdds) {
  std::vector<LookedAt> values = values_of_every_kind();
  const std::vector<double> all = numbers_of_every_kind(values);
  const auto dump = std::make_shared<Dump>(values, std::vector<DumpedModule>{}, "op");
  std::vector<nlohmann::ordered_json> added(dump->records());
  added[6] = {{"data_name", "Torch.linear.0.forward.output.0.pt"}};
  added[7] = {{"md5", "12ab"}};
  // The operand of the norm, which is the product's result, has a record of its own.
  const std::size_t operand = values.size();
  ASSERT_EQ(dump->taken()[0].entry, "Torch.layer_norm.0.forward");
  ASSERT_EQ(dump->value_of_record(operand), 6u);
  added[operand] = {{"data_name", dump->taken()[0].data_name() + ".pt"}};
  const nlohmann::ordered_json training = {
      {"loss", 0.1}, {"rates", {1e-3, nullptr}}, {"of", {{"x", {}}}}};
  nlohmann::ordered_json want = dump->numbers(all);
  want["task"] = "tensor";
  want["dump_data_dir"] = "/a \"b\"/c";
  auto& data = want["data"];
  data["Torch.linear.0.forward"]["output"][0].update(added[6]);
  data["Torch.layer_norm.0.forward"]["output"][0].update(added[7]);
  data["Torch.layer_norm.0.forward"]["input_args"][0].update(added[operand]);
  want["training"] = training;
  EXPECT_EQ(DumpText(dump).of(all, {"/a \"b\"/c", added, training}),
            with_bare_words(text_of(want)));
}

}  // namespace
}  // namespace aloft::probe
