// Several steps of two runs compared: updates, what the training loops say, micro-batches, and one
// module beside several.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "observe/compare/divergence.h"
#include "observe/compare/dump_pairs.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// A step of a model of one product.
struct Step {
  double weight = 5, gradient = 2, update = 0.5;
  Json training = Json::object();

  Json data() const {
    const Json own = {{"weight", Json::array({tensor({4, 4}, gradient)})}};
    const Json added = {{"weight", Json::array({tensor({4, 4}, update)})}};
    return {{"Module.fc.Linear.forward.0",
             forward(tensor({8, 4}, 3), tensor({8, 4}, 7), {{"weight", tensor({4, 4}, weight)}})},
            {"Module.fc.Linear.parameters_grad.0", own},
            {"Module.fc.Linear.parameters_update.0", added}};
  }
};

class CompareSteps : public ::testing::Test {
 protected:
  void put(const std::string& run, const std::string& step, const Json& data,
           const Json& training) {
    const Path folder = folder_ / run / step / "rank";
    make_folder(folder);
    const Json dump = {{"task", "statistics"}, {"training", training}, {"data", data}};
    TemporaryFolder::put(folder / "dump.json", dump.dump());
  }
  // What is said of each step, where the first run has `npu` and the second `bench`.
  std::vector<std::string> said(const std::vector<Step>& npu, const std::vector<Step>& bench) {
    for (std::size_t i = 0; i < npu.size(); ++i) {
      put("npu", "step" + std::to_string(i), npu[i].data(), npu[i].training);
      put("bench", "step" + std::to_string(i), bench[i].data(), bench[i].training);
    }
    std::vector<std::string> sentences;
    for (const StepResult& r :
         compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}}))
      sentences.push_back(r.sentence);
    return sentences;
  }
  static bool is_said(const std::string& sentence, const std::string& part) {
    return sentence.find(part) != std::string::npos;
  }

  TemporaryFolder folder_;
};

// A loop that tells the loss as backward() takes it, divided by the number of its micro-batches.
TEST_F(CompareSteps, ALossThatIsDividedByMicroBatchesIsARemark) {
  const auto run = [](std::vector<double> losses, double gradient = 2, int told = 0) {
    std::vector<Step> steps;
    for (const double loss : losses) {
      steps.push_back({5, gradient, 0.5, {{"loss", loss}}});
      if (told > 0) steps.back().training["losses"] = told;
    }
    return steps;
  };
  const std::string divided = "; no divergence: the first run's loss is divided by 2 micro-batches";
  for (const int told : {0, 2}) {
    const auto all = said(run({1.5, 1.25}, 2, told), run({3, 2.5}));
    for (const std::string& one : all) {
      EXPECT_TRUE(one.starts_with("step0: no divergence: ") || one.starts_with("step1: no div"))
          << one;
      EXPECT_TRUE(is_said(one, divided)) << one;
      EXPECT_TRUE(is_said(one, "; gradients agree")) << one;
    }
    EXPECT_TRUE(
        is_said(said(run({3}), run({1.5}, 2, told))[0], "the second run's loss is divided"));
  }
  // The remark hides no mistake.
  auto other = run({1.5}), right = run({3});
  for (Step* const s : {&other[0], &right[0]})
    s->training["optimizer"] = {{"kind", "adam"}, {"betas", {0.9, s == &right[0] ? 0.95 : 0.999}}};
  const std::string line = said(other, right)[0];
  EXPECT_TRUE(is_said(line, "first divergence: optimizer: betas of adam is ")) << line;
  EXPECT_TRUE(is_said(line, divided)) << line;
  // Another quotient than in the step before, than the dump says, or than a whole number; and a
  // loss whose gradients are divided, too, or not there.
  const auto last = said(run({1.5, 0.5}), run({3, 3}));
  EXPECT_TRUE(is_said(last[0], divided)) << last[0];
  EXPECT_TRUE(is_said(last[1], "first divergence: loss: the loss is 0.5 against 3")) << last[1];
  EXPECT_TRUE(is_said(said(run({3, 1.5}), run({3, 3}))[1], "first divergence: loss: "));
  for (const auto& wrong :
       {run({1}, 2, 2), run({1.4}, 2, 2), run({1.4}), run({1.5}, 1), run({-1.5})})
    EXPECT_TRUE(is_said(said(wrong, right)[0], "first divergence: loss: "));
  put("npu", "step0", {{"Module.fc.Linear.forward.0", forward(tensor({8}, 3), tensor({8}, 7))}},
      {{"loss", 1.5}});
  put("bench", "step0", {{"Module.fc.Linear.forward.0", forward(tensor({8}, 3), tensor({8}, 7))}},
      {{"loss", 3}});
  EXPECT_TRUE(
      is_said(compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence,
              "first divergence: loss: "));
}

