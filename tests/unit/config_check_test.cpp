// Two runs held against each other before they run: scripts, names, values, tensors; and msprobe's
// known mistakes, which are not repeated.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "files/safetensors.h"
#include "files/zip_files.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/msprobe_sheets.h"
#include "observe/config_check/pack.h"
#include "observe/config_check/results.h"
#include "observe/config_check/setting_pairs.h"
#include "observe/config_check/setting_values.h"
#include "observe/config_check/settings_file.h"
#include "observe/config_check/weights_file.h"
#include "temporary_folder.h"

namespace aloft::config_check {
namespace {

std::string value_of(const Side& side, const std::string& key) {
  for (const Setting& s : side.settings.at("static"))
    if (s.key == key) return value_text(s);
  return "nothing";
}

const Finding& finding(const Section& section, const std::string& a_name) {
  for (const Finding& f : section.findings)
    if (f.a_name == a_name) return f;
  throw std::out_of_range(a_name);
}

TEST(ConfigCheck, ScriptsAreReadAsAShellReadsThem) {
  const Side side = parse_settings(R"(#!/bin/bash
export OMP_NUM_THREADS=4 CUDA_VISIBLE_DEVICES="0,1"  # two
LR=1e-4
MODEL_ARGS="
  --num-layers 12 \
  --lr $LR
"
MORE=(--seed 7
      # a comment
      --name 'a b')
NCCL_ALGO=Ring torchrun --nproc_per_node ${GPUS:-8} train.py $MODEL_ARGS \
    --fp16 --clip-grad=1.0 --wd -0.5 ${MORE[@]} trainer.steps=5 \
    --url "$(hostname) x" 2> log.txt | tee out
)",
                                   "train.sh");
  EXPECT_EQ(value_of(side, "num-layers"), "12");
  EXPECT_EQ(value_of(side, "lr"), "1e-4");
  EXPECT_EQ(value_of(side, "nproc_per_node"), "8");
  EXPECT_EQ(value_of(side, "fp16"), "true");
  EXPECT_EQ(value_of(side, "clip-grad"), "1.0");
  EXPECT_EQ(value_of(side, "wd"), "-0.5");
  EXPECT_EQ(value_of(side, "seed"), "7");
  EXPECT_EQ(value_of(side, "trainer.steps"), "5");
  EXPECT_EQ(value_of(side, "url"), "nothing");  // which a run alone would say
  EXPECT_EQ(side.environment,
            (std::map<std::string, std::string>{
                {"CUDA_VISIBLE_DEVICES", "0,1"}, {"NCCL_ALGO", "Ring"}, {"OMP_NUM_THREADS", "4"}}));
  EXPECT_FALSE(side.is_whole_environment);
}

TEST(ConfigCheck, AScriptThatDoublesItselfEnds) {
  std::string text = "X=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 200; ++i) text += "X=\"$X$X\"\n";
  EXPECT_LT(parse_settings(text + "train --x \"$X\"\n", "a.sh").settings.at("static").size(), 2u);
}

// The words of a list stay words within quotes, and no text is too deep or too long to be read.
TEST(ConfigCheck, ListsOfAScript) {
  const Side side = parse_settings("ARGS=(--lr 1 --wd 3)\npython t.py \"${ARGS[@]}\"\n", "a.sh");
  EXPECT_EQ(value_of(side, "lr"), "1");
  EXPECT_EQ(value_of(side, "wd"), "3");
  const auto repeated = [](const char* word) {
    std::string text = "cmd ";
    for (int i = 0; i < 60000; ++i) text += word;
    return text;
  };
  for (const char* word : {"a=(", "a=() ", "${"}) parse_settings(repeated(word), "a.sh");
}

TEST(ConfigCheck, YamlAndJsonAreFlattened) {
  const Side yaml = parse_settings(R"(base: &base {lr: 1e-4, betas: [0.9, 0.95]}
optimizer:
  <<: *base
  lr: 3e-4
  groups:
    - {name: head, lr: 0}
name: "1"
)",
                                   "a.yaml");
  EXPECT_EQ(value_of(yaml, "optimizer.lr"), "0.0003");
  EXPECT_EQ(value_of(yaml, "optimizer.betas"), "[0.9, 0.95]");
  EXPECT_EQ(value_of(yaml, "optimizer.groups.0.name"), "head");
  EXPECT_TRUE(yaml.settings.at("static").back().value.is_string());
  const Side json = parse_settings(R"({"a": {"b": [1, 2]}, "c": null})", "a.json");
  EXPECT_EQ(value_of(json, "a.b"), "[1, 2]");
  EXPECT_EQ(value_of(json, "c"), "null");
}

