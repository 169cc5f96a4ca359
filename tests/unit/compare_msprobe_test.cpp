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

// A linear function of a batch of rows of positions, and one that makes it larger behind that.
Json functions(std::vector<Json> of_last, std::vector<Json> of_first) {
  Json w = tensor({16, 8}, 1), v = tensor({8, 16}, 1);
  const Json x = tensor({4, 5, 8}, 3), h = tensor({4, 5, 16}, 4), y = tensor({4, 5, 8}, 5);
  const auto call = [](Json a, Json b, Json out) {
    Json f = forward(std::move(a), std::move(out));
    f["input_args"].push_back(std::move(b));
    return f;
  };
  return {{"Functional.linear.0.forward", call(x, w, h)},
          {"Functional.linear.1.forward", call(h, v, y)},
          {"Functional.linear.1.backward",
           {{"input", list(tensor({4, 5, 8}, 2))}, {"output", of_last}}},
          {"Functional.linear.0.backward",
           {{"input", list(tensor({4, 5, 16}, 6))}, {"output", of_first}}}};
}

TEST_F(CompareMsprobe, GradientsOfAFunctionsLastStepAreNotItsArguments) {
  // As large as what another call gives in the other run.
  const Json ours = functions({tensor({4, 5, 16}, 6)}, {tensor({4, 5, 8}, 7)});
  expect_agree(ours, functions({tensor({20, 8}, 2)}, {tensor({20, 16}, 6)}),
               "; of 2 more tensors there is nothing in both dumps to compare");
  // The last step adds a bias: there is none of the weight.
  expect_agree(ours, functions({tensor({4, 5, 16}, 2)}, {tensor({4, 5, 8}, 6)}));
  // A gradient for each: these are the arguments'.
  const Json weight = tensor({16, 8}, 9), other = tensor({8, 16}, 9);
  const auto whole = [&](double x) {
    return functions({tensor({4, 5, 16}, 6), other}, {tensor({4, 5, 8}, x), weight});
  };
  expect_agree(whole(7), whole(7), "no divergence: 12 tensors");
  expect_part(whole(7), whole(8), "the gradient of what Functional.linear takes (0) is off");
}

TEST_F(CompareMsprobe, AFunctionInPlaceMayHandOnItsGradient) {
  const auto run = [](double given) {
    const Json x = tensor({4, 8}, 3);
    return Json{{"Functional.relu.0.forward", forward(x, x)},
                {"Functional.relu.0.backward",
                 {{"input", list(tensor({4, 8}, 2))}, {"output", list(tensor({4, 8}, given))}}}};
  };
  expect_agree(run(1), run(2), "; of 1 more tensors");
  expect_agree(run(1), run(1), "no divergence: 4 tensors");
  expect_part(run(1), run(1.5), "the gradient of what Functional.relu takes (0)");
}

// Attention of a tensor to itself has one gradient, the sum, or one for each place.
TEST_F(CompareMsprobe, ATensorThatIsTakenSeveralTimesHasAGradientForEachPlace) {
  const auto run = [](std::vector<double> taken, std::vector<double> gradients) {
    Json call = forward(tensor({4, 8}, taken[0]), tensor({4, 8}, 5)), given = Json::array();
    for (std::size_t i = 1; i < taken.size(); ++i)
      call["input_args"].push_back(tensor({4, 8}, taken[i]));
    for (const double g : gradients) given.push_back(tensor({4, 8}, g));
    return Json{
        {"Module.a.Attention.forward.0", call},
        {"Module.a.Attention.backward.0", {{"input", list(tensor({4, 8}, 2))}, {"output", given}}}};
  };
  expect_agree(run({3, 3, 3}, {9}), run({3, 3, 3}, {1, 4, 8}), "5 of 7 tensors were compared");
  expect_agree(run({3, 4, 4}, {1, 9}), run({3, 4, 4}, {1, 4, 8}));
  // What is taken once, and as many gradients on either side, are compared.
  expect_part(run({3, 4, 4}, {2, 9}), run({3, 4, 4}, {1, 4, 8}), "what a takes (0)");
  expect_part(run({3, 3, 3}, {1, 4, 9}), run({3, 3, 3}, {1, 4, 8}), "what a takes (2)");
}

}  // namespace
}  // namespace aloft::compare
