// Steps of dumps that do not say what updates add to parameters, as those of level op.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dump_records.h"
#include "observe/compare/comparison.h"
#include "temporary_folder.h"

namespace aloft::compare {
namespace {

// Nothing is allowed for what updates have rounded otherwise: it is said of the first such step.
TEST(CompareWithoutUpdates, LaterStepsMayBeRight) {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& run, std::size_t step, double weight, bool has_update) {
    Json data = {{"Module.fc.Linear.forward.0", forward(tensor({8, 4}, 3), tensor({8, 4}, 7),
                                                        {{"weight", tensor({4, 4}, weight)}})}};
    if (has_update)
      data["Module.fc.Linear.parameters_update.0"] = {
          {"weight", Json::array({tensor({4, 4}, 1e-6)})}};
    const Path to = folder / run / ("step" + std::to_string(step)) / "rank";
    make_folder(to);
    TemporaryFolder::put(to / "dump.json", Json{{"task", "statistics"}, {"data", data}}.dump());
  };
  // Of which steps it is said, where the first run has these weights and the second 5.
  const auto said_of = [&](const std::vector<double>& weights, bool has_update) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      put("npu", i, weights[i], has_update), put("bench", i, 5, has_update);
    std::vector<std::size_t> steps;
    std::size_t step = 0;
    for (const StepResult& r :
         compare_runs({folder / "npu", folder / "bench", folder / "out", {}})) {
      EXPECT_EQ(r.has_divergence, weights[step] != 5) << r.sentence;
      if (r.sentence.find("neither dump has updates of parameters") != std::string::npos)
        steps.push_back(step);
      ++step;
    }
    return steps;
  };
  using Steps = std::vector<std::size_t>;
  EXPECT_EQ(said_of({5, 5.1, 5.1}, false), Steps{1});
  EXPECT_EQ(said_of({5.1, 5, 5.1}, false), Steps{});
  EXPECT_EQ(said_of({5, 5.1, 5.1}, true), Steps{});
}

}  // namespace
}  // namespace aloft::compare
