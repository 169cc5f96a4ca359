// Modules that one of two runs alone calls: before a loss that is another one, and whole blocks.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

class CompareLoneModules : public ::testing::Test {
 protected:
  StepResult compare(const Json& npu, const Json& bench, double npu_loss = 1,
                     double bench_loss = 1) {
    const auto put = [&](const char* name, const Json& data, double loss) {
      TemporaryFolder::put(folder_ / name,
                           Json{{"training", {{"loss", loss}}}, {"data", data}}.dump());
    };
    put("npu.json", npu, npu_loss), put("bench.json", bench, bench_loss);
    return compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}}).at(0);
  }
  // `divergence` of the results.
  Json divergence() {
    return Json::parse(read_file(folder_ / "out/compare_result.json"))["divergence"];
  }

  TemporaryFolder folder_;
};

Json table(double weight = 9) { return {{"weight", tensor({96, 4}, weight)}}; }
Json tokens() {
  Json ids = tensor({2, 4}, 9);
  ids["dtype"] = "torch.int64", ids["Max"] = 95, ids["Min"] = 0;
  return ids;
}
Json block(double takes, double gives) {
  return forward(tensor({2, 4, 4}, takes), tensor({2, 4, 4}, gives),
                 {{"weight", tensor({4, 4}, 3)}});
}
Json norm(double takes, double gives) {
  return forward(tensor({2, 4, 4}, takes), tensor({2, 4, 4}, gives),
                 {{"weight", tensor({4}, 2)}, {"bias", tensor({4}, 1)}});
}

// A port, whose head is a part of its loss: the body alone has modules.
Json port() {
  return {{"Module.wte.Embedding.forward.0", forward(tokens(), tensor({2, 4, 4}, 5), table())},
          {"Module.h.0.Block.forward.0", block(5, 6)},
          {"Module.ln_f.LayerNorm.forward.0", norm(6, 7)}};
}
// The program that it was made of: a body, whose last call gives `body`, and a head.
Json original(bool has_norm, double body, double head = 9) {
  Json data = {
      {"Module.t.wte.Embedding.forward.0", forward(tokens(), tensor({2, 4, 4}, 5), table())},
      {"Module.t.h.0.Block.forward.0", block(5, 6)}};
  if (has_norm) data["Module.t.ln_f.LayerNorm.forward.0"] = norm(6, 7);
  data["Module.t.Body.forward.0"] = forward(tokens(), tensor({2, 4, 4}, body));
  data["Module.lm_head.Linear.forward.0"] =
      forward(tensor({2, 4, 4}, body), tensor({2, 4, 96}, 8), table(head));
  return data;
}

TEST_F(CompareLoneModules, WhatComesBeforeALossIsTheSameOnlyWhereItWasCompared) {
  // The head takes what agrees, and its weight is the table's.
  const std::string same = compare(original(true, 7), port(), 2, 1).sentence;
  EXPECT_NE(same.find("; what goes into lm_head (Linear) in the first run alone has the same "
                      "statistics: what that gives, other targets, another mean, or another order"),
            std::string::npos)
      << same;
  EXPECT_EQ(divergence()["module"], "");
  const std::string own = compare(port(), port(), 2, 1).sentence;
  EXPECT_NE(own.find("; what comes before it has the same statistics: other targets"),
            std::string::npos)
      << own;
  // Of a weight that nothing was held against nothing is said.
  const std::string untied = compare(original(true, 7, 11), port(), 2, 1).sentence;
  EXPECT_EQ(untied.find("the same statistics"), std::string::npos) << untied;
  EXPECT_EQ(divergence()["module"], "lm_head");
}

