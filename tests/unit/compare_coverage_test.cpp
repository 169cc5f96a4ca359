// What one of two dumps lacks as a whole, and arguments that one run alone gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "observe/compare/steps.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

class CompareCoverage : public ::testing::Test {
 protected:
  // A training step of modules in a row.
  static Json training(int modules = 4) {
    const Json weight = {{"weight", tensor({4, 4}, 1)}};
    const Json moved = Json::array({tensor({2, 4}, 1)});
    Json data = Json::object();
    for (int i = 0; i < modules; ++i)
      data[name(i) + "forward.0"] = forward(tensor({2, 4}, 1), tensor({2, 4}, 1), weight);
    for (int i = modules; i-- > 0;) {
      data[name(i) + "backward.0"] = {{"input", moved}, {"output", moved}};
      data[name(i) + "parameters_grad.0"] = {{"weight", Json::array({tensor({4, 4}, 1)})}};
    }
    return data;
  }
  static std::string name(int i) { return "Module.h." + std::to_string(i) + ".Linear."; }
  static Json without(Json data, std::initializer_list<const char*> words) {
    Json left = Json::object();
    for (const auto& [entry, call] : data.items())
      if (std::ranges::none_of(words,
                               [&](const char* w) { return entry.find(w) != std::string::npos; }))
        left[entry] = call;
    return left;
  }
  static Json functions(std::initializer_list<const char*> names) {
    Json data = Json::object();
    for (const char* f : names) data[f] = forward(tensor({2, 4}, 1), tensor({2, 4}, 1));
    return data;
  }
  StepResult compare(const Json& npu, const Json& bench, Json loop = Json::object()) {
    TemporaryFolder::put(folder_ / "npu.json", Json{{"data", npu}, {"training", loop}}.dump());
    TemporaryFolder::put(folder_ / "bench.json", Json{{"data", bench}}.dump());
    return compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}}).at(0);
  }
  // What one lacks, whichever of the two it is; "" too where something is said to diverge.
  void expect(const Json& less, const Json& more, const std::string& said) {
    const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
      const std::size_t at = text.find(from);
      return at == std::string::npos ? text : text.replace(at, from.size(), to);
    };
    for (const bool is_first : {true, false}) {
      const StepResult r = is_first ? compare(less, more) : compare(more, less);
      const std::string as_first = replaced(said, "LESS", is_first ? "first" : "second");
      EXPECT_EQ(r.lacks, replaced(as_first, "MORE", is_first ? "second" : "first"));
      EXPECT_TRUE(r.sentence.starts_with("no divergence")) << r.sentence;
      EXPECT_NE(r.sentence.find(r.lacks), std::string::npos) << r.sentence;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(CompareCoverage, APassThatOneRunAloneHasIsSaid) {
  const Json all = training();
  EXPECT_EQ(compare(all, all).sentence,
            "no divergence: 24 tensors of 12 calls agree in their statistics");
  expect(without(all, {"backward", "parameters_grad"}), all, "the LESS run has no backward pass");
  expect(without(all, {"parameters_grad"}), all, "the LESS run has no gradient of any parameter");
  // In a step without training neither has one.
  const Json eval = without(all, {"backward", "parameters_grad"});
  expect(eval, eval, "");
  EXPECT_TRUE(compare(eval, all).sentence.starts_with(
      "no divergence: 12 of 24 tensors were compared, of 4 calls, and agree in their statistics"))
      << compare(eval, all).sentence;
}

TEST_F(CompareCoverage, ThatMostCallsAreMissingIsSaid) {
  const Json all = training();
  expect(without(all, {"h.1.", "h.2.", "h.3."}), all,
         "most tensors are in the MORE run alone, such as those of h.1 (Linear)");
  // One of several is counted, and no more.
  expect(without(all, {"h.3."}), all, "");
  EXPECT_TRUE(compare(without(all, {"h.3."}), all)
                  .sentence.starts_with("no divergence: 18 of 24 tensors were compared"));
}

// Functions of one program alone are a gap; where both have their own, they are other programs.
TEST_F(CompareCoverage, FunctionsAreCountedWhereThereIsNothingElse) {
  const Json all = functions({"Functional.linear.0.forward", "Functional.relu.0.forward",
                              "Functional.tanh.0.forward", "Functional.exp.0.forward"});
  const Json one = functions({"Functional.linear.0.forward"});
  expect(one, all,
         "most tensors are in the MORE run alone, such as those of Functional.relu.0.forward");
  const Json other = functions(
      {"Functional.linear.0.forward", "Functional.gelu.0.forward", "Functional.softmax.0.forward"});
  expect(other, all, "");
  // Of another framework, which has another name for it.
  expect(functions({"Torch.linear.0.forward"}), all, "");
}

// Of a parameter that a run lists, and of which it has no gradient or update.
TEST_F(CompareCoverage, ATensorBesideNoneIsNotCompared) {
  Json all = training();
  const std::string update = name(1) + "parameters_update.0", sum = name(1) + "parameters_grad.0";
  all[update] = {{"weight", Json::array({tensor({4, 4}, 1)})}};
  for (const std::string& entry : {sum, update}) {
    Json none = all;
    none[entry] = {{"weight", Json::array({nullptr})}};
    for (const auto& [npu, bench] : {std::pair(none, all), std::pair(all, none)}) {
      const StepResult r = compare(npu, bench);
      EXPECT_TRUE(r.sentence.starts_with("no divergence: 24 of 25 tensors were compared"))
          << r.sentence;
      EXPECT_EQ(r.lacks, "");
    }
    EXPECT_TRUE(compare(none, none).sentence.starts_with("no divergence: 24 tensors of"));
  }
}

// Functions beside a dump of modules alone, and micro-batches of which one run has the last.
TEST_F(CompareCoverage, WhatTheKindOfDumpExplainsIsNoGap) {
  const Json modules = training();
  Json mixed = modules;
  for (int i = 0; i < 40; ++i)
    mixed["Functional.add." + std::to_string(i) + ".forward"] =
        forward(tensor({2, 4}, 1), tensor({2, 4}, 1));
  expect(modules, mixed, "");
  EXPECT_EQ(compare(modules, mixed).sentence, compare(modules, modules).sentence);

  Json parts = Json::object();
  for (const auto& [entry, call] : modules.items())
    for (int i = 0; i < 4; ++i)
      if (entry.find("parameters_grad") == std::string::npos || i == 0)
        parts[entry.substr(0, entry.size() - 1) + std::to_string(i)] = call;
  const StepResult r = compare(parts, modules, {{"micro_batches", 4}});
  EXPECT_EQ(r.lacks, "") << r.sentence;
}

// Of functions alone there are gradients and updates of parameters, too, which are of modules.
TEST_F(CompareCoverage, WhatBecomesOfParametersIsNoModuleOfADump) {
  const char* const said = "; modules are in the ";
  const Json plain = functions({"Torch.linear.0.forward", "Torch.gelu.0.forward"});
  Json moved = plain;
  for (const char* what : {"parameters_grad.0", "parameters_update.0"})
    moved[name(0) + what] = {{"weight", Json::array({tensor({4, 4}, 1)})}};
  for (const auto& [npu, bench] : {std::pair(plain, moved), std::pair(moved, plain)})
    EXPECT_EQ(compare(npu, bench).sentence.find(said), std::string::npos)
        << compare(npu, bench).sentence;
  for (const char* what : {"forward.0", "backward.0"}) {
    Json one = plain;
    one[name(0) + what] = training(1).at(name(0) + what);
    EXPECT_NE(compare(plain, one).sentence.find("; modules are in the second run's dump alone"),
              std::string::npos)
        << compare(plain, one).sentence;
  }
}

TEST_F(CompareCoverage, AnArgumentOfOneRunAloneIsNamed) {
  const auto run = [](const Json& mask, double out) {
    Json call = forward(tensor({2, 4}, 1), tensor({2, 4}, out));
    if (!mask.is_discarded()) call["input_kwargs"]["attention_mask"] = mask;
    return Json{{"Module.h.0.attn.Attention.forward.0", call}};
  };
  const Json mask = tensor({2, 1, 4, 4}, 1, "torch.bool"), none = nullptr;
  const Json absent = Json::value_t::discarded;
  constexpr const char* kSaid = "h.0.attn takes attention_mask in the ";
  for (const Json& other : {none, absent}) {
    const std::string first = compare(run(mask, 2), run(other, 1)).sentence;
    EXPECT_NE(first.find(std::string(kSaid) + "first run alone"), std::string::npos) << first;
    const Json said = Json::parse(read_file(folder_ / "out/compare_result.json"));
    EXPECT_EQ(said["divergence"]["arguments"].dump(),
              R"([{"call":"Module.h.0.attn.Attention.forward.0","argument":"attention_mask",)"
              R"("dtype":"torch.bool","run":"npu"}])");
    const std::string second = compare(run(other, 2), run(mask, 1)).sentence;
    EXPECT_NE(second.find(std::string(kSaid) + "second run alone"), std::string::npos) << second;
  }
  EXPECT_EQ(compare(run(mask, 2), run(mask, 1)).sentence.find("alone"), std::string::npos);
}

TEST_F(CompareCoverage, FiguresInJsonAreNumbers) {
  Json out = tensor({2, 4}, 2);
  out["Max"] = "inf", out.erase("Mean");
  const Json run = {{"Module.a.A.forward.0", forward(tensor({2, 4}, 1), out)}};
  compare(run, run);
  const Json said = Json::parse(read_file(folder_ / "out/compare_result.json"));
  EXPECT_EQ(said["compared"][1]["npu"].dump(),
            R"({"name":"Module.a.A.forward.0.output.0","dtype":"torch.float32","shape":[2,4],)"
            R"("max":"inf","min":-1.0,"mean":null,"norm":2.0})");
  EXPECT_EQ(said["coverage"].dump(), R"({"compared":2,"of":2,"lacks":""})");
}

class CompareMany : public CompareCoverage {
 protected:
  void put(const std::string& run, int step, double out) {
    const Path folder = folder_ / run / ("step" + std::to_string(step));
    make_folder(folder);
    const Json data = {{"Module.a.A.forward.0", forward(tensor({2, 4}, 1), tensor({2, 4}, out))}};
    TemporaryFolder::put(folder / "dump.json", Json{{"data", data}}.dump());
  }
  std::vector<StepResult> compare_all_steps() {
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}});
  }
};