TEST_F(CompareSteps, ARefusedComparisonLeavesTheResultsOfTheOneBefore) {
  said({{}, {}}, {{}, {}});
  const auto names = [&] {
    std::vector<std::string> all;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "out"))
      all.push_back(file.path().filename().string());
    std::ranges::sort(all);
    return all;
  };
  const auto before = names();
  EXPECT_EQ(before.size(), 8u);
  TemporaryFolder::put(folder_ / "bench/step1/rank/dump.json", "{");
  const std::string page = read_file(folder_ / "out/compare_result_step0.html");
  EXPECT_THROW(compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}}), DataError);
  EXPECT_THROW(compare_runs({folder_ / "npu", folder_ / "none", folder_ / "out", {}}), DataError);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(read_file(folder_ / "out/compare_result_step0.html"), page);
  // One that is through leaves nothing of it.
  compare_runs({folder_ / "npu/step0", folder_ / "bench/step0", folder_ / "out", {}});
  EXPECT_EQ(names().size(), 3u);
}

TEST_F(CompareSteps, AnotherUpdateIsNamed) {
  Step other;
  other.update = 0.6;
  const auto all = said({{}, other}, {{}, {}});
  EXPECT_TRUE(is_said(all[0], "no divergence")) << all[0];
  EXPECT_TRUE(is_said(all[1], "update, fc (Linear): what the update adds to fc.weight is off"))
      << all[1];
}

// A third of a bias of attention has no gradient but rounding: adagrad moves it as far as the rest,
// in either run.
TEST_F(CompareSteps, AVectorsUpdateMayBeLongerInEitherRun) {
  const auto moved = [](double norm) {
    Json data = Step().data();
    data["Module.fc.Linear.forward.0"]["output"][0]["dtype"] = "torch.bfloat16";
    data["Module.fc.Linear.parameters_update.0"]["bias"] = Json::array({tensor({96}, norm)});
    return data;
  };
  const auto said_of = [&](double npu, double bench) {
    put("npu", "step0", moved(npu), Json::object());
    put("bench", "step0", moved(bench), Json::object());
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  };
  EXPECT_TRUE(is_said(said_of(1.7, 1), "no divergence")) << said_of(1.7, 1);
  EXPECT_TRUE(is_said(said_of(1, 1.7), "no divergence")) << said_of(1, 1.7);
  EXPECT_TRUE(is_said(said_of(2, 1), "what the update adds to fc.bias")) << said_of(2, 1);
  EXPECT_TRUE(is_said(said_of(1, 2), "what the update adds to fc.bias")) << said_of(1, 2);
  // A matrix is measured by the second run's.
  const auto matrix = [&](double npu, double bench) {
    for (const auto& [run, norm] : {std::pair("npu", npu), std::pair("bench", bench)}) {
      Json data = moved(1);
      data["Module.fc.Linear.parameters_update.0"]["weight"][0] = tensor({4, 4}, norm);
      put(run, "step0", data, Json::object());
    }
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  };
  EXPECT_TRUE(is_said(matrix(1.4, 1), "fc.weight is off by 0.4 in Max")) << matrix(1.4, 1);
}

