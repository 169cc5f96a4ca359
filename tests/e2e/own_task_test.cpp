// A kind of tasks of a program's own: recipes learn it as one of the catalogue, and one that cannot
// be is refused.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "models/logits.h"
#include "ops/losses.h"
#include "recipe/recipe.h"
#include "refusal.h"
#include "tasks/features.h"
#include "tasks/task.h"
#include "temporary_folder.h"
#include "train/trainer.h"
#include "training.h"

namespace aloft::e2e {
namespace {

// Numbers, by their distance and not by its square.
struct Distance : Task {
  explicit Distance(std::unique_ptr<models::Classifier> model) : net(std::move(model)) {}
  nn::Layer& model() override { return *net; }
  Tensor loss(const std::vector<Tensor>& columns) const override {
    ModuleScope scope("", net->policy());
    return l1_loss(models::outputs_of(*net, columns[0]), columns[1]);
  }
  std::unique_ptr<models::Classifier> net;
};

TaskKind distance_task() {
  TaskKind kind;
  kind.name = "distance";
  kind.meaning = "numbers, by their distance";
  kind.takes = takes_features;
  kind.columns = [](const models::ModelSpec& spec, const SettingValues& facts) {
    return std::vector<Column>{features_column(spec, facts), targets_column(spec, facts)};
  };
  kind.make = [](const models::ModelSpec& spec) -> std::unique_ptr<Task> {
    return std::make_unique<Distance>(models::make_classifier(spec));
  };
  return kind;
}

constexpr const char* kRecipe = R"(task.kind = "distance"
model = { family = "mlp", hidden = [16] }
data = { outputs = 1, validation = 0.25 }
optimizer.lr = 0.01
train = { batch = 8, steps = 120, eval_every = 40, checkpoint_copy = false })";

TEST(OwnTask, IsTrainedByARecipe) {
  use_cpu();
  const TemporaryFolder folder;
  const std::vector<Override> data{{"data.csv", (folder / "rows.csv").string()}};
  EXPECT_NE(refusal([&] { parse_recipe(kRecipe, "before", data); }).find("distance"),
            std::string::npos);
  const TaskKind* const taken = &add_task(distance_task());
  EXPECT_EQ(taken, find_task("distance"));
  std::string rows;
  for (int i = 0; i < 64; ++i)
    rows += std::to_string(i % 8) + "," + std::to_string(i / 8) + "," +
            std::to_string((i % 8) - 0.5 * (i / 8)) + "\n";
  TemporaryFolder::put(folder / "rows.csv", rows);
  const TrainResult result =
      run_training(parse_recipe(kRecipe, "own", data), {.out = folder / "run"});
  EXPECT_EQ(result.exit, ExitCode::Ok);
  EXPECT_LT(result.last_loss.value(), 0.5 * result.first_loss);
  const auto record = nlohmann::json::parse(read_file(folder / "run" / "run.json"));
  EXPECT_EQ(record.at("task"), "distance");
}

TEST(OwnTask, ThatCannotBeIsRefusedWhole) {
  const std::size_t before = task_kinds().size();
  const auto refused = [&](auto spoil) {
    TaskKind kind = distance_task();
    kind.name = "spoilt";
    spoil(kind);
    expect_words(refusal([&] { add_task(kind); }), {"E0212"});
  };
  refused([](TaskKind& k) { k.name = ""; });
  refused([](TaskKind& k) { k.name = "regression"; });
  refused([](TaskKind& k) { k.takes = nullptr; });
  refused([](TaskKind& k) { k.columns = nullptr; });
  refused([](TaskKind& k) { k.make = nullptr; });
  EXPECT_EQ(task_kinds().size(), before);
}

}  // namespace
}  // namespace aloft::e2e