TEST_F(CompareMany, OneStepIsTheFirstThatParts) {
  for (int step = 0; step < 4; ++step) put("npu", step, step < 2 ? 1 : 2), put("bench", step, 1);
  const auto results = compare_all_steps();
  EXPECT_TRUE(results[1].sentence.starts_with("step1: no divergence")) << results[1].sentence;
  EXPECT_TRUE(results[2].sentence.starts_with("step2: first divergence: forward, a (A)"))
      << results[2].sentence;
  EXPECT_TRUE(results[3].sentence.starts_with("step3: also: forward, a (A)"))
      << results[3].sentence;
  const std::string last = summary_of(results);
  EXPECT_TRUE(last.starts_with("first at step2: forward, a (A): what a gives")) << last;
  EXPECT_TRUE(last.ends_with("; 2 of 4 steps part")) << last;
  // A page, and a file for programs, of all steps.
  const Json said = Json::parse(read_file(folder_ / "out/compare_result.json"));
  EXPECT_EQ(said["sentence"], last);
  EXPECT_EQ(said["steps"].size(), 4u);
  EXPECT_EQ(said["steps"][2]["files"][2], "compare_result_step2.html");
  EXPECT_EQ(said["steps"][2]["diverges"], true);
  EXPECT_NE(read_file(folder_ / "out/compare_result.html").find(last.substr(0, 40)),
            std::string::npos);
  for (int step = 2; step < 4; ++step) put("npu", step, 1);
  EXPECT_EQ(summary_of(compare_all_steps()), "no divergence in 4 steps");
}

TEST_F(CompareMany, ResultsOfAnEarlierComparisonAreRemoved) {
  for (int step = 0; step < 3; ++step) put("npu", step, 1), put("bench", step, 1);
  compare_all_steps();
  const Path out = folder_ / "out";
  for (const char* own : {"compare_results.csv", "compare_result_2026.csv", "compare_result.txt"})
    TemporaryFolder::put(out / own, "not of this program");
  EXPECT_TRUE(path_exists(out / "compare_result_step2.html"));
  for (const char* run : {"npu", "bench"}) std::filesystem::remove_all(folder_ / run / "step2");
  compare_all_steps();
  EXPECT_TRUE(path_exists(out / "compare_result_step1.html"));
  EXPECT_FALSE(path_exists(out / "compare_result_step2.html"));
  compare(training(), training());
  EXPECT_FALSE(path_exists(out / "compare_result_step1.csv"));
  EXPECT_TRUE(path_exists(out / "compare_result.csv"));
  for (const char* own : {"compare_results.csv", "compare_result_2026.csv", "compare_result.txt"})
    EXPECT_TRUE(path_exists(out / own)) << own;
}

}  // namespace
}  // namespace aloft::compare