TEST(ConfigCheck, WhatIsNoYamlIsRefusedWithItsLine) {
  // The third doubles what it stands for with each line.
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    laughs += name + ": &" + name + " [" + before + ", " + before + ", " + before + "]\n";
  }
  const std::pair<std::string, std::string> cases[] = {{"a: 1\nb: [1,\n", "a.yaml"},
                                                       {std::string(100000, '['), "a.yaml"},
                                                       {laughs, "a.yaml"},
                                                       {"{", "a.json"},
                                                       {"--lr \xff", "a.sh"}};
  for (const auto& [text, name] : cases) try {
      static_cast<void>(parse_settings(text, name));
      ADD_FAILURE() << name;
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0844");
      EXPECT_NE(std::string(e.what()).find(name), std::string::npos);
    }
}

TEST(ConfigCheck, NamesThatAreOne) {
  const std::vector<Setting> a = {{"optimizer.lr", 1e-4},  {"train.batch", 8},
                                  {"model.dropout", 0.1},  {"eval_interval", 100},
                                  {"adam_beta1", 0.9},     {"sequence_parallel", true},
                                  {"lr_warmup_steps", 10}, {"model.lr", 2}};
  const std::vector<Setting> b = {{"learning-rate", "0.0001"},
                                  {"micro_batch_size", 4},
                                  {"hidden-dropout", 0.1},
                                  {"eval_intervals", 100},
                                  {"adam_beta2", 0.95},
                                  {"no-sequence-parallel", true},
                                  {"warmup", 10},
                                  {"b.model.lr", 2}};
  std::map<std::string, std::string> pairs, how;
  for (const SettingPair& p : pair_settings(a, b)) {
    const std::string name = p.a ? p.a->key : "";
    pairs[name] += p.b ? p.b->key : "";
    how[name] = p.matched;
  }
  EXPECT_EQ(pairs["optimizer.lr"], "learning-rate");
  EXPECT_EQ(how["optimizer.lr"], "synonym");
  EXPECT_EQ(pairs["train.batch"], "micro_batch_size");
  EXPECT_EQ(pairs["model.lr"], "b.model.lr");  // msprobe keeps one key of each last part
  EXPECT_EQ(how["model.lr"], "name");
  EXPECT_EQ(pairs["eval_interval"], "eval_intervals");
  EXPECT_EQ(how["eval_interval"], "similar 0.96");
  EXPECT_EQ(pairs["adam_beta1"], "");  // 0.9 alike, and another thing
  EXPECT_EQ(pairs["lr_warmup_steps"], "warmup");
}

TEST(ConfigCheck, LikenessIsThatOfDifflib) {
  // As Python's difflib.SequenceMatcher(None, a, b).ratio() has them.
  EXPECT_NEAR(similarity("learning_rate", "learningrate"), 0.96, 1e-12);
  EXPECT_NEAR(similarity("abxcd", "abcd"), 8.0 / 9, 1e-12);
  EXPECT_NEAR(similarity("tide", "diet"), 0.25, 1e-12);
  EXPECT_NEAR(similarity("", "a"), 0, 1e-12);
}

TEST(ConfigCheck, ValuesThatAreOne) {
  const auto same = [](nlohmann::ordered_json x, nlohmann::ordered_json y) {
    return same_value({"a", std::move(x)}, {"b", std::move(y)});
  };
  EXPECT_TRUE(same("1e-4", 0.0001));  // texts of numbers: msprobe says that they differ
  EXPECT_TRUE(same(true, "True"));
  EXPECT_TRUE(same("torch.bfloat16", "bf16"));
  EXPECT_TRUE(same(nullptr, "None"));
  EXPECT_TRUE(same({0.9, 0.95}, {"0.90", "0.95"}));
  EXPECT_FALSE(same({0.9, 0.95}, {0.9, 0.999}));
  EXPECT_FALSE(same("A.txt", "a.txt"));
  EXPECT_FALSE(same("", "f64"));
  EXPECT_FALSE(same("9007199254740993", "9007199254740992"));
  EXPECT_TRUE(same_value({"bf16", true}, {"dtype", "bfloat16"}));
  EXPECT_FALSE(same_value({"fp16", true}, {"dtype", "bfloat16"}));
}

