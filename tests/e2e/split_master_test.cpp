// Training with split masters: the bits of training with masters of their own, in less memory, and
// checkpoints that either form goes on from.
#include <map>

#include "e2e/small_run.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "nn/linear.h"
#include "optim/adamw.h"
#include "train/session.h"

namespace aloft::e2e {
namespace {

namespace fs = std::filesystem;

class SplitMaster : public SmallRun, public testing::WithParamInterface<const char*> {
 protected:
  std::vector<std::string> in_mode(std::vector<std::string> set = {},
                                   const std::string& precision = "O2:bf16") const {
    set.push_back(std::string("train.mode=") + GetParam());
    set.push_back("precision=" + precision);
    return set;
  }
  static std::vector<std::string> split(std::vector<std::string> set) {
    set.push_back("optimizer.master=split");
    return set;
  }
};

// Checkpoints hold the logical masters, so equal files are equal masters.
TEST_P(SplitMaster, ManyStepsHaveTheBitsOfMastersOfTheirOwn) {
  const std::map<std::string, std::vector<std::string>> kinds = {
      {"adamw", {"train.steps=80", "train.checkpoint_every=0"}},
      {"momentum", {"optimizer.kind=momentum", "optimizer.lr=0.05"}},
      {"sgd", {"optimizer.kind=sgd", "optimizer.lr=0.1", "optimizer.clip_norm=0"}},
      {"lamb", {"optimizer.kind=lamb", "optimizer.lr=0.01"}},
      {"states", {"optimizer.kind=lion", "optimizer.states=bf16"}},
      {"groups", {R"(optimizer.groups=[{parameters=["h.*"], lr=1e-4, weight_decay=0.3}])"}},
      {"accumulation", {"train.accumulate=2"}},
      {"denied", {}}};
  for (const auto& [name, set] : kinds) {
    const std::string precision = name == "denied" ? "\"O2:bf16 deny_params=h.0.*\"" : "O2:bf16";
    const TrainResult own = run(name + "-own", in_mode(set, precision));
    const TrainResult other = run(name + "-split", split(in_mode(set, precision)));
    const std::string last = name == "adamw" ? "step-000080" : "step-000012";
    expect_same_state(name + "-own", name + "-split", last);
    EXPECT_EQ(metrics(name + "-split"), metrics(name + "-own")) << name;
    EXPECT_EQ(own.val_loss, other.val_loss) << name;
  }
}

TEST_P(SplitMaster, ResumingEqualsNeverHavingStopped) {
  for (const std::string states : {"f32", "bf16"}) {
    const auto set = split(in_mode({"schedule.kind=constant", "optimizer.states=" + states}));
    run("whole-" + states, set);
    auto half = set;
    half.push_back("train.steps=6");
    run("halves-" + states, half);
    run("halves-" + states, set, true);
    expect_same_state("whole-" + states, "halves-" + states);
  }
}

TEST_P(SplitMaster, ACheckpointLoadsWithEitherForm) {
  const auto own = in_mode({"schedule.kind=constant"});
  auto half = own;
  half.push_back("train.steps=6");
  run("whole", own);
  run("own-first", half);
  run("own-first", split(own), true);
  expect_same_state("whole", "own-first");
  run("split-first", split(half));
  run("split-first", own, true);
  expect_same_state("whole", "split-first");
}

INSTANTIATE_TEST_SUITE_P(Modes, SplitMaster, testing::Values("graph", "eager"),
                         [](const auto& info) { return std::string(info.param); });

struct Pair : nn::Module {
  nn::Linear up{*this, "up", 33, 7}, down{*this, "down", 7, 3};
};

class SplitMasterMemory : public SmallRun {};

TEST_F(SplitMasterMemory, ThePlanHoldsTwoBytesAndOneBitAWeight) {
  const auto bytes = [&](const std::vector<std::string>& set) {
    Session session = open_session(recipe(set), {{"vocab", std::int64_t{64}}}, nullptr);
    std::size_t masters = 0, low = 0;
    for (std::size_t i = 0; i < session.optimizer->parameters().size(); ++i)
      if (const VariablePtr& m = session.optimizer->master(i)) {
        masters += m->type.max_bytes();
        low += session.optimizer->parameters()[i]->type.shape.max_numel();
      }
    const auto runner = make_runner(session);
    return std::tuple{masters, low, runner->programs()->plan().peak_bytes()};
  };
  const auto [own, count, own_peak] = bytes({"precision=O2:bf16"});
  const auto [split, same_count, split_peak] =
      bytes({"precision=O2:bf16", "optimizer.master=split"});
  EXPECT_EQ(own, 4 * count);
  EXPECT_EQ(count, same_count);
  EXPECT_EQ(split, 2 * count + count / 8);  // every tensor here has a multiple of 8 elements
  const std::size_t saved = own_peak - split_peak;
  // Each tensor of an arena begins at a multiple of 64 bytes.
  EXPECT_NEAR(static_cast<double>(saved), static_cast<double>(own - split), 4096.0);
}

TEST_F(SplitMasterMemory, ItIsRefusedWhereNoBf16WeightHasAMaster) {
  const auto said = [](const std::string& precision) -> std::string {
    Pair model;
    try {
      amp::initialize(model, optim::AdamW{.master = StateFormat::Split}, precision);
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), "E0815");
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(said("O2:bf16"), "");
  EXPECT_EQ(said("O2:bf16 backward=fp16"), "");
  for (const char* precision :
       {"O0", "O1:bf16", "O3:bf16", "O2:fp16", "O2:bf16 forward=fp32", "O2:bf16 forward=fp16"}) {
    const std::string text = said(precision);
    EXPECT_NE(text.find("need"), std::string::npos) << precision << text;
    EXPECT_NE(text.find("O2:bf16, or master f32"), std::string::npos) << precision << text;
  }
}

}  // namespace
}  // namespace aloft::e2e
