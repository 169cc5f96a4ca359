// What msprobe's dumps hold otherwise than others of the same program is no divergence.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// As msprobe has it, whose records have no key `underflowed`.
Json of_msprobe(Json data) {
  if (data.is_object()) data.erase("underflowed");
  for (Json& part : data)
    if (part.is_structured()) part = of_msprobe(part);
  return data;
}

Json list(Json one) { return Json::array({std::move(one)}); }

class CompareMsprobe : public ::testing::Test {
 protected:
  StepResult compare(const Json& npu, const Json& bench) {
    TemporaryFolder::put(folder_ / "npu.json", npu.dump());
    TemporaryFolder::put(folder_ / "bench.json", bench.dump());
    return compare_runs({folder_ / "npu.json", folder_ / "bench.json", folder_ / "out", {}}).at(0);
  }
  // Either run first.
  std::vector<std::string> both(const Json& ours, const Json& theirs) {
    return {compare({{"data", ours}}, {{"data", of_msprobe(theirs)}}).sentence,
            compare({{"data", of_msprobe(theirs)}}, {{"data", ours}}).sentence};
  }
  void expect_agree(const Json& ours, const Json& theirs, const std::string& said = "") {
    for (const std::string& sentence : both(ours, theirs)) {
      EXPECT_TRUE(sentence.starts_with("no divergence")) << sentence;
      EXPECT_NE(sentence.find(said), std::string::npos) << sentence;
    }
  }
  void expect_part(const Json& ours, const Json& theirs, const std::string& said) {
    for (const std::string& sentence : both(ours, theirs)) {
      EXPECT_TRUE(sentence.starts_with("first divergence: ")) << sentence;
      EXPECT_NE(sentence.find(said), std::string::npos) << sentence;
    }
  }

  TemporaryFolder folder_;
};

// Three backward passes in a step, of which `sums` are told.
Json accumulated(std::vector<Json> sums) {
  const Json parameters = {{"weight", tensor({4, 4}, 2)}, {"bias", tensor({4}, 1)}};
  const Json x = tensor({2, 4}, 1);
  Json data = Json::object();
  for (const char* n : {"0", "1", "2"}) {
    data[std::string("Module.a.Linear.forward.") + n] = forward(x, x, parameters);
    data[std::string("Module.a.Linear.backward.") + n] = {{"input", list(x)}, {"output", list(x)}};
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    data["Module.a.Linear.parameters_grad." + std::to_string(i)] = std::move(sums[i]);
  return data;
}

TEST_F(CompareMsprobe, TheLastOfRunningSumsIsTheSteps) {
  const auto sum = [](double weight, double bias) {
    return Json{{"weight", list(tensor({4, 4}, weight))}, {"bias", list(tensor({4}, bias))}};
  };
  const Json last = accumulated({sum(3, 1.5)});
  expect_agree(last, accumulated({sum(1, 0.5), sum(2, 1), sum(3, 1.5)}), "20 of 24 tensors");
  // A pass that does not reach a parameter has no gradient of it, and takes none away.
  Json without = sum(3, 1.5), null = sum(3, 1.5);
  without.erase("bias"), null["bias"] = list(nullptr);
  for (const Json& third : {without, null})
    expect_agree(last, accumulated({sum(1, 0.5), sum(2, 1.5), third}));
  // What the step has is another sum, or is missing.
  expect_part(last, accumulated({sum(1, 0.5), sum(2, 1), sum(2, 1)}), "the gradient of a.");
  expect_part(last, accumulated({sum(3, 1.5), sum(3, 1.5), sum(4, 1.5)}),
              "the gradient of a.weight");
  expect_part(last, accumulated({without, without, without}), "the gradient of a.bias ");
}

TEST_F(CompareMsprobe, TheNormOfOneNumberIsThatNumber) {
  const auto run = [](double value, double norm) {
    Json loss = tensor({}, 1);
    loss["Max"] = loss["Min"] = loss["Mean"] = value, loss["Norm"] = norm;
    return Json{{"Module.crit.Neg.forward.0", forward(tensor({2, 4}, 1), loss)}};
  };
  expect_agree(run(-0.5, 0.5), run(-0.5, -0.5));
  expect_part(run(0.5, 0.5), run(-0.5, -0.5), "what crit gives (0) is off by 2 in Max");
  expect_part(run(-0.5, 0.5), run(-0.75, -0.75), "what crit gives (0)");
}

TEST_F(CompareMsprobe, ALossScaleThatOneDumpAloneSaysMayBeTheOthers) {
  const auto run = [](double scale, const Json& training) {
    const Json x = tensor({2, 4}, 1), g = tensor({2, 4}, 2 * scale), w = tensor({4, 4}, 3 * scale);
    return Json{{"data",
                 {{"Module.a.Linear.forward.0", forward(x, x, {{"weight", tensor({4, 4}, 2)}})},
                  {"Module.a.Linear.backward.0", {{"input", list(g)}, {"output", list(g)}}},
                  {"Module.a.Linear.parameters_grad.0", {{"weight", list(w)}}}}},
                {"training", training}};
  };
  const Json said = {{"loss_scale", 1024}}, unsaid = Json::object(), none = {{"loss_scale", 1}};
  const auto expect = [&](const Json& a, const Json& b, const char* sentence) {
    EXPECT_TRUE(compare(a, b).sentence.starts_with(sentence)) << compare(a, b).sentence;
    EXPECT_TRUE(compare(b, a).sentence.starts_with(sentence)) << compare(b, a).sentence;
  };
  expect(run(1024, said), run(1024, unsaid), "no divergence");  // scaled, and it does not say so
  expect(run(1024, said), run(1, unsaid), "no divergence");     // not scaled
  expect(run(1024, said), run(1024, none), "first divergence: backward");
  expect(run(1024, said), run(4, unsaid), "first divergence: backward");
  expect(run(1024, said), run(1, none), "no divergence");
}

TEST_F(CompareMsprobe, ATiedGradientMayStandUnderBothNames) {
  const auto run = [](double table, double head, double of_head) {
    const Json x = tensor({2, 4}, 1);
    Json data = {
        {"Module.e.Embedding.forward.0", forward(x, x, {{"weight", tensor({9, 4}, table)}})},
        {"Module.o.Linear.forward.0", forward(x, x, {{"weight", tensor({9, 4}, head)}})},
        {"Module.o.Linear.backward.0", {{"input", list(x)}, {"output", list(x)}}},
        {"Module.e.Embedding.parameters_grad.0", {{"weight", list(tensor({9, 4}, 5))}}}};
    if (of_head > 0)
      data["Module.o.Linear.parameters_grad.0"] = {{"weight", list(tensor({9, 4}, of_head))}};
    return data;
  };
  expect_agree(run(2, 2, 0), run(2, 2, 5), "9 of 10 tensors were compared");
  expect_part(run(2, 2, 0), run(2, 2, 6), "the gradient of o.weight ");  // another gradient
  expect_part(run(2, 3, 0), run(2, 3, 5), "the gradient of o.weight ");  // not tied
  expect_part(run(0, 0, 0), run(0, 0, 5), "the gradient of o.weight ");  // nothing says it
}

}  // namespace
}  // namespace aloft::compare
