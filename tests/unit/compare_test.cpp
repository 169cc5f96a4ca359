// Two dumps compared: names, order, what rounding explains, msprobe's verdicts and their known
// mistakes, which are not repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "observe/compare/dump_pairs.h"
#include "observe/compare/foreign_json.h"
#include "observe/compare/module_tree.h"
#include "observe/compare/noise.h"
#include "observe/compare/results.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class Compare : public ::testing::Test {
 protected:
  DumpFile dump(const std::string& name, const Json& data) {
    const Path file = folder_ / (name + ".json");
    TemporaryFolder::put(file, Json{{"task", "statistics"}, {"data", data}}.dump());
    return read_dump(file);
  }
  static std::vector<Compared> compared(const Pairs& pairs) {
    return compare_all(pairs, [](const RecordPair&) { return nullptr; });
  }
  // The sentence of the first divergence; "" where there is none.
  std::string parted(const Json& npu, const Json& bench) {
    const DumpFile n = dump("npu", npu), b = dump("bench", bench);
    const Pairs pairs = pair_dumps(n, b, {});
    const std::vector<Compared> all = compared(pairs);
    const auto d = first_divergence(all, n);
    return d ? d->sentence : "";
  }
  Table table(const Json& npu, const Json& bench) {
    npu_ = dump("npu", npu), bench_ = dump("bench", bench);
    pairs_ = pair_dumps(npu_, bench_, {});
    return msprobe_table(pairs_, npu_, Mode::Statistics, [](const RecordPair&) { return nullptr; });
  }
  static std::string cell(const Table& t, std::size_t row, const char* column) {
    return t.rows.at(row).at(t.column(column));
  }

  TemporaryFolder folder_;
  DumpFile npu_, bench_;
  Pairs pairs_;
};

TEST_F(Compare, JsonOfPython) {
  const ForeignJson v =
      parse_foreign_json(R"({"b": NaN, "a": [-Infinity, Infinity, "NaN, \" Infinity"]})", "x");
  EXPECT_EQ(v.keys, (std::vector<std::string>{"b", "a"}));  // in the file's order
  EXPECT_EQ(v.text_of("b"), "nan");
  EXPECT_EQ(v.find("a")->items[0].text, "-inf");
  EXPECT_EQ(v.find("a")->items[2].text, "NaN, \" Infinity");
}

TEST_F(Compare, BadJsonIsRefusedWithItsLine) {
  const std::string deep = "{\"a\":" + std::string(100000, '[');
  for (const auto& [text, line] : {std::pair<std::string, const char*>{"{\n\"a\": 1,\n}", "x:3"},
                                   {"", "x:1"},
                                   {deep, "x:1"},
                                   {std::string("{}\n\0", 4), "x:2"}})
    try {
      parse_foreign_json(text, "x");
      ADD_FAILURE() << text.substr(0, 40);
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0650");
      EXPECT_NE(std::string(e.what()).find(line), std::string::npos) << e.what();
    }
}

TEST_F(Compare, NamesOfEntries) {
  const Entry module = parse_entry_name("Module.h.0.ln_1.LayerNorm.forward.2");
  EXPECT_TRUE(module.is_module);
  EXPECT_EQ(module.path, "h.0.ln_1");
  EXPECT_EQ(module.kind, "LayerNorm");
  EXPECT_EQ(module.call, 2);
  const Entry gradient = parse_entry_name("Cell.net.dense.Dense.parameters_grad.0");
  EXPECT_EQ(gradient.direction, Direction::ParametersGrad);
  EXPECT_EQ(gradient.path, "net.dense");
  const Entry function = parse_entry_name("Functional.layer_norm.4.backward");
  EXPECT_FALSE(function.is_module);
  EXPECT_EQ(function.kind, "layer_norm");
  EXPECT_EQ(function.call, 4);
  for (const char* odd : {"", ".", "Module.forward.0", "a.b.c", "Module.x.Y.forward.-1"})
    EXPECT_EQ(parse_entry_name(odd).direction, Direction::Other) << odd;
}