TEST(ConfigCheck, SettingsHaveLevels) {
  Side a, b;
  a.settings["static"] = {
      {"lr", 1e-4}, {"seed", 1}, {"save_dir", "x"}, {"beta", 1}, {"gamma", 2, "", true}};
  b.settings["static"] = {{"lr", 2e-4}, {"seed", 1}, {"save_dir", "y"}};
  const Section s = check_settings(a, b);
  EXPECT_EQ(finding(s, "lr").level, Level::Error);
  EXPECT_NE(finding(s, "lr").advice.find("lr"), std::string::npos);
  EXPECT_EQ(finding(s, "seed").level, Level::Pass);
  EXPECT_EQ(finding(s, "save_dir").level, Level::Pass);
  EXPECT_EQ(finding(s, "beta").level, Level::Warning);
  EXPECT_THROW(finding(s, "gamma"), std::out_of_range);  // a default that one side alone has
  EXPECT_EQ(s.level(), Level::Error);
  EXPECT_EQ(json_of(a, b, {s})["verdict"], "error");
}

TEST(ConfigCheck, EnvironmentsOfNpuAndGpu) {
  Side npu, gpu;
  npu.is_whole_environment = gpu.is_whole_environment = true;
  npu.environment = {{"ASCEND_HOME_PATH", "/x"},
                     {"HCCL_DETERMINISTIC", "true"},
                     {"OMP_NUM_THREADS", "8"},
                     {"HCCL_INTRA_PCIE_ENABLE", "0"}};
  gpu.environment = {
      {"NCCL_DETERMINISTIC", "True"}, {"OMP_NUM_THREADS", "4"}, {"CUDA_LAUNCH_BLOCKING", "1"}};
  const Section s = check_environment(npu, gpu);
  EXPECT_EQ(finding(s, "HCCL_DETERMINISTIC").level, Level::Pass);
  EXPECT_EQ(finding(s, "HCCL_DETERMINISTIC").b_name, "NCCL_DETERMINISTIC");
  EXPECT_EQ(finding(s, "OMP_NUM_THREADS").level, Level::Warning);
  EXPECT_EQ(finding(s, "ASCEND_LAUNCH_BLOCKING").level, Level::Error);
  EXPECT_EQ(finding(s, "ASCEND_LAUNCH_BLOCKING").a_value, "not set");
  // msprobe reads the variable of ROCE in its place.
  EXPECT_EQ(finding(s, "HCCL_INTRA_PCIE_ENABLE").level, Level::Warning);
  EXPECT_EQ(s.findings.size(), 4u);  // what nobody sets is no finding
  // A script exports some: what it does not say is not known.
  gpu.is_whole_environment = false;
  EXPECT_EQ(check_environment(npu, gpu).findings.size(), 3u);
}

// The environment is what is set there; what a run takes has rows of its own.
TEST(ConfigCheck, WhatIsInUseIsNoVariable) {
  Side run, script;
  run.is_whole_environment = true;
  run.in_use = {{"threads", "2"}, {"device", "cpu"}};
  script.environment = {{"OMP_NUM_THREADS", "7"}};
  const Section s = check_environment(run, script);
  ASSERT_EQ(s.findings.size(), 2u);
  EXPECT_EQ(finding(s, "OMP_NUM_THREADS").a_value, "not set");
  EXPECT_EQ(finding(s, "OMP_NUM_THREADS").level, Level::Pass);
  EXPECT_EQ(finding(s, "threads in use").level, Level::Warning);
  EXPECT_EQ(finding(s, "threads in use").b_name, "OMP_NUM_THREADS");
  EXPECT_EQ(finding(s, "threads in use").b_value, "7");
  Side other = run;
  other.in_use["device"] = "sim";
  EXPECT_EQ(finding(check_environment(run, other), "threads in use").level, Level::Pass);
  EXPECT_EQ(finding(check_environment(run, other), "device in use").level, Level::Error);
}