// Behind an update in a low type max pooling may choose another element: the largest gradient is
// then another one's, and all together are as long as before.
TEST_F(CompareSteps, AnExtremeOfAGradientBehindAGateMayBeAnother) {
  const auto step = [](double largest, double norm, const char* type, const char* part) {
    Json data = Step{.update = 0.02}.data();
    Json moved = tensor({8, 4}, 2, type);
    data["Module.fc.Linear.backward.0"] = {{"input", Json::array({moved})},
                                           {"output", Json::array()}};
    data["Module.fc.Linear.forward.0"]["output"][0] = moved;
    Json& other = data["Module.fc.Linear." + std::string(part) + ".0"]
                      [part == std::string("forward") ? "output" : "input"][0];
    other["Max"] = largest, other["Norm"] = norm;
    return data;
  };
  const auto* const f16 = "torch.float16";
  const auto* const f32 = "torch.float32";
  const auto said_behind = [&](double largest, double norm, const char* type, const char* part) {
    for (const auto* name : {"step0", "step1"}) {
      const bool is_first = std::string_view(name) == "step0";
      put("npu", name, step(is_first ? 1 : largest, is_first ? 2 : norm, type, part),
          Json::object());
      put("bench", name, step(1, 2, f32, part), Json::object());
    }
    const auto all = compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}});
    return is_said(all[0].sentence, "no divergence") ? all[1].sentence : all[0].sentence;
  };
  const auto gradient = [&](double largest, double norm) {
    return said_behind(largest, norm, f16, "backward");
  };
  EXPECT_TRUE(is_said(gradient(0.988, 2), "no divergence")) << gradient(0.988, 2);
  EXPECT_TRUE(is_said(gradient(0.98, 2), "in Max")) << gradient(0.98, 2);
  // The length is off, too, by more than is allowed: no gate.
  EXPECT_TRUE(is_said(gradient(0.9875, 1.978), "in Max")) << gradient(0.9875, 1.978);
  // Values have no gates behind them, and float32 opens none of them otherwise.
  const std::string value = said_behind(0.992, 2, f16, "forward");
  EXPECT_TRUE(is_said(value, "what fc gives (0) is off by 0.008 in Max")) << value;
  const std::string exact = said_behind(0.99994, 2, f32, "backward");
  EXPECT_TRUE(is_said(exact, "is off by 6e-05 in Max")) << exact;
  // Nor is any where nothing was trained apart.
  for (const char* run : {"npu", "bench"}) std::filesystem::remove_all(folder_ / run / "step1");
  put("npu", "step0", step(0.99, 2, f16, "backward"), Json::object());
  const auto first = compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}});
  EXPECT_TRUE(is_said(first[0].sentence, "is off by 0.01 in Max")) << first[0].sentence;
}

// A micro-batch that is left out makes gradients others; a sum that is kept in bfloat16 rounds
// them.
TEST_F(CompareSteps, HowFarAllGradientsAreOffSaysWhy) {
  const auto step = [](double gradient) {
    Json data = Json::object();
    for (const std::string name : {"a", "b", "c", "d"}) {
      const std::string call = "Module." + name + ".Linear.";
      data[call + "forward.0"] =
          forward(tensor({8, 4}, 3), tensor({8, 4}, 3), {{"weight", tensor({4, 4}, 5)}});
      data[call + "parameters_grad.0"] = {{"weight", Json::array({tensor({4, 4}, gradient)})}};
    }
    return data;
  };
  const auto said_of = [&](double gradient) {
    put("npu", "step0", step(gradient), Json::object());
    put("bench", "step0", step(2), Json::object());
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  };
  EXPECT_TRUE(is_said(said_of(2.004), "by 0.002 at most: they may be summed or kept in a low type"))
      << said_of(2.004);
  EXPECT_TRUE(is_said(said_of(1.9), "they are summed over other micro-batches")) << said_of(1.9);
}