TEST_F(Compare, ModulesArePairedByStructure) {
  const Json weights = {{"weight", tensor({4, 4}, 1)}}, wide = {{"weight", tensor({4, 9}, 1)}};
  const auto call = [&](const Json& w) { return forward(tensor({2, 4}, 1), tensor({2, 4}, 1), w); };
  const DumpFile n = dump("n", {{"Module.h.0.up.Linear.forward.0", call(weights)},
                                {"Module.h.0.mlp.Mlp.forward.0", call(wide)},
                                {"Module.h.0.Block.forward.0", call(Json::object())},
                                {"Module.h.1.up.Linear.forward.0", call(weights)}});
  const DumpFile b = dump("b", {{"Cell.net.h.0.up.Dense.forward.0", call(weights)},
                                {"Cell.net.h.0.feed_forward.Ffn.forward.0", call(wide)},
                                {"Cell.net.h.0.Cell.forward.0", call(Json::object())},
                                {"Cell.net.blocks.1.up.Dense.forward.0", call(weights)}});
  NameMap map;
  map.add("h.1.*", "net.blocks.1.*");
  const auto pairs = pair_modules(*module_tree(n), *module_tree(b), map);
  EXPECT_EQ(pairs.at("h.0.up"), "net.h.0.up");             // by the path, less its beginning
  EXPECT_EQ(pairs.at("h.0.mlp"), "net.h.0.feed_forward");  // by the number of weights
  EXPECT_EQ(pairs.at("h.1.up"), "net.blocks.1.up");        // by the map
}

TEST_F(Compare, MapsOfNames) {
  const NameMap toml =
      NameMap::parse("[modules]\n\"h.*.a.*\" = \"l.*.b.*\"\n", "m", MapFormat::Toml);
  EXPECT_EQ(toml.other_name_of("h.3.a.x.y"), "l.3.b.x.y");
  EXPECT_EQ(toml.other_name_of("h.3.c"), std::nullopt);
  const NameMap json = NameMap::parse(R"({"modules": {"a": "b"}})", "m", MapFormat::Json);
  EXPECT_EQ(json.other_name_of("a"), "b");
  const NameMap yaml = NameMap::parse("modules:\n  h.*.a: l.*.b\n", "m", MapFormat::Yaml);
  EXPECT_EQ(yaml.other_name_of("h.3.a"), "l.3.b");
  for (const char* bad : {"{}", "{\"modules\": {\"a\": 1}}", "{\"modules\": []}", "{\"a\": 1}"})
    for (const MapFormat format : {MapFormat::Json, MapFormat::Yaml})
      EXPECT_THROW(NameMap::parse(bad, "m", format), UserError) << bad;
  for (const char* bad : {"x = 1", "[modules]\na = 1", "= ="})
    EXPECT_THROW(NameMap::parse(bad, "m", MapFormat::Toml), UserError) << bad;
  for (const char* bad : {"", "- a\n- b", "modules: [1", "modules: &a {b: *c}"})
    EXPECT_THROW(NameMap::parse(bad, "m", MapFormat::Yaml), UserError) << bad;
}

// As msprobe's --data_mapping has them: values of other names, and, with those of a module, the
// module.
TEST_F(Compare, MapsOfValues) {
  const NameMap map = NameMap::parse(
      "# API\n"
      "Functional.flash.4.forward.input.0: NPU.fusion_attention.2.forward.input.1\n"
      "# Module\n"
      "Cell.relu.ReLU.parameters_grad.weight: Module.act.Act.parameters_grad.weight\n"
      "Cell.input.Dense.forward.0.input.0: Module.first.Linear.forward.0.input.0\n",
      "m", MapFormat::Yaml);
  ASSERT_EQ(map.values().size(), 3u);
  EXPECT_EQ(map.values()[0].second, "NPU.fusion_attention.2.forward.input.1");
  EXPECT_EQ(map.other_name_of("relu"), "act");
  EXPECT_EQ(map.other_name_of("input"), "first");

  // The function stands under another name, and takes its operands in another order.
  const auto call = [](double a, double b, double out) {
    Json entry = forward(tensor({4, 4}, a), tensor({4, 4}, out));
    entry["input_args"].push_back(tensor({4, 4}, b));
    return entry;
  };
  const Json ours = {{"Functional.flash.4.forward", call(1, 2, 3)}};
  const DumpFile n = dump("n", ours);
  const auto pairs_with = [&](const Json& theirs) {
    bench_ = dump("b", theirs);
    return pair_dumps(n, bench_, map);
  };
  const Pairs right = pairs_with({{"NPU.fusion_attention.2.forward", call(2, 1, 3)}});
  EXPECT_TRUE(right.only_bench.empty());
  const auto all = compared(right);
  EXPECT_EQ(all.size(), 3u);
  EXPECT_FALSE(first_divergence(all, n).has_value());
  const Pairs wrong = pairs_with({{"NPU.fusion_attention.2.forward", call(2, 1, 4)}});
  const auto off = compared(wrong);
  const auto divergence = first_divergence(off, n);
  ASSERT_TRUE(divergence.has_value());
  EXPECT_EQ(divergence->compared->records.npu->part, Part::Output);
  // None of the names in either dump is a mistake in the map.
  EXPECT_THROW(pairs_with({{"NPU.fusion.2.forward", call(2, 1, 3)}}), UserError);
  // One that is no value's among such is a mistake in it.
  EXPECT_THROW(NameMap::parse("Functional.a.0.forward.input.0: Torch.a.0.forward.input.0\n"
                              "Functional.a.0.forward.inputs.1: Torch.a.0.forward.input.1\n",
                              "m", MapFormat::Yaml),
               UserError);
}