TEST(ConfigCheck, VersionsOfPackages) {
  Side a, b;
  a.packages = {{"torch", "2.1"}, {"flash_attn", "2"}, {"rich", "1"}};
  b.packages = {{"torch", "2.2"}, {"flash-attn", "2"}};
  const Section s = check_packages(a, b);
  EXPECT_EQ(finding(s, "torch").level, Level::Error);
  EXPECT_EQ(finding(s, "flash-attn").level, Level::Pass);
  EXPECT_EQ(s.findings.size(), 2u);
  b.packages = {{"aloft", "0.1.0"}};
  EXPECT_TRUE(check_packages(a, b).findings.empty());  // one side has no Python
}

TensorFacts facts(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return facts_of(DType::F32, shape, std::as_bytes(std::span(values)), true);
}

TEST(ConfigCheck, TensorsAreTold) {
  const std::vector<float> values = {1, 2, 3, 4, 5, -6};
  const TensorFacts a = facts({2, 3}, values);
  EXPECT_DOUBLE_EQ(a.max, 5);
  EXPECT_DOUBLE_EQ(a.min, -6);
  EXPECT_DOUBLE_EQ(a.mean, 1.5);
  EXPECT_DOUBLE_EQ(a.norm, std::sqrt(91.0));
  EXPECT_EQ(likeness(a, facts({2, 3}, values)), Likeness::Same);
  EXPECT_EQ(likeness(a, facts({3, 2}, {1, 4, 2, 5, 3, -6})), Likeness::Transposed);
  EXPECT_EQ(likeness(a, facts({2, 3}, {4, 5, -6, 1, 2, 3})), Likeness::RowsMoved);
  EXPECT_EQ(likeness(a, facts({2, 3}, {2, 1, 3, 4, 5, -6})), Likeness::Permuted);
  EXPECT_EQ(likeness(a, facts({2, 3}, {1, 2, 3, 4, 5, 6})), Likeness::Other);
  EXPECT_DOUBLE_EQ(*scale_between(a, facts({2, 3}, {2, 4, 6, 8, 10, -12})), 2);
  EXPECT_DOUBLE_EQ(*scale_between(a, facts({2, 3}, {-1, -2, -3, -4, -5, 6})), -1);
  EXPECT_FALSE(scale_between(a, facts({2, 3}, values)).has_value());
  // Squares, and sums, of f64 may be no doubles.
  for (const double size : {1e200, 1e308, 1e-200, 1.0}) {
    const std::vector<double> far = {size, size, 0, size};
    const TensorFacts f = facts_of(DType::F64, {4}, std::as_bytes(std::span(far)));
    EXPECT_DOUBLE_EQ(f.mean / size, 0.75) << size;
    EXPECT_DOUBLE_EQ(f.norm / 2 / size, std::sqrt(0.75)) << size;
  }
  // An infinity is no number's multiple, and hides that the rest is none.
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(scale_between({inf, 1, 1, 1}, {-inf, 1, 1, 1}).has_value());
  EXPECT_FALSE(scale_between({2, 1, 1, 1}, {inf, 2, 2, 2}).has_value());
  // Whole numbers that no double tells apart, too.
  constexpr std::int64_t large = std::int64_t{1} << 53;
  const std::int64_t x[] = {large, large + 1}, y[] = {large, large};
  EXPECT_EQ(likeness(facts_of(DType::I64, {2}, std::as_bytes(std::span(x))),
                     facts_of(DType::I64, {2}, std::as_bytes(std::span(y)))),
            Likeness::Other);
  // Values count, not the type that holds them.
  const std::uint16_t bf16[] = {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0xc0c0};
  const TensorFacts low = facts_of(DType::BF16, {2, 3}, std::as_bytes(std::span(bf16)));
  EXPECT_EQ(low.hashes->ordered, a.hashes->ordered);
  // However it is cut.
  TensorReader reader({2, 3});
  for (const float v : values) {
    const double one = v;
    reader.add({&one, 1});
  }
  EXPECT_EQ(reader.facts().hashes->any_rows, a.hashes->any_rows);
  EXPECT_TRUE(std::isnan(facts({0, 3}, {}).max));
}