// A search for the loss scale skips steps: that is no mistake of the layer that overflows first.
TEST_F(CompareSteps, AStepThatTheLossScaleSkipsIsNoMistakeOfALayer) {
  const auto step = [&](const char* norm, double largest, double scale, bool skipped) {
    Json data = Step().data();
    Json gradient = tensor({8, 4}, 2, scale > 1 ? "torch.float16" : "torch.float32");
    gradient["Max"] = largest, gradient["Min"] = -largest;
    if (*norm != '\0') gradient["Norm"] = gradient["Max"] = norm;
    data["Module.fc.Linear.backward.0"] = {{"input", Json::array({gradient})},
                                           {"output", Json::array()}};
    const Json training = {{"loss_scale", scale}, {"skipped", skipped}};
    return std::pair(data, training);
  };
  const auto said_of = [&](double largest) {
    const auto [npu, of_npu] = step("inf", 1, 65536, true);
    const auto [bench, of_bench] = step("", largest, 1, false);
    put("scaled", "step0", npu, of_npu);
    put("plain", "step0", bench, of_bench);
    return compare_runs({folder_ / "scaled", folder_ / "plain", folder_ / "out", {}})[0].sentence;
  };
  const std::string skipped = said_of(1);
  EXPECT_TRUE(is_said(skipped, "update: the first run skipped its update")) << skipped;
  EXPECT_TRUE(is_said(skipped, "loss scale of 65536")) << skipped;
  // Gradients that no such scale makes infinite are something else.
  const std::string wrong = said_of(0.01);
  EXPECT_TRUE(is_said(wrong, "first divergence: backward")) << wrong;
}

TEST_F(CompareSteps, StepsOfOneRunAloneAreNamed) {
  const Step step;
  for (const char* name : {"step0", "step1", "step2", "step3", "step10"})
    put("long", name, step.data(), step.training);
  put("short", "step0", step.data(), step.training);
  put("short", "step4", step.data(), step.training);
  std::string alone;
  EXPECT_EQ(pair_dump_files(folder_ / "long", folder_ / "short", &alone).size(), 1u);
  EXPECT_EQ(alone, "step1, step2, step3 and 1 more of " + (folder_ / "long").string() +
                       "; step4 of " + (folder_ / "short").string());
  pair_dump_files(folder_ / "long", folder_ / "long", &alone);
  EXPECT_EQ(alone, "");
}

TEST_F(CompareSteps, AParameterWithoutUpdateIsNamed) {
  Step step;
  Json both = step.data(), one;
  both["Module.norm.Norm.forward.0"] = forward(tensor({8, 4}, 7), tensor({8, 4}, 7));
  both["Module.norm.Norm.parameters_update.0"] = {{"weight", Json::array({tensor({4}, 1)})}};
  one = both;
  one.erase("Module.norm.Norm.parameters_update.0");
  put("npu", "step0", one, {{"gradient_norm", 0.9}});
  put("bench", "step0", both, {{"gradient_norm", 1.0}});
  const auto said = compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}});
  EXPECT_TRUE(is_said(said[0].sentence, "what the update adds to norm.weight is missing"))
      << said[0].sentence;
}

TEST_F(CompareSteps, ParametersMayBeAsFarApartAsUpdatesWere) {
  Step near, far;
  near.weight = 5.0001, far.weight = 5.1;
  EXPECT_TRUE(is_said(said({{}, near}, {{}, {}})[1], "no divergence"));
  EXPECT_TRUE(is_said(said({{}, far}, {{}, {}})[1], "is another one before the step"));
  // Before the first update they are what was loaded.
  EXPECT_TRUE(is_said(said({near, {}}, {{}, {}})[0], "is another one before the step"));
}

TEST_F(CompareSteps, OtherTokensAreData) {
  const auto with = [&](const std::string& run, int most, int rows) {
    Json tokens = tensor({rows, 4}, 9);
    tokens["dtype"] = "torch.int64", tokens["Max"] = most, tokens["Min"] = 0;
    Json data;
    data["Module.wte.Embedding.forward.0"] = forward(tokens, tensor({rows, 4, 4}, 7));
    const Json own = Step().data();
    for (const auto& [name, entry] : own.items()) data[name] = entry;
    put(run, "step0", data, Json::object());
  };
  const auto said = [&] {
    const auto all = compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}});
    return all[0].sentence;
  };
  with("bench", 95, 8);
  with("npu", 95, 8);
  EXPECT_TRUE(is_said(said(), "no divergence")) << said();
  with("npu", 94, 8);
  EXPECT_TRUE(is_said(said(), "data: what wte takes (0) is other (Max 94 against 95)")) << said();
  with("npu", 95, 4);
  EXPECT_TRUE(is_said(said(), "data: what wte takes (0) has the shape [4, 4] against [8, 4]"))
      << said();
}