// A module without weights is found by its name alone, or by a map.
Json called(const std::string& entry, double norm) {
  return {{entry, forward(tensor({4}, norm), tensor({4}, norm))}};
}
Json both(Json one, const Json& other) {
  one.update(other);
  return one;
}

// As msprobe's --cell_mapping has them: names with classes, or parts of them.
TEST_F(Compare, MapsOfCells) {
  const NameMap map = NameMap::parse("fc2.Dense: fc3.Linear\nOwnNorm: TheirNorm\nno.Cell: no\n",
                                     "m", MapFormat::Yaml);
  const DumpFile n =
      dump("n", both(called("Cell.fc2.Dense.forward.0", 1), called("Cell.a.OwnNorm.forward.0", 2)));
  const DumpFile b = dump("b", both(called("Module.fc3.Linear.forward.0", 1),
                                    called("Module.a.TheirNorm.forward.0", 2)));
  const Pairs pairs = pair_dumps(n, b, map);
  EXPECT_TRUE(pairs.only_bench.empty());
  EXPECT_EQ(without_effect(map, pairs.fits), "\"no.Cell: no\" (not in the first dump)");
}

// As its --layer_mapping has them: by classes, through layers that one run has more.
TEST_F(Compare, MapsOfLayers) {
  const NameMap map = NameMap::parse(
      "TopLayer:\n  module: model\nGPT:\n  language.encoder: decoder\nMlp:\n  up: fc1\n"
      "None:\n  a: b\nGPT2:\n  a: b\n",
      "m", MapFormat::Yaml);
  ASSERT_EQ(map.layers().size(), 5u);
  Json ours = called("Module.module.GPT.forward.0", 1);
  ours.update(called("Module.module.language.encoder.Encoder.forward.0", 2));
  ours.update(called("Module.module.language.encoder.0.mlp.Mlp.forward.0", 3));
  ours.update(called("Module.module.language.encoder.0.mlp.up.Up.forward.0", 4));
  Json theirs = called("Module.model.GPT2.forward.0", 1);
  theirs.update(called("Module.model.decoder.Decoder.forward.0", 2));
  theirs.update(called("Module.model.decoder.0.mlp.Mlp.forward.0", 3));
  theirs.update(called("Module.model.decoder.0.mlp.fc1.Up.forward.0", 4));
  const DumpFile n = dump("n", ours), b = dump("b", theirs);
  const Pairs pairs = pair_dumps(n, b, map);
  EXPECT_TRUE(pairs.only_bench.empty());
  EXPECT_EQ(compared(pairs).size(), 8u);
  EXPECT_EQ(without_effect(map, pairs.fits),
            "\"None: a: b\" (not in the first dump), \"GPT2: a: b\" (not in the first dump)");
  EXPECT_FALSE(pair_dumps(n, b, {}).only_bench.empty());
}