TEST(ConfigCheck, WeightsThatAreTurnedScaledOrRenamed) {
  const std::vector<float> values = {1, 2, 3, 4, 5, -6};
  Side a, b;
  a.weights = {{0,
                0,
                {{"h.0.w", facts({2, 3}, values)},
                 {"h.1.w", facts({2, 3}, {2, 2, 3, 4, 5, 7})},
                 {"h.2.w", facts({2, 3}, {3, 1, 3, 4, 5, 7})},
                 {"h.3.w", facts({2, 3}, {9, 1, 3, 4, 5, 7})},
                 {"alone", facts({1}, {3})}}}};
  b.weights = {{0,
                0,
                {{"transformer.h.0.w", facts({3, 2}, {1, 4, 2, 5, 3, -6})},
                 {"h.1.w", facts({2, 3}, {4, 4, 6, 8, 10, 14})},
                 {"h.2.w", facts({2, 3}, {7, 3, 1, 3, 4, 5})},  // msprobe lets it pass
                 {"other", facts({2, 3}, {9, 1, 3, 4, 5, 7})}}}};
  const Section s = check_weights(a, b);
  EXPECT_NE(finding(s, "step 0, h.0.w").advice.find("transposed"), std::string::npos);
  EXPECT_NE(finding(s, "step 0, h.1.w").advice.find("times 2"), std::string::npos);
  EXPECT_NE(finding(s, "step 0, h.2.w").advice.find("another order"), std::string::npos);
  EXPECT_EQ(finding(s, "step 0, h.2.w").level, Level::Error);
  EXPECT_EQ(finding(s, "step 0, h.3.w").level, Level::Pass);
  EXPECT_EQ(finding(s, "step 0, h.3.w").matched, "values");
  EXPECT_EQ(finding(s, "step 0, alone").level, Level::Warning);
}

TEST(ConfigCheck, BatchesInAnotherOrderAreSaid) {
  Side a, b;
  a.batches = {{0, 0, {{"tokens", facts({2, 2}, {1, 2, 3, 4})}}},
               {1, 0, {{"tokens", facts({2, 2}, {5, 6, 7, 8})}}}};
  b.batches = {{0, 0, {{"tokens", facts({2, 2}, {1, 2, 7, 8})}}},
               {1, 0, {{"tokens", facts({2, 2}, {5, 6, 3, 4})}}}};
  const Section s = check_batches(a, b);
  EXPECT_EQ(finding(s, "step 0, tokens").level, Level::Error);
  EXPECT_NE(finding(s, "all steps, tokens").advice.find("4 of 4"), std::string::npos);
  EXPECT_EQ(check_batches(a, a).level(), Level::Pass);
}

// The same examples in the same order, cut otherwise into batches.
TEST(ConfigCheck, BatchesOfAnotherSizeAreSaid) {
  Side a, b;
  a.batches = {{0, 0, {{"tokens", facts({2, 1}, {1, 2})}}},
               {1, 0, {{"tokens", facts({2, 1}, {3, 4})}}}};
  b.batches = {{0, 0, {{"tokens", facts({4, 1}, {1, 2, 3, 4})}}},
               {1, 0, {{"tokens", facts({4, 1}, {5, 6, 7, 8})}}}};
  a.settings["static"] = {{"train.accumulate", 1}};
  b.settings["static"] = {{"train.accumulate", 1}};
  const Section cut = check_batches(a, b);
  EXPECT_EQ(cut.level(), Level::Error);
  EXPECT_EQ(finding(cut, "all steps, tokens").advice,
            "the first 4 examples are the same, in the same order: the batch alone differs");
  EXPECT_EQ(finding(cut, "step 0, tokens").advice,
            "the same examples in the same order, in batches of another size");
  a.settings["static"] = {{"train.accumulate", 2}};
  const Section alike = check_batches(a, b);
  EXPECT_EQ(alike.level(), Level::Pass);
  EXPECT_EQ(finding(alike, "all steps, tokens").advice,
            "the same examples in the same order, cut into other micro-batches: 4 a step on both "
            "sides");
  // Where the run ends the side of smaller micro-batches has more of them.
  b.batches.pop_back();
  EXPECT_EQ(check_batches(a, b).level(), Level::Pass);
  EXPECT_EQ(check_batches(b, a).level(), Level::Pass);
  // In another order they are others, in however many micro-batches.
  b.batches[0].tensors[0].facts = facts({4, 1}, {1, 3, 2, 4});
  EXPECT_EQ(check_batches(a, b).level(), Level::Error);
}