// Rows of a table, and tokens, have no order that statistics see: nothing is claimed of them.
TEST_F(CompareSteps, WhatATableGivesMayBeAnotherOrder) {
  const auto with = [&](const std::string& run, double table_gives, double sum) {
    Json tokens = tensor({8, 4}, 9);
    tokens["dtype"] = "torch.int64", tokens["Max"] = 95, tokens["Min"] = 0;
    const Json weight = {{"weight", tensor({96, 4}, 5)}};
    Json data, rows = tensor({8, 4, 4}, table_gives);
    rows["Max"] = 3;  // which is no factor of all figures
    data["Module.wte.Embedding.forward.0"] = forward(tokens, rows, weight);
    data["Module.drop.Dropout.forward.0"] = forward(tensor({8, 4, 4}, sum), tensor({8, 4, 4}, sum));
    put(run, "step0", data, Json::object());
  };
  const auto said = [&](double table_gives, double sum) {
    with("bench", 7, 9);
    with("npu", table_gives, sum);
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  };
  EXPECT_TRUE(is_said(said(8, 10), "or their rows lie in another order")) << said(8, 10);
  EXPECT_FALSE(is_said(said(8, 10), "parameters are the same:")) << said(8, 10);
  EXPECT_TRUE(is_said(said(7, 10), "what drop takes (0)")) << said(7, 10);
  EXPECT_TRUE(is_said(said(7, 10), "by the same tokens, dumps of `--task tensor` say"))
      << said(7, 10);
}

// Rows that are the same times a constant were read by the same tokens.
TEST_F(CompareSteps, ATableThatIsScaledReadsTheSameData) {
  const auto said = [&](double factor, double most) {
    const auto with = [&](const std::string& run, double norm, double max) {
      Json tokens = tensor({8, 4}, 9, "torch.int64"), rows = tensor({8, 4, 4}, norm);
      tokens["Max"] = 95, tokens["Min"] = 0, rows["Max"] = max;
      const Json weight = {{"weight", tensor({96, 4}, 5)}};
      put(run, "step0", {{"Module.wte.Embedding.forward.0", forward(tokens, rows, weight)}},
          Json::object());
    };
    with("bench", 7, 3), with("npu", 7 * factor, most);
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0];
  };
  const std::string scaled = said(6.93, 3 * 6.93).sentence;
  EXPECT_TRUE(is_said(scaled, "first divergence: forward, wte")) << scaled;
  EXPECT_TRUE(is_said(scaled, "figures are 6.93 times those of the second run")) << scaled;
  EXPECT_FALSE(is_said(scaled, "other data")) << scaled;
  const std::string other = said(6.93, 3 * 6).sentence;
  EXPECT_TRUE(is_said(other, "reads other data")) << other;
  EXPECT_FALSE(is_said(other, "times those")) << other;
}

// Where tokens met positions, and the sum is the same, their order is: what differs behind it is
// said to be off and nothing else. In low types the sum may be the same by rounding.
TEST_F(CompareSteps, TwoTablesThatWereAddedUpShowTheOrder) {
  const auto with = [&](const std::string& run, const char* type, bool has_positions,
                        double mixed) {
    Json tokens = tensor({8, 4}, 9, "torch.int64");
    const Json weight = {{"weight", tensor({96, 4}, 5, type)}};
    Json data;
    const auto add = [&](const char* name, Json in, Json out, const Json& parameters) {
      data[name] = forward(std::move(in), std::move(out), parameters);
    };
    add("Module.wte.Embedding.forward.0", tokens, tensor({8, 4, 4}, 7, type), weight);
    if (has_positions)
      add("Module.wpe.Embedding.forward.0", tokens, tensor({8, 4, 4}, 6, type), weight);
    add("Module.ln.LayerNorm.forward.0", tensor({8, 4, 4}, 9, type), tensor({8, 4, 4}, 8, type),
        Json::object());
    add("Module.proj.Linear.forward.0", tensor({8, 4, 4}, mixed, type), tensor({8, 4, 4}, 8, type),
        Json::object());
    put(run, "step0", data, Json::object());
  };
  const auto said = [&](const char* type, bool has_positions) {
    with("bench", type, has_positions, 10);
    with("npu", type, has_positions, 20);
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  };
  constexpr const char* kOrder = "statistics see no order";
  EXPECT_TRUE(is_said(said("torch.float32", false), kOrder));
  EXPECT_TRUE(is_said(said("torch.bfloat16", true), kOrder));
  EXPECT_FALSE(is_said(said("torch.float32", true), kOrder));
  EXPECT_TRUE(is_said(said("torch.float32", true), "what proj takes (0)"));
}