// What msprobe takes with --api_mapping is refused by name.
TEST_F(Compare, MapsOfFunctionsAreNotRead) {
  for (const char* text :
       {"ms_api: Functional.abs\npt_api: Torch.abs\nms_args: [0]\npt_args: [0]\n",
        "- ms_api: Functional.abs\n  pt_api: Torch.abs\n"})
    try {
      NameMap::parse(text, "m", MapFormat::Yaml);
      ADD_FAILURE() << text;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("API mapping"), std::string::npos) << e.what();
    }
}

TEST_F(Compare, LinesOfAMapWithoutEffectAreNamed) {
  const DumpFile n =
      dump("n", both(called("Module.a.A.forward.0", 1), called("Module.b.B.forward.0", 2)));
  const DumpFile b =
      dump("b", both(called("Module.x.A.forward.0", 1), called("Module.b.B.forward.0", 2)));
  NameMap map;
  map.add("a", "x"), map.add("b.*", "y"), map.add("b", "z");
  for (const char* more : {"c", "d", "e"}) map.add(more, "x");
  EXPECT_EQ(without_effect(map, pair_dumps(n, b, map).fits),
            "\"b.*: y\" (not in the first dump), \"b: z\" (not in the second dump), "
            "\"c: x\" (not in the first dump) and 2 more");
  NameMap useless;
  useless.add("x", "a");  // the wrong way round
  EXPECT_THROW(pair_dumps(n, b, useless), UserError);
}

// Nothing that was compared is no agreement.
TEST_F(Compare, TensorsWithoutFiguresAreNoAgreement) {
  const auto only = [](const char* entry, std::vector<const char*> figures) {
    Json record = tensor({4}, 1);
    for (const char* key : {"Max", "Min", "Mean", "Norm"})
      if (std::ranges::find(figures, std::string_view(key)) == figures.end()) record.erase(key);
    return Json{{entry, forward(record, record)}};
  };
  const auto run = [&](const Json& npu, const Json& bench) {
    TemporaryFolder::put(folder_ / "npu.json", Json{{"data", npu}}.dump());
    TemporaryFolder::put(folder_ / "bench.json", Json{{"data", bench}}.dump());
    return compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}})
        .at(0)
        .sentence;
  };
  constexpr const char* kA = "Module.a.A.forward.0";
  for (const auto& [ours, theirs] :
       {std::pair<std::vector<const char*>, std::vector<const char*>>{{}, {}},
        {{"Max", "Norm"}, {}},
        {{"Max"}, {"Norm"}}})
    try {
      run(only(kA, ours), only(kA, theirs));
      ADD_FAILURE();
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0651");
      EXPECT_NE(std::string(e.what()).find("2 tensors that both have"), std::string::npos);
    }
  EXPECT_EQ(run(only(kA, {"Mean"}), only(kA, {"Mean"})),
            "no divergence: 2 tensors of 1 calls agree in their statistics");
  const Json some = both(only(kA, {"Max"}), only("Module.b.B.forward.0", {}));
  EXPECT_EQ(
      run(some, some),
      "no divergence: 2 tensors of 1 calls agree in their statistics; of 2 more tensors there "
      "is nothing in both dumps to compare");
}

TEST_F(Compare, InsideComesBeforeOutside) {
  const auto call = [](double in, double out) {
    return forward(tensor({8}, in), tensor({8}, out));
  };
  // The block is listed first, as by a program that writes calls when they begin.
  const Json right = {{"Module.h.0.Block.forward.0", call(1, 2)},
                      {"Module.h.0.a.A.forward.0", call(1, 3)},
                      {"Module.h.0.b.B.forward.0", call(3, 4)}};
  Json wrong = right;
  wrong["Module.h.0.Block.forward.0"] = call(1, 2.5);
  wrong["Module.h.0.b.B.forward.0"] = call(3, 4.5);
  EXPECT_EQ(parted(right, right), "");
  EXPECT_TRUE(parted(wrong, right)
                  .starts_with("forward, h.0.b (B), behind h.0.a: "
                               "what h.0.b gives (0) is off by 0.12 in Norm"))
      << parted(wrong, right);
  // What b takes is made by the block that calls it.
  wrong["Module.h.0.b.B.forward.0"] = call(3.5, 4.5);
  EXPECT_TRUE(
      parted(wrong, right).starts_with("forward, h.0 (Block), behind h.0.a: what h.0.b takes (0)"))
      << parted(wrong, right);
}

