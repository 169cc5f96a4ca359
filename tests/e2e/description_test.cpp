// A session is a description first: its programs are traced and planned without a weight, and what
// is made for them afterwards is what a model made at once would have.
#include "frontend/description.h"

#include <gtest/gtest.h>

#include "e2e/small_run.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "frontend/random.h"
#include "models/gpt2.h"
#include "recipe/memory_need.h"
#include "train/session.h"

namespace aloft::e2e {
namespace {

class Description : public SmallRun {
 protected:
  static std::string bytes_of(const std::vector<VariablePtr>& variables) {
    std::string all;
    for (const VariablePtr& v : variables) {
      const auto bytes = v->buffer->read<char>(0, v->type.max_bytes());
      all.append(bytes.begin(), bytes.end());
    }
    return all;
  }
};

TEST_F(Description, IsPlannedBeforeAnyWeightAndThenHasTheSameValues) {
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"precision=O0"},
           {"precision=O2:fp16", "train.accumulate=2"},
           {"precision=O2:bf16", "optimizer.master=split", "optimizer.kind=momentum"},
           {"precision=O3:bf16"}}) {
    use_cpu();
    Session session = open_session(recipe(set), {{"vocab", std::int64_t{64}}}, nullptr);
    const auto runner = make_runner(session);
    const auto variables = variables_of(session.model(), *session.optimizer);
    for (const VariablePtr& v : variables) EXPECT_EQ(v->buffer, nullptr) << v->name.str();
    const std::string signature = runner->programs()->plan().signature();
    EXPECT_GT(runner->programs()->plan().peak_bytes(), 0u);

    make_values(session);
    manual_seed(session.recipe.train.seed);
    models::Gpt2 direct(models::config_of<models::Gpt2Config>(session.spec.settings));
    Optimizer optimizer =
        amp::prepare(direct, optimizer_spec(session.recipe), session.recipe.precision);
    optimizer.set_accumulation(static_cast<int>(session.recipe.train.accumulate));
    EXPECT_EQ(bytes_of(variables), bytes_of(variables_of(direct, optimizer))) << set[0];

    runner->start();
    EXPECT_EQ(bytes_of(variables), bytes_of(variables_of(direct, optimizer))) << set[0];
    EXPECT_EQ(runner->programs()->plan().signature(), signature);
  }
}

TEST_F(Description, WhatHasNoValuesDoesNotRun) {
  use_cpu();
  Session session = open_session(recipe({"precision=O0"}), {{"vocab", std::int64_t{64}}}, nullptr);
  const auto runner = make_runner(session);
  EXPECT_THROW(runner->start(), UserError);
}

// A machine has less than this: nothing of the sort is reserved, and the plan is there.
TEST_F(Description, APlanMayBeLargerThanTheMachine) {
  use_cpu();
  Session session = open_session(recipe({"precision=O2:bf16", "model.dim=65536", "model.layers=2",
                                         "model.heads=64", "train.batch=64", "model.context=1024"}),
                                 {{"vocab", std::int64_t{50000}}}, nullptr);
  const auto runner = make_runner(session);
  const Plan& plan = runner->programs()->plan();
  EXPECT_GT(plan.peak_bytes(), std::size_t{1} << 40);
  try {
    need_memory_for(plan);
    FAIL() << "no machine has that";
  } catch (const EnvironmentError& e) {
    EXPECT_EQ(e.code(), "E0401");
    for (const char* part :
         {"the plan of a step", "activations", "optimizer", "in all", "train.batch", "TiB"})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part << "\n" << e.what();
  }
}

}  // namespace
}  // namespace aloft::e2e