// Of a side that keeps no hashes, as msprobe.
TEST(ConfigCheck, FiguresThatAreNoNumberAreAlike) {
  const double nan = std::nan("");
  Side a, b;
  a.weights = {{0, 0, {{"w", {nan, 1, 1, 1}}, {"v", {nan, nan, nan, nan}}}}};
  EXPECT_EQ(check_weights(a, a).level(), Level::Pass);
  b.weights = {{0, 0, {{"w", {nan, 2, 1, 1}}, {"v", {nan, nan, nan, nan}}}}};
  EXPECT_EQ(finding(check_weights(a, b), "step 0, w").level, Level::Error);
}

TEST(ConfigCheck, APackIsWhatWasPacked) {
  const TemporaryFolder folder;
  Side side;
  side.name = "a.toml";
  side.environment = {{"OMP_NUM_THREADS", "3"}};
  side.is_whole_environment = true;
  side.in_use = {{"threads", "3"}};
  side.packages = {{"aloft", "0.1.0"}};
  side.settings["static"] = {{"optimizer.lr", 1e-3},
                             {"x", nlohmann::ordered_json::array({1, "a"})},
                             {"y", nullptr, "", true},
                             {"z", true, "", false, true}};
  side.batches = {
      {0, 0, {{"tokens", facts({2, 2}, {1, 2, 3, 4})}, {"targets", facts({2}, {1, 0})}}},
      {1, 0, {{"tokens", facts({2, 2}, {5, 6, 7, 8})}}}};
  side.weights = {
      {0,
       0,
       {{"w \"1\"", facts({2, 3}, {1, 2, 3, 4, 5, -6})}, {"nan", facts({1}, {std::nanf("")})}}}};
  side.random = {{"torch.rand", 0, {"File t.py, line 1, in main, rand()"}, 2}};
  side.seed = "18446744073709551615";
  side.first_draws = {"0.5", "0.25"};
  write_pack(folder / "a.zip", side);
  const Side read = read_pack(folder / "a.zip");
  EXPECT_EQ(read.environment, side.environment);
  EXPECT_TRUE(read.is_whole_environment);
  EXPECT_EQ(read.in_use, side.in_use);
  EXPECT_EQ(read.seed, side.seed);
  ASSERT_EQ(read.settings.at("static").size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(read.settings.at("static")[i].value, side.settings["static"][i].value);
    EXPECT_EQ(read.settings.at("static")[i].is_default, side.settings["static"][i].is_default);
    EXPECT_EQ(read.settings.at("static")[i].is_harmless, side.settings["static"][i].is_harmless);
  }
  ASSERT_EQ(read.weights.size(), 1u);
  EXPECT_EQ(read.weights[0].tensors[0].name, "w \"1\"");
  EXPECT_TRUE(std::isnan(read.weights[0].tensors[1].facts.norm));
  const std::vector<Section> sections = check_sides(side, read);
  EXPECT_EQ(sections.size(), 6u);
  for (const Section& s : sections) EXPECT_EQ(s.level(), Level::Pass) << s.name;
  // msprobe's own packs have figures alone: an order is not seen, a value is.
  Side figures = read;
  for (StepTensors& s : figures.weights)
    for (NamedTensor& t : s.tensors) t.facts.hashes.reset();
  EXPECT_EQ(check_weights(side, figures).level(), Level::Pass);
  figures.weights[0].tensors[0].facts.mean += 0.001;
  EXPECT_EQ(check_weights(side, figures).level(), Level::Error);
}

TEST(ConfigCheck, DamagedPacksAreRefused) {
  const TemporaryFolder folder;
  Side side;
  side.packages = {{"torch", "2"}};
  side.settings["static"] = {{"a", 1}};
  write_pack(folder / "a.zip", side);
  const std::string whole = read_file(folder / "a.zip");
  const auto code = [](const std::string& bytes) -> std::string {
    try {
      static_cast<void>(parse_pack(std::as_bytes(std::span(bytes)), "a.zip"));
      return "";
    } catch (const DataError& e) {
      return e.code();
    }
  };
  EXPECT_EQ(code(whole), "");
  EXPECT_EQ(code(""), "E0845");
  EXPECT_EQ(code(whole.substr(0, whole.size() - 30)), "E0845");
  std::string other = whole;
  other[whole.find("torch=2")] = 'T';  // another checksum
  EXPECT_EQ(code(other), "E0845");
  other = whole;
  const std::size_t mark = whole.rfind("PK\x01\x02");  // of the last entry
  other[mark] = 'Q';
  EXPECT_EQ(code(other), "E0845");
}