TEST_F(Compare, WhatStatisticsDoNotSeeIsSaidWhereItMayBeIt) {
  const auto call = [](const char* name, double out, Json parameters) {
    return Json{{name, forward(tensor({8, 4}, 1), tensor({8, 4}, out), std::move(parameters))}};
  };
  const Json matrix = {{"weight", tensor({4, 4}, 1)}}, vector = {{"weight", tensor({4}, 1)}};
  const auto of = [&](const char* name, const Json& parameters) {
    return parted(call(name, 2, parameters), call(name, 1, parameters));
  };
  constexpr const char* kHint = "dumps of `--task tensor`";
  EXPECT_NE(of("Module.a.Linear.forward.0", matrix).find(kHint), std::string::npos);
  // A norm gives the same of any order, and a parameter that is another one is so in any.
  EXPECT_EQ(of("Module.a.LayerNorm.forward.0", vector).find(kHint), std::string::npos);
  const Json other = {{"weight", tensor({4, 4}, 3)}};
  const std::string parameter = parted(call("Module.a.Linear.forward.0", 1, other),
                                       call("Module.a.Linear.forward.0", 1, matrix));
  EXPECT_NE(parameter.find("is another one"), std::string::npos);
  EXPECT_EQ(parameter.find(kHint), std::string::npos);
  // Elements that were compared have an order.
  const DumpFile n = dump("npu", call("Module.a.Linear.forward.0", 2, matrix));
  const DumpFile b = dump("bench", call("Module.a.Linear.forward.0", 1, matrix));
  const Pairs pairs = pair_dumps(n, b, {});
  const ElementFigures other_values =
      figures_of({{2, 4}, {2}, "torch.float32"}, {{1, 2}, {2}, "torch.float32"});
  const auto all = compare_all(pairs, [&](const RecordPair& r) {
    return r.npu->part == Part::Output ? &other_values : nullptr;
  });
  const auto d = first_divergence(all, n);
  ASSERT_TRUE(d);
  EXPECT_NE(d->sentence.find("in the elements"), std::string::npos) << d->sentence;
  EXPECT_EQ(d->sentence.find(kHint), std::string::npos) << d->sentence;
}

TEST_F(Compare, RoundingIsNoDivergence) {
  const auto call = [](double norm, const char* type) {
    return Json{{"Module.a.A.forward.0", forward(tensor({64}, 1, type), tensor({64}, norm, type))}};
  };
  EXPECT_EQ(parted(call(1 + 1e-7, "torch.float32"), call(1, "torch.float32")), "");
  EXPECT_NE(parted(call(1 + 1e-4, "torch.float32"), call(1, "torch.float32")), "");
  EXPECT_EQ(parted(call(1 + 1e-3, "torch.bfloat16"), call(1, "torch.float32")), "");
  EXPECT_NE(parted(call(1.5, "torch.bfloat16"), call(1, "torch.float32")), "");
  EXPECT_NE(parted(call(1 + 1e-7, "torch.float64"), call(1, "torch.float64")), "");
}

TEST_F(Compare, WhatIsNotFiniteDiffers) {
  const auto with = [](const Json& max) {
    Json out = tensor({4}, 1);
    out["Max"] = max, out["Norm"] = max;
    return Json{{"Module.a.A.forward.0", forward(tensor({4}, 1), out)}};
  };
  EXPECT_NE(parted(with("inf"), with(1)), "");
  EXPECT_NE(parted(with("inf"), with("-inf")), "");
  EXPECT_EQ(parted(with("inf"), with("inf")), "");
  EXPECT_EQ(parted(with("nan"), with("nan")), "");
}

TEST_F(Compare, MissingGradientsAreFound) {
  const Json weights = {{"weight", tensor({4, 4}, 1)}, {"bias", tensor({4}, 1)}};
  Json all = {
      {"Module.a.A.forward.0", forward(tensor({2, 4}, 1), tensor({2, 4}, 1), weights)},
      {"Module.a.A.backward.0", {{"input", {tensor({2, 4}, 1)}}, {"output", {tensor({2, 4}, 1)}}}},
      {"Module.a.A.parameters_grad.0",
       {{"weight", {tensor({4, 4}, 1)}}, {"bias", {tensor({4}, 1)}}}}};
  Json without = all;
  without["Module.a.A.parameters_grad.0"].erase("bias");
  EXPECT_NE(parted(without, all).find("the gradient of a.bias is missing"), std::string::npos);
  EXPECT_NE(parted(all, without).find("the first run alone"), std::string::npos);
}