TEST_F(CompareLoneModules, ANormThatIsLeftOutIsNamed) {
  const std::string first = compare(original(false, 6), port(), 2, 1).sentence;
  EXPECT_NE(first.find("; between t.h.0, which agrees, and the loss was not compared: ln_f "
                       "(LayerNorm) in the second run alone"),
            std::string::npos)
      << first;
  EXPECT_EQ(first.find("the same"), std::string::npos) << first;
  const Json said = divergence();
  EXPECT_EQ(said["place"], "loss");
  EXPECT_EQ(said["module"], "ln_f");
  EXPECT_EQ(said["kind"], "LayerNorm");
  EXPECT_EQ(said["behind"], "t.h.0");
  const std::string second = compare(port(), original(false, 6), 2, 1).sentence;
  EXPECT_NE(second.find("not compared: ln_f (LayerNorm) in the first run alone"), std::string::npos)
      << second;
}

// What wraps other calls hands their value on, or it does not.
TEST_F(CompareLoneModules, WhatABodyGivesTimesSomethingIsNotTheSame) {
  const std::string said = compare(original(true, 7 * 1.3), port(), 2, 1).sentence;
  EXPECT_NE(said.find("; between t.ln_f, which agrees, and the loss was not compared: t (Body) in "
                      "the first run alone"),
            std::string::npos)
      << said;
  EXPECT_EQ(divergence()["module"], "t");
}

// The first gradient shows it where the dumps have no loss.
TEST_F(CompareLoneModules, TheFirstGradientIsThatOfTheLoss) {
  const auto with_gradient = [](Json data, const char* name, double size) {
    const Json flows = Json::array({tensor({2, 4, 4}, size)});
    data[name] = {{"input", flows}, {"output", flows}};
    return data;
  };
  const Json ours = with_gradient(original(false, 6), "Module.t.h.0.Block.backward.0", 3);
  const Json theirs = with_gradient(port(), "Module.h.0.Block.backward.0", 1);
  const std::string said = compare(ours, theirs).sentence;
  EXPECT_NE(said.find("not compared: ln_f (LayerNorm) in the second run alone"), std::string::npos)
      << said;
  EXPECT_EQ(divergence()["place"], "loss");
  EXPECT_EQ(divergence()["module"], "ln_f");
}

TEST_F(CompareLoneModules, AMissingBlockIsSaidBesideTheFirstDivergence) {
  const auto run = [](int blocks, double last) {
    Json data = {
        {"Module.wte.Embedding.forward.0", forward(tokens(), tensor({2, 4, 4}, 5), table())}};
    for (int i = 0; i < blocks; ++i) {
      const std::string name = "Module.h." + std::to_string(i);
      data[name + ".drop.Dropout.forward.0"] =
          forward(tensor({2, 4, 4}, 5 + i), tensor({2, 4, 4}, 5 + i));
      data[name + ".Block.forward.0"] = block(5 + i, 6 + i);
    }
    data["Module.ln_f.LayerNorm.forward.0"] = norm(last, 7);
    return data;
  };
  const std::string first = compare(run(1, 6), run(2, 7)).sentence;
  EXPECT_NE(first.find("; h.1 (Block) is in the second run alone"), std::string::npos) << first;
  EXPECT_NE(first.find("; 12 of 17 tensors were compared"), std::string::npos) << first;
  const std::string second = compare(run(2, 7), run(1, 6)).sentence;
  EXPECT_NE(second.find("; h.1 (Block) is in the first run alone"), std::string::npos) << second;
  const std::string more = compare(run(9, 14), run(1, 6)).sentence;
  EXPECT_NE(more.find("; h.1 (Block), h.2 (Block), h.3 (Block) and 5 more are in the first run"),
            std::string::npos)
      << more;
  // Where most is missing, the block is named, and not the first call in it.
  const std::string lacks = compare(run(1, 6), run(9, 6)).lacks;
  EXPECT_EQ(lacks, "most tensors are in the second run alone, such as those of h.1 (Block)");
  EXPECT_EQ(compare(run(2, 7), run(2, 7)).sentence.find("alone"), std::string::npos);
}

}  // namespace
}  // namespace aloft::compare