TEST(ConfigCheck, PacksThatPythonDeflates) {
  // zipfile.ZipFile(..., compression=ZIP_DEFLATED).writestr("pip", "torch=2.1\n" * 40)
  const Path path = "tests/fuzz/corpus/config_check/deflated.zip";
  const Side side = read_pack(path);
  EXPECT_EQ(side.packages.at("torch"), "2.1");
  EXPECT_TRUE(side.is_whole_environment);
  EXPECT_EQ(side.settings.at("static").at(0).key, "lr");
  EXPECT_EQ(value_text(side.settings.at("static").at(0)), "0.002");  // of several files, the last
}

TEST(ConfigCheck, AWorkbookHasMsprobesSheets) {
  Side a, b;
  a.settings["static"] = {{"lr", 1e-4}, {"alone", 1}};
  b.settings["static"] = {{"learning_rate", "2e-4"}};
  a.packages = {{"torch", "2.10"}}, b.packages = {{"torch", "2.1"}};
  const std::vector<XlsxSheet> sheets = msprobe_sheets(check_sides(a, b));
  ASSERT_EQ(sheets.size(), 3u);
  EXPECT_EQ(sheets[0].rows, (std::vector<std::vector<std::string>>{{"hyperparameters", "error"},
                                                                   {"pip", "error"}}));
  EXPECT_EQ(sheets[2].rows[0],
            (std::vector<std::string>{"torch", "2.10", "2.1", "error",
                                      "install the same version on both sides"}));
  EXPECT_EQ(sheets[2].text_columns, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(sheets[1].rows[0][5], "mapping");
  EXPECT_EQ(sheets[1].rows[1][2], "Only in benchmark");
  EXPECT_EQ((sheets[1].fills.at({1, 6})), XlsxFill::Yellow);
  const TemporaryFolder folder;
  write_results(folder.path(), a, b, check_sides(a, b));
  const std::string book = read_file(folder / "result.xlsx");
  const auto parts = read_zip(std::as_bytes(std::span(book)), 1 << 20);
  EXPECT_NE(parts.at("xl/workbook.xml").find("name=\"hyperparameters\""), std::string::npos);
  EXPECT_NE(parts.at("xl/worksheets/sheet3.xml").find("2.10"), std::string::npos);
}

TEST(ConfigCheck, WeightsOfFiles) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, -6};
  const TensorView view{"w", {DType::F32, Shape{2, 3}}, std::as_bytes(std::span(values))};
  write_safetensors(folder / "model.safetensors", {&view, 1});
  for (const Path& path : {folder.path(), folder / "model.safetensors"}) {
    const auto weights = read_weights(path);
    ASSERT_TRUE(weights.has_value());
    EXPECT_EQ(likeness(weights->tensors.at(0).facts, facts({2, 3}, values)), Likeness::Same);
  }
  EXPECT_FALSE(read_weights("tests/fuzz/corpus/config_check").has_value());
  // torch.save of one tensor: no dictionary.
  EXPECT_THROW(static_cast<void>(read_weights("tests/fuzz/corpus/torch_file/tensor.pt")),
               DataError);
}

// The running average of the weights, in two forms, and an optimizer's state.
TEST(ConfigCheck, WeightsThatArePassedOverAreSaid) {
  testing::internal::CaptureStderr();
  const auto weights = read_weights("tests/fuzz/corpus/torch_file/average_beside.pt");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(weights->tensors.size(), 2u);
  EXPECT_NE(said.find("the tensors of \"model\" are compared, those of ema_model (2), shadow (2) "
                      "are not"),
            std::string::npos)
      << said;
}