// A frozen parameter has none; one that the other run does not have is no matter of gradients.
TEST_F(Compare, GradientsThatOneRunAloneHasAreFoundEitherWay) {
  const auto run = [](bool is_frozen, bool has_b) {
    const Json weights = {{"weight", tensor({4, 4}, 1)}};
    Json data = {{"Module.a.A.forward.0", forward(tensor({2, 4}, 1), tensor({2, 4}, 1), weights)}};
    if (has_b)
      data["Module.b.B.forward.0"] = forward(tensor({2, 4}, 1), tensor({2, 4}, 1), weights);
    data["Module.a.A.backward.0"] = {{"input", {tensor({2, 4}, 1)}},
                                     {"output", {tensor({2, 4}, 1)}}};
    data["Module.a.A.parameters_grad.0"] = {{"weight", {tensor({4, 4}, 1)}}};
    if (has_b && !is_frozen)
      data["Module.b.B.parameters_grad.0"] = {{"weight", {tensor({4, 4}, 1)}}};
    return data;
  };
  EXPECT_NE(parted(run(true, true), run(false, true)).find("the gradient of b.weight is missing"),
            std::string::npos);
  EXPECT_NE(parted(run(false, true), run(true, true))
                .find("the gradient of b.weight is there in the first run alone"),
            std::string::npos)
      << parted(run(false, true), run(true, true));
  EXPECT_EQ(parted(run(false, true), run(false, false)), "");
}

TEST_F(Compare, FiguresOfMsprobe) {
  const Table t = table({{"Module.a.A.forward.0", forward(tensor({4}, 2), tensor({4}, 3))}},
                        {{"Module.a.A.forward.0", forward(tensor({4}, 2), tensor({4}, 1))}});
  EXPECT_EQ(t.columns.front(), "NPU Name");
  EXPECT_EQ(cell(t, 0, "NPU Name"), "Module.a.A.forward.0.input.0");
  EXPECT_EQ(cell(t, 0, "Max diff"), "0");
  EXPECT_EQ(cell(t, 1, "L2norm diff"), "2");
  EXPECT_EQ(cell(t, 1, "NormRelativeErr"), "200%");
  EXPECT_EQ(cell(t, 0, "Result"), "pass");
  EXPECT_EQ(cell(t, 1, "Result"), "error");
  EXPECT_NE(cell(t, 1, "Err_message").find("NormRelativeErr of output is greater than 0.5"),
            std::string::npos);
}

// As msprobe has it: of a tensor the dump says it, of another value it is that of its text.
TEST_F(Compare, ChecksumsOfValues) {
  Json in = tensor({2}, 1);
  in["md5"] = "0123abcd";
  const Json call = {{"Functional.layer_norm.0.forward",
                      {{"input_args", Json::array({in,
                                                   Json::array({{{"type", "int"}, {"value", 32}}}),
                                                   {{"type", "float"}, {"value", 1e-05}},
                                                   {{"type", "float"}, {"value", 2.0}},
                                                   {{"type", "bool"}, {"value", false}}})},
                       {"input_kwargs", Json::object()},
                       {"output", Json::array()}}}};
  const DumpFile n = dump("npu", call), b = dump("bench", call);
  const Pairs pairs = pair_dumps(n, b, {});
  const Table t = msprobe_table(pairs, n, Mode::Hash, [](const RecordPair&) { return nullptr; });
  const char* const want[] = {"0123abcd", "7d65264f", "effb4679", "f570d16c", "ea0c4734"};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(cell(t, i, "NPU MD5"), want[i]) << i;
    EXPECT_EQ(cell(t, i, "BENCH MD5"), want[i]) << i;
  }
}