// Where all that agrees are statistics, and the loss does not, another order may be why.
TEST_F(CompareSteps, ALossBehindTheSameStatisticsMayBeOfAnotherOrder) {
  const auto with = [&](const std::string& run, double loss) {
    put(run, "step0",
        {{"Module.a.Linear.forward.0", forward(tensor({8, 4}, 3), tensor({8, 4}, 7))}},
        {{"loss", loss}});
  };
  with("bench", 2), with("npu", 3);
  const std::string said =
      compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  EXPECT_TRUE(is_said(said, "first divergence: loss")) << said;
  EXPECT_TRUE(is_said(said, "another order, which statistics do not see")) << said;
}

// An optimizer that was not given a parameter takes fewer gradients, too.
TEST_F(CompareSteps, AnUpdateThatOneRunAloneHasIsFoundEitherWay) {
  const auto with = [&](const std::string& run, bool has_bias, double norm) {
    const Json parameters = {{"weight", tensor({4, 4}, 5)}, {"bias", tensor({4}, 5)}};
    Json data, updates = {{"weight", Json::array({tensor({4, 4}, 0.5)})}};
    if (has_bias) updates["bias"] = Json::array({tensor({4}, 0.5)});
    data["Module.a.Linear.forward.0"] = forward(tensor({8, 4}, 3), tensor({8, 4}, 7), parameters);
    data["Module.a.Linear.parameters_update.0"] = updates;
    put(run, "step0", data, {{"gradient_norm", norm}});
  };
  const auto said = [&] {
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  };
  with("npu", true, 2);
  with("bench", false, 1);
  EXPECT_TRUE(is_said(said(), "what the update adds to a.bias is there in the first run alone"))
      << said();
  with("npu", false, 1);
  with("bench", true, 2);
  EXPECT_TRUE(is_said(said(), "what the update adds to a.bias is missing")) << said();
}