// As torch 2.15 wrote them, each with a dense tensor beside.
TEST(ConfigCheck, TensorsOfFilesThatCannotBeReadAreNamed) {
  const Path files = "tests/fuzz/corpus/torch_file";
  for (const auto& [file, name] :
       {std::pair("negative_bit.pt", "neg"), std::pair("sparse.pt", "s: "),
        std::pair("float8.pt", "f8: "), std::pair("numpy_array.pt", "array: "),
        std::pair("big_endian.pt", "byteorder")})
    try {
      static_cast<void>(read_weights(files / file));
      ADD_FAILURE() << file;
    } catch (const DataError& e) {
      EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
    }
  const auto below = read_weights(files / "dictionary_below.pt");
  ASSERT_EQ(below->tensors.size(), 2u);
  EXPECT_EQ(below->tensors[1].name, "below.v");
  EXPECT_DOUBLE_EQ(below->tensors[1].facts.max, 12);
  const auto names_in = [&](const char* file) {
    std::vector<std::string> names;
    const auto weights = read_weights(files / file);
    for (const NamedTensor& t : weights->tensors) names.push_back(t.name);
    return names;
  };
  EXPECT_EQ(names_in("in_lists.pt"),
            (std::vector<std::string>{"list.0", "list.1.v", "tuple.0", "whole.0.exp_avg", "noted",
                                      "deep.a.b.c.d.e.f.g.h.i"}));
  EXPECT_EQ(names_in("noted.pt"), (std::vector<std::string>{"noted", "p"}));
  EXPECT_DOUBLE_EQ(read_weights(files / "noted.pt")->tensors[1].facts.max, 10);
  EXPECT_EQ(read_weights(files / "no_elements.pt")->tensors.at(0).facts.shape,
            (std::vector<std::int64_t>{16, 0}));
}

TEST(ConfigCheck, FiguresThatAreInfiniteAreHeldToEachOther) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto level = [](const TensorFacts& x, const TensorFacts& y) {
    Side a, b;
    a.weights = {{0, 0, {{"w", x}}}};
    b.weights = {{0, 0, {{"w", y}}}};
    return check_weights(a, b).level();
  };
  const auto figures = [](double max, double min, double mean, double norm) {
    TensorFacts f;
    f.shape = {4};
    f.max = max, f.min = min, f.mean = mean, f.norm = norm;
    return f;
  };
  const TensorFacts finite = figures(1, -1, 0.1, 3), whole = figures(kInf, -5, kInf, kInf);
  EXPECT_EQ(level(whole, whole), Level::Pass);
  EXPECT_EQ(level(finite, finite), Level::Pass);
  EXPECT_EQ(level(whole, finite), Level::Error);
  EXPECT_EQ(level(finite, whole), Level::Error);
  EXPECT_EQ(level(whole, figures(kInf, 5, kInf, kInf)), Level::Error);
  EXPECT_EQ(level(whole, figures(kInf, -5, -kInf, kInf)), Level::Error);
}

TEST(ConfigCheck, StepsThatOneSideAloneHasAreSaid) {
  Side a, b;
  a.weights = {{0, 0, {{"w", facts({2}, {1, 2})}}}};
  b.weights = a.weights;
  b.weights.push_back({1, 0, {{"w", facts({2}, {1, 3})}}});
  EXPECT_EQ(check_weights(a, a).level(), Level::Pass);
  EXPECT_EQ(check_weights(a, b).level(), Level::Warning);
  EXPECT_EQ(check_weights(b, a).level(), Level::Warning);
}

TEST(ConfigCheck, DrawsOfRandomNumbers) {
  Side a, b;
  a.random = {{"torch.rand", 0, {"File /a/t.py, line 1, in main, x = torch.rand(3)"}, 2},
              {"random.random", 0, {"File /a/t.py, line 9, in main, random.random()"}, 1}};
  b.random = {{"torch.rand", 0, {"File /b/t.py, line 4, in main, y = torch.rand(3)"}, 3}};
  a.seed = "1", b.seed = "2";
  const Section s = check_random(a, b);
  EXPECT_EQ(finding(s, "seed").level, Level::Error);
  EXPECT_EQ(s.findings[1].matched, "stack");
  EXPECT_EQ(s.findings[1].level, Level::Error);
  EXPECT_EQ(s.findings[2].b_name, "");
  EXPECT_EQ(check_random(a, a).level(), Level::Pass);
}

}  // namespace
}  // namespace aloft::config_check