TEST_F(Compare, ElementsOfTensors) {
  const Elements b{{1, 2, 3, 4}, {2, 2}, "torch.float32"};
  Elements n = b;
  EXPECT_EQ(figures_of(n, b).cosine, 1);
  EXPECT_EQ(figures_of(n, b).max_ulps, 0);
  n.values[3] = std::nextafter(4.0f, 5.0f);
  EXPECT_EQ(figures_of(n, b).max_ulps, 1);
  n.values = {1, 2, 3, 5};
  const ElementFigures f = figures_of(n, b);
  EXPECT_EQ(f.max_absolute, 1);
  EXPECT_EQ(f.max_relative, 0.25);
  EXPECT_EQ(f.thousandth, 0.75);
  EXPECT_DOUBLE_EQ(*f.distance, 1);
  const Elements transposed{{1, 3, 5, 2, 4, 6}, {2, 3}, "torch.float32"};
  EXPECT_EQ(
      figures_of(transposed, {{1, 2, 3, 4, 5, 6}, {3, 2}, "torch.float32"}, true).max_absolute, 0);
}

TEST_F(Compare, WhatIsTypicalOfElementsIsNotTheWorst) {
  Elements b{std::vector<double>(9, 2), {3, 3}, "torch.float32"}, n = b;
  n.values[4] = 3;
  EXPECT_EQ(figures_of(n, b).relative_typical, 0);
  EXPECT_EQ(figures_of(n, b).relative_worst, 0.5);
  for (double& v : n.values) v = 2.02;
  EXPECT_NEAR(figures_of(n, b).relative_typical, 0.01, 1e-12);
}

// A gradient in which all cancels is rounding alone: it is measured by what reaches its module.
TEST_F(Compare, ElementsOfAGradientThatCancelsAreNotMeasuredByThemselves) {
  const Elements one{{1e-9, -2e-9}, {2}, "torch.float32"},
      other{{-1e-9, 1e-9}, {2}, "torch.float32"};
  const ElementFigures figures = figures_of(one, other);
  Record r;
  r.is_tensor = true, r.type = "torch.float32", r.shape = {2};
  EXPECT_GT(difference_of({&r, &r}, &figures)->size, 1);
  EXPECT_LT(difference_of({&r, &r}, &figures, 0.1)->size, 1e-6);
}

TEST_F(Compare, InfinitiesHaveASign) {
  const Elements up{{1, kInf}, {2}, "torch.float32"}, down{{1, -kInf}, {2}, "torch.float32"};
  EXPECT_EQ(figures_of(up, up).relative_distance, 0);
  EXPECT_EQ(figures_of(up, down).problem, "N/A");  // msprobe takes them for equal
  EXPECT_EQ(figures_of(up, down).relative_distance, kInf);
}

TEST_F(Compare, StepsAreMatchedByName) {
  const auto put = [&](const char* folder) {
    make_folder(folder_ / folder);
    TemporaryFolder::put(folder_ / folder / "dump.json", "{\"data\": {}}");
  };
  for (const char* f : {"a/step0/rank", "a/step2/rank", "a/step10/rank", "b/step2/proc7",
                        "b/step10/proc7", "c/step5/rank0", "c/step5/rank1"})
    put(f);
  const auto pairs = pair_dump_files(folder_ / "a", folder_ / "b");
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].step, "step2");
  EXPECT_EQ(pairs[1].step, "step10");
  // One step of each belongs together, whatever their names.
  EXPECT_EQ(pair_dump_files(folder_ / "a/step0", folder_ / "b/step2").size(), 1u);
  EXPECT_THROW(pair_dump_files(folder_ / "a", folder_ / "c"), DataError);
  EXPECT_THROW(pair_dump_files(folder_ / "a", folder_ / "none"), DataError);
}

TEST_F(Compare, ElementsAreLookedForInTheDumpAlone) {
  DumpFile d;
  d.file = "/dumps/step0/rank/dump.json";
  Record r;
  r.data_name = "x.pt";
  EXPECT_EQ(d.elements_of(r), "/dumps/step0/rank/dump_tensor_data/x.pt");
  r.data_name = "../../secret.pt";
  EXPECT_TRUE(d.elements_of(r).empty());
}