// Which parameters decay is no number of the loop, and shows in what is off alone.
TEST_F(CompareSteps, TheGroupThatIsUpdatedOtherwiseIsNamed) {
  // Updates of the weights of two products, of their biases (below 0: of the second alone), and of
  // two norms.
  const auto put_run = [&](const std::string& run, double weight, double bias, double norm) {
    Json data;
    for (const char* path : {"a", "b"}) {
      const std::string module = std::string("Module.") + path + ".Linear.";
      data[module + "forward.0"] =
          forward(tensor({8, 4}, 3), tensor({8, 4}, 7),
                  {{"weight", tensor({4, 4}, 5)}, {"bias", tensor({4}, 5)}});
      Json& updates = data[module + "parameters_update.0"];
      updates["weight"] = Json::array({tensor({4, 4}, weight)});
      if (bias > 0 || path == std::string("b"))
        updates["bias"] = Json::array({tensor({4}, std::abs(bias))});
    }
    for (const char* path : {"c", "d"}) {
      const std::string module = std::string("Module.") + path + ".LayerNorm.";
      data[module + "forward.0"] =
          forward(tensor({8, 4}, 7), tensor({8, 4}, 7), {{"weight", tensor({4}, 5)}});
      data[module + "parameters_update.0"] = {{"weight", Json::array({tensor({4}, norm)})}};
    }
    put(run, "step0", data, {{"optimizer", {{"kind", "adamw"}, {"weight_decay", 0.1}}}});
  };
  const auto said = [&](double weight, double bias, double norm) {
    put_run("bench", 0.5, 0.5, 0.5);
    put_run("npu", weight, bias, norm);
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[0].sentence;
  };
  EXPECT_TRUE(is_said(said(0.5, 0.8, 0.8),
                      "; only parameters that are no matrices are off, which do not decay"))
      << said(0.5, 0.8, 0.8);
  EXPECT_TRUE(is_said(said(0.8, 0.5, 0.5),
                      "; only matrices are off, the parameters that decay by the usual rule"))
      << said(0.8, 0.5, 0.5);
  EXPECT_TRUE(is_said(said(0.5, 0.5, 0.8), "; only parameters of LayerNorm are off"))
      << said(0.5, 0.5, 0.8);
  EXPECT_FALSE(is_said(said(0.8, 0.8, 0.8), "only")) << said(0.8, 0.8, 0.8);
  // One that is left out of the update says nothing of what decays.
  EXPECT_TRUE(is_said(said(0.5, -0.5, 0.5), "a.bias is missing")) << said(0.5, -0.5, 0.5);
  EXPECT_FALSE(is_said(said(0.5, -0.5, 0.5), "decay")) << said(0.5, -0.5, 0.5);
}

// A head that is the table of embeddings has its updates under the table's name.
TEST_F(CompareSteps, AParameterOfTwoNamesMayBeAsFarApartAsItsUpdatesWere) {
  const auto put_step = [&](const std::string& run, int i, double weight, double head) {
    Step step;
    step.weight = weight;
    Json data = step.data();
    data["Module.head.Linear.forward.0"] =
        forward(tensor({8, 4}, 7), tensor({8, 4}, 7), {{"weight", tensor({4, 4}, head)}});
    put(run, "step" + std::to_string(i), data, Json::object());
  };
  const auto said = [&] {
    return compare_runs({folder_ / "npu", folder_ / "bench", folder_ / "out", {}})[1].sentence;
  };
  for (const char* run : {"npu", "bench"}) put_step(run, 0, 5, 5);
  put_step("bench", 1, 5, 5);
  put_step("npu", 1, 5.0001, 5.0001);
  EXPECT_TRUE(is_said(said(), "no divergence")) << said();
  put_step("npu", 1, 5, 5.0001);  // another one
  EXPECT_TRUE(is_said(said(), "weight of head is another one before the step")) << said();
}

TEST_F(CompareSteps, TheLoopsAreCompared) {
  const auto with = [](Json training) {
    Step step;
    step.training = std::move(training);
    return std::vector<Step>{step};
  };
  const auto one = [&](Json npu, Json bench) { return said(with(npu), with(bench))[0]; };
  EXPECT_TRUE(is_said(one({{"loss", 2.5}}, {{"loss", 2.4}}), "loss: the loss is 2.5 against 2.4"));
  EXPECT_TRUE(is_said(one({{"learning_rate", 1e-3}}, {{"learning_rate", 5e-4}}),
                      "schedule: the learning rate is 0.001 against 0.0005"));
  EXPECT_TRUE(
      is_said(one({{"learning_rate", 1e-3}}, {{"learning_rate", double(1e-3F)}}), "no divergence"));
  EXPECT_TRUE(is_said(one({{"gradient_norm", 1.0}}, {{"gradient_norm", 2.0}}), "gradient norm:"));
  EXPECT_TRUE(is_said(one({{"skipped", true}}, {{"skipped", false}}), "skipped its update"));
  const Json adamw = {{"optimizer", {{"kind", "adamw"}, {"betas", {0.9, 0.999}}, {"eps", 1e-8}}}};
  Json other = adamw;
  other["optimizer"]["betas"] = {0.9, 0.95};
  EXPECT_TRUE(
      is_said(one(other, adamw), "optimizer: betas of adamw is [0.9, 0.95] against [0.9, 0.999]"));
  other["optimizer"] = {{"kind", "adam"}, {"eps", 1}};
  EXPECT_TRUE(is_said(one(other, adamw), "the optimizer is adam against adamw"));
  EXPECT_TRUE(is_said(one(adamw, Json::object()), "no divergence"));  // who says nothing
}

TEST_F(CompareSteps, ALossScaleIsTakenOutOfGradientsAndHeldToItsRule) {
  Step scaled, plain;
  scaled.gradient = 2 * 1024, scaled.training = {{"loss_scale", 1024}};
  plain.training = {{"loss_scale", 1}};
  EXPECT_TRUE(is_said(said({scaled}, {plain})[0], "no divergence"));
  EXPECT_TRUE(is_said(said({plain}, {scaled})[0], "no divergence"));
  Step larger = scaled;
  larger.gradient = 2 * 2048, larger.training = {{"loss_scale", 2048}};
  EXPECT_TRUE(is_said(said({scaled, larger}, {scaled, larger})[1], "no divergence"));
  EXPECT_TRUE(is_said(said({scaled, scaled}, {scaled, larger})[1],
                      "loss scale: the loss scale is 1024 against 2048"));
}

TEST_F(CompareSteps, TheLastMicroBatchIsTheOneThatIsSeen) {
  Step ours;
  ours.training = {{"micro_batches", 2}};
  ours.gradient = 4;  // the sum, which the update divides
  Step theirs;
  Json data = theirs.data();
  data["Module.fc.Linear.forward.1"] = data["Module.fc.Linear.forward.0"];
  data["Module.fc.Linear.forward.0"]["output"][0] = tensor({8, 4}, 9);  // of another batch
  put("npu", "step0", ours.data(), ours.training);
  put("bench", "step0", data, Json::object());
  const auto compare = [&](const char* a, const char* b) {
    return compare_runs({folder_ / a, folder_ / b, folder_ / "out", {}})[0].sentence;
  };
  EXPECT_TRUE(is_said(compare("npu", "bench"), "no divergence")) << compare("npu", "bench");
  EXPECT_TRUE(is_said(compare("bench", "npu"), "no divergence")) << compare("bench", "npu");
}

TEST_F(CompareSteps, OneModuleBesideSeveral) {
  const auto block = [](double q) {
    Json data;
    data["Module.attn.q.Linear.forward.0"] =
        forward(tensor({8, 4}, 3), tensor({8, 4}, q), {{"weight", tensor({4, 4}, 3)}});
    data["Module.attn.k.Linear.forward.0"] =
        forward(tensor({8, 4}, 3), tensor({8, 4}, 4), {{"weight", tensor({4, 4}, 4)}});
    data["Module.attn.Attention.forward.0"] = forward(tensor({8, 4}, 3), tensor({8, 4}, 1));
    return data;
  };
  Json joined = tensor({8, 8}, 5), weight = tensor({8, 4}, 5);
  for (Json* t : {&joined, &weight}) (*t)["Max"] = 2, (*t)["Min"] = -2;
  Json fused;
  fused["Module.attn.qk.Linear.forward.0"] =
      forward(tensor({8, 4}, 3), joined, {{"weight", weight}});
  fused["Module.attn.Attention.forward.0"] = forward(tensor({8, 4}, 3), tensor({8, 4}, 1));
  put("fused", "step0", fused, {});
  put("split", "step0", block(3), {});
  put("wrong", "step0", block(3.5), {});
  const auto compare = [&](const char* a, const char* b) {
    return compare_runs({folder_ / a, folder_ / b, folder_ / "out", {}})[0].sentence;
  };
  for (const auto& [a, b] : {std::pair("fused", "split"), std::pair("split", "fused")}) {
    EXPECT_TRUE(is_said(compare(a, b), "no divergence: 5 tensors of 2 calls")) << compare(a, b);
  }
  EXPECT_TRUE(is_said(compare("wrong", "fused"), "attn.q")) << compare("wrong", "fused");
  EXPECT_TRUE(is_said(compare("fused", "wrong"), "attn.qk")) << compare("fused", "wrong");
}

}  // namespace
}  // namespace aloft::compare