TEST_F(Compare, ResultsAreWritten) {
  const auto write = [&](const char* name, double norm) {
    TemporaryFolder::put(
        folder_ / name,
        Json{{"data",
              {{"Module.</script>.A.forward.0", forward(tensor({4}, 1), tensor({4}, norm))}}}}
            .dump());
  };
  write("npu.json", 2), write("bench.json", 1);
  const auto results =
      compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].has_divergence);
  const std::string page = read_file(folder_ / "out/compare_result.html");
  EXPECT_EQ(page.find("Module.</script>"), std::string::npos);  // no name ends the script
  const Json json = Json::parse(read_file(folder_ / "out/compare_result.json"));
  EXPECT_EQ(json["sentence"], results[0].sentence);
  EXPECT_EQ(json["compared"].size(), 2u);
}

// Two runs of one program in bfloat16: as long as all values are the same nothing has been rounded
// otherwise, and a branch that is 5 % too small is seen behind many calls.
TEST_F(Compare, ValuesThatAreTheSameLeaveNothingToExplain) {
  const auto run = [](double last, double early) {
    const auto low = [](double norm) { return tensor({8, 64}, norm, "torch.bfloat16"); };
    Json data = Json::object();
    for (int i = 0; i < 40; ++i)
      data["Module.h." + std::to_string(i) + ".Block.forward.0"] =
          forward(low(i == 1 ? 10 * early : 10), low(i == 0    ? 10 * early
                                                     : i == 39 ? last
                                                               : 10));
    return data;
  };
  EXPECT_EQ(parted(run(10, 1), run(10, 1)), "");
  const std::string said = parted(run(9.5, 1), run(10, 1));
  EXPECT_NE(said.find("h.39"), std::string::npos) << said;
  // Values in another order of summation, or in another type, may be as far apart behind so many.
  EXPECT_EQ(parted(run(9.5, 1.001), run(10, 1)), "");
  Json high = run(10, 1);
  for (auto& [name, call] : high.items())
    for (const char* const side : {"input_args", "output"})
      call[side][0]["dtype"] = "torch.float32";
  EXPECT_EQ(parted(run(9.5, 1), high), "");
  // One more rounding of the type behind the same values is explained.
  EXPECT_EQ(parted(run(10 * (1 - 0x1p-8), 1), run(10, 1)), "");
}

// Rows of a table in another order make the first layer that mixes rows another one, no later one.
TEST_F(Compare, AnotherOrderIsACauseOfTheFirstLayerAlone) {
  const auto run = [](double first, double second) {
    const Json weight = {{"weight", tensor({9, 4}, 3)}};
    Json tokens = tensor({2, 4}, 5, "torch.int64"), data = Json::object();
    data["Module.wte.Embedding.forward.0"] = forward(tokens, tensor({2, 4}, 7), weight);
    for (int i = 0; i < 2; ++i)
      data["Module.h." + std::to_string(i) + ".proj.Linear.forward.0"] =
          forward(tensor({2, 4}, i == 0 ? first : second), tensor({2, 4}, 8));
    return data;
  };
  const std::string order = "statistics see no order";
  const std::string early = parted(run(2, 3), run(1, 3)), late = parted(run(1, 2), run(1, 3));
  EXPECT_NE(early.find(order), std::string::npos) << early;
  EXPECT_NE(late.find("what h.1.proj takes"), std::string::npos) << late;
  EXPECT_EQ(late.find(order), std::string::npos) << late;
}

TEST_F(Compare, TheLineIsThatOfTheRunThatHasOne) {
  const Json right = {
      {"Module.fc.Linear.forward.0", forward(tensor({4, 4}, 1), tensor({4, 4}, 2))}};
  const Json wrong = {
      {"Module.fc.Linear.forward.0", forward(tensor({4, 4}, 1), tensor({4, 4}, 3))}};
  DumpFile n = dump("n", wrong), b = dump("b", right);
  b.lines["Module.fc.Linear.forward.0"] = "File /a/gpt2.py, line 31, in forward, \n x = fc(x)";
  const Pairs pairs = pair_dumps(n, b, {});
  const auto all = compared(pairs);
  EXPECT_EQ(first_divergence(all, n)->line, "");
  EXPECT_EQ(first_divergence(all, n, {}, &b)->line, "gpt2.py:31");
  n.lines["Module.fc.Linear.forward.0"] = "File port.cpp, line 7, in fc, \n ";
  EXPECT_EQ(first_divergence(all, n, {}, &b)->line, "port.cpp:7");
}

}  // namespace
}  // namespace aloft::compare
