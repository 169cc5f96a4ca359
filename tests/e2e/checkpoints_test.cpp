// Checkpoints of a program's own loop: what is resumed ends with the bits of what ran through; what
// is damaged or another's is never taken.
#include "checkpoint/checkpoints.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <limits>

#include "aloft/loader.h"
#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/checkpoint.h"
#include "files/safetensors.h"
#include "nn/batch_norm.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "ops/reshape.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "refusal.h"
#include "temporary_folder.h"
#include "training.h"

namespace aloft::e2e {
namespace {

// Buffers, and random numbers.
struct Net : nn::Module {
  nn::Linear up;
  nn::BatchNorm2d norm{*this, "norm", 4};
  nn::Dropout drop{*this, "drop", 0.3};
  nn::Linear down;
  explicit Net(std::string_view head = "down") : up(*this, "up", 6, 16), down(*this, head, 16, 3) {}
  Tensor operator()(const Tensor& x) {
    const std::int64_t rows = x.dim(0).max();
    return down(drop(flatten(norm(reshape(gelu(up(x)), {rows, 4, 2, 2})), 1)));
  }
};

ArrayData samples() {
  ArrayData data;
  data.features = 6;
  for (int s = 0; s < 28; ++s) {
    for (int f = 0; f < 6; ++f)
      data.values.push_back(static_cast<float>((s * 7 + f * 5) % 13) / 6 - 1);
    data.labels.push_back(s % 3);
  }
  return data;
}

struct Setting {
  Mode mode;
  const char* precision;
  StateFormat master = StateFormat::F32;
  int micro_batches = 1;
  bool freezes = false;     // other parameters at other times
  bool has_moments = true;  // AdamW; else plain gradient descent
  std::int64_t thaw = 6;    // where it freezes: the batch from which on the first part is trained
};

OptimizerSpec spec_of(const Setting& s) {
  if (s.has_moments) return optim::AdamW{.lr = 1e-2, .master = s.master};
  return optim::Sgd{.lr = 1e-2, .master = s.master};
}

// Before the step of this batch: one part late, the other left out for a while.
void freeze(nn::Module& model, const Setting& s, std::int64_t batch) {
  model.requires_grad(true);
  if (batch < s.thaw) model.requires_grad(false, "up.*");
  if (batch >= 9 && batch < 12) model.requires_grad(false, "down.*");
}

using Bytes = std::map<std::string, std::string>;

// One life of a program, from what the folder holds to `end` steps, saving behind each.
Bytes live(const Path& folder, const Setting& s, std::uint64_t seed, std::int64_t end) {
  use_cpu();
  manual_seed(seed);
  Loader loader(samples(), {.batch = 4, .seed = 3});
  Net model;
  if (s.freezes) freeze(model, s, -1);
  auto [net, opt] = amp::initialize(model, spec_of(s), s.precision);
  opt.set_accumulation(s.micro_batches);
  const auto loss = [&net = net](const Tensor& x, const Tensor& y) {
    return cross_entropy(net(x), y);
  };
  const auto update = [&, &opt = opt](const Tensor& x, const Tensor& y) {
    return minimize(loss(x, y), opt);
  };
  const auto add = [&, &opt = opt](const Tensor& x, const Tensor& y) {
    return accumulate(loss(x, y), opt);
  };
  auto compiled_update = compile(update, {.partial_batches = false});
  auto compiled_add = compile(add, {.partial_batches = false});
  Checkpoints checkpoints(folder, 2);
  LoopPosition at;
  if (const auto saved = checkpoints.load(model, opt)) at = *saved;
  loader.seek(at.data_position);
  const bool is_compiled = s.mode == Mode::Compiled;
  while (at.step < end)
    for (const auto& [x, y] : loader) {
      const bool is_last = (at.step + 1) % s.micro_batches == 0;
      if (s.freezes) freeze(model, s, at.step - at.step % s.micro_batches);
      if (is_last)
        is_compiled ? compiled_update(x, y) : update(x, y);
      else
        is_compiled ? compiled_add(x, y) : add(x, y);
      at = {at.step + 1, loader.position()};
      checkpoints.save(at, model, opt);
      if (at.step == end) break;
    }
  return state_of(model, opt);
}

TEST(Checkpoints, WhatIsResumedEndsWithTheSameBits) {
  for (const Setting& s :
       {Setting{Mode::Eager, "O0"}, Setting{Mode::Compiled, "O0"}, Setting{Mode::Eager, "O2:fp16"},
        Setting{Mode::Compiled, "O2:fp16"}, Setting{Mode::Compiled, "O2:bf16", StateFormat::Split},
        Setting{Mode::Eager, "O2:bf16", StateFormat::F32, 3},
        Setting{Mode::Compiled, "O1:bf16", StateFormat::F32, 3}}) {
    SCOPED_TRACE(std::string(s.mode == Mode::Eager ? "eager " : "compiled ") + s.precision);
    const TemporaryFolder folder;
    const Bytes whole = live(folder / "whole", s, 1, 18);
    // 11: in the middle of an epoch of 7 batches, and of 3 micro-batches.
    live(folder / "cut", s, 1, 11);
    EXPECT_TRUE(live(folder / "cut", s, 2, 18) == whole);
  }
}

TEST(Checkpoints, WhatFreezesAndUnfreezesIsResumed) {
  const StateFormat split = StateFormat::Split, f32 = StateFormat::F32;
  for (const Setting& s :
       {Setting{Mode::Eager, "O0", f32, 1, true}, Setting{Mode::Compiled, "O0", f32, 1, true},
        Setting{Mode::Eager, "O2:bf16", f32, 3, true},
        Setting{Mode::Compiled, "O2:bf16", split, 1, true},
        Setting{Mode::Compiled, "O2:fp16", f32, 3, true},
        Setting{Mode::Eager, "O2:bf16", f32, 1, true, false},
        Setting{Mode::Compiled, "O2:bf16", split, 1, true, false},
        // Unfrozen before the first step, of a rule that keeps nothing for a parameter.
        Setting{Mode::Eager, "O0", f32, 1, true, false, 0},
        Setting{Mode::Eager, "O2:bf16", f32, 3, true, false, 0},
        Setting{Mode::Compiled, "O2:bf16", split, 1, true, false, 0}}) {
    SCOPED_TRACE(std::string(s.mode == Mode::Eager ? "eager " : "compiled ") + s.precision);
    const TemporaryFolder folder;
    const Bytes whole = live(folder / "whole", s, 1, 18);
    for (const int cut : {4, 7, 11, 16}) {
      const Path life = folder / ("cut" + std::to_string(cut));
      live(life, s, 1, cut);
      EXPECT_TRUE(live(life, s, 2, 18) == whole) << cut;
      for (const char* file : {"model.safetensors", "state.safetensors"})
        EXPECT_TRUE(read_file(life / "step-000018" / file, 1 << 26) ==
                    read_file(folder / "whole" / "step-000018" / file, 1 << 26))
            << cut << " " << file;
    }
  }
}

// A checkpoint that is passed over, or is another's, leaves late parameters as they were too.
TEST(Checkpoints, WhatIsRefusedUnfreezesNothing) {
  const Setting late{Mode::Eager, "O2:bf16", StateFormat::F32, 1, true};
  const TemporaryFolder folder;
  live(folder.path(), late, 1, 7);
  Setting other = late;
  other.has_moments = false;
  Checkpoints checkpoints(folder.path());
  for (const Setting& s : {other, late}) {
    Net model;
    freeze(model, s, -1);
    auto [net, opt] = amp::initialize(model, spec_of(s), s.precision);
    const Bytes before = state_of(model, opt);
    EXPECT_EQ(code_of([&, &opt = opt] { checkpoints.load(model, opt); }),
              s.has_moments ? "" : "E0641");
    EXPECT_EQ(state_of(model, opt) == before, !s.has_moments);
    EXPECT_EQ(model.up.weight->master != nullptr, s.has_moments);
  }
}

// What a program draws between its last step and the save moves on what it draws behind it.
TEST(Checkpoints, DrawsUnderTheSavedStateGoOn) {
  use_cpu();
  for (const bool is_compiled : {false, true}) {
    const TemporaryFolder folder;
    Checkpoints checkpoints(folder.path());
    manual_seed(1);
    Net model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O0");
    const Tensor x = full({4, 6}, 1), y = from_ints({0, 2, 1, 2}, {4});
    const auto preview = [&model](const Tensor& t) { return model.drop(t); };
    auto compiled = compile(preview);
    const auto drawn = [&] { return (is_compiled ? compiled(x) : preview(x)).to_vector(); };
    minimize(cross_entropy(net(x), y), opt);
    const auto first = drawn();
    checkpoints.save({.step = 1}, model, opt);
    const auto second = drawn(), third = drawn();
    EXPECT_TRUE(first != second && second != third && first != third);
    manual_seed(2);
    drawn();
    cross_entropy(net(x), y).backward();
    checkpoints.load(model, opt);
    EXPECT_EQ(drawn(), second);
    EXPECT_EQ(drawn(), third);
    for (const VariablePtr& p : model.parameters()) EXPECT_FALSE(grad_of(p).is_defined());
  }
}

std::vector<std::string> steps_in(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void damage(const Path& checkpoint) {
  std::fstream file(checkpoint / "model.safetensors", std::ios::in | std::ios::out);
  file.seekp(-3, std::ios::end);
  file.put('?');
}

TEST(Checkpoints, DamagedOnesArePassedOver) {
  const TemporaryFolder folder;
  live(folder.path(), {Mode::Eager, "O0"}, 1, 4);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::string>{"step-000003", "step-000004"}));
  damage(folder / "step-000004");
  Net model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O0");
  const Bytes before = state_of(model, opt);
  {
    Checkpoints checkpoints(folder.path());
    const auto at = checkpoints.load(model, opt);
    ASSERT_TRUE(at);
    EXPECT_EQ(at->step, 3);
    EXPECT_EQ(at->data_position, 12u);
    EXPECT_TRUE(state_of(model, opt) != before);
  }
  damage(folder / "step-000003");
  const Bytes loaded = state_of(model, opt);
  Checkpoints checkpoints(folder.path());
  EXPECT_EQ(code_of([&, &opt = opt] { checkpoints.load(model, opt); }), "E0641");
  EXPECT_TRUE(state_of(model, opt) == loaded);
}

// What a life does behind its third step, and whether it tells its losses.
struct Ruin {
  const char* name;
  bool tells = false;
  float x = 1;          // a factor on the batches
  double lr = 0.01;     // of the steps behind the third
  bool weight = false;  // one is infinite
  std::optional<double> measured = {};
};

// Five steps behind three healthy ones, each of them saved: the newest that is healthy.
std::int64_t newest_behind(const Path& folder, const Ruin& ruin, std::vector<std::string>& steps) {
  manual_seed(1);
  const auto inf = std::numeric_limits<float>::infinity();
  Loader loader(samples(), {.batch = 4, .seed = 3});
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, "O0");
  Optimizer ruined({.rule = opt.spec().rule, .lr = ruin.lr}, model.parameters(), opt.scaler());
  Bytes healthy;
  {
    Checkpoints checkpoints(folder, 2);
    LoopPosition at;
    while (at.step < 8)
      for (const auto& [x, y] : loader) {
        const bool is_well = at.step < 3;
        Optimizer& now = is_well ? opt : ruined;
        const StepResult r = minimize(cross_entropy(net(is_well ? x : x * ruin.x), y), now);
        if (ruin.tells) checkpoints.step(r, now);
        if (!is_well && ruin.weight) model.up.weight->buffer->write_one<float>(-inf, 1);
        at = {at.step + 1, loader.position()};
        checkpoints.save(at, model, now, is_well ? std::nullopt : ruin.measured);
        if (at.step == 3) healthy = state_of(model, opt);
        if (at.step == 8) break;
      }
  }
  steps = steps_in(folder);
  Net resumed;
  auto [again, again_opt] = amp::initialize(resumed, optim::Sgd{.lr = 0.01}, "O0");
  const auto at = Checkpoints(folder, 2).load(resumed, again_opt);
  if (at && at->step == 3) {
    EXPECT_TRUE(state_of(resumed, again_opt) == healthy);
  }
  return at ? at->step : 0;
}

TEST(Checkpoints, WhatHasDivergedIsMarkedAndPushesNothingOut) {
  use_cpu();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<std::string> kept{"step-000002", "step-000003", "step-000008"};
  for (const Ruin& ruin :
       {Ruin{.name = "skipped, told", .tells = true, .x = inf}, Ruin{.name = "skipped", .x = inf},
        Ruin{.name = "a weight", .weight = true}, Ruin{.name = "measured", .measured = kNan},
        Ruin{.name = "measured, told", .tells = true, .measured = 1e5}}) {
    SCOPED_TRACE(ruin.name);
    const TemporaryFolder folder;
    std::vector<std::string> steps;
    EXPECT_EQ(newest_behind(folder.path(), ruin, steps), 3);
    EXPECT_EQ(steps, kept);
  }
  // Far above the start: that of the last step shows what the one before it has done.
  const TemporaryFolder folder;
  std::vector<std::string> steps;
  const Ruin far{.name = "far above", .tells = true, .lr = 1e5};
  EXPECT_LE(newest_behind(folder.path(), far, steps), 4);
  for (const bool is_told : {false, true}) {
    const TemporaryFolder well;
    const Ruin none{.name = "none", .tells = is_told};
    EXPECT_EQ(newest_behind(well.path(), none, steps), 8);
    EXPECT_EQ(steps, (std::vector<std::string>{"step-000007", "step-000008"}));
    // The loss that the run began with goes on with it.
    Checkpoints checkpoints(well.path());
    Net model;
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, "O0");
    checkpoints.load(model, opt);
    checkpoints.save({.step = 9}, model, opt, 1e5);
    EXPECT_EQ(checkpoints.load(model, opt)->step, is_told ? 8 : 9);
  }
}

// Behind a step the sums are nothing: a loop goes on with other micro-batches. Between them it
// cannot.
TEST(Checkpoints, MicroBatchesChangeBetweenSteps) {
  const Setting three{Mode::Compiled, "O0", StateFormat::F32, 3};
  const TemporaryFolder folder;
  live(folder / "step", three, 1, 9);
  live(folder / "middle", three, 1, 11);
  const auto load = [&](const char* cut, int micro_batches) {
    Net model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O0");
    opt.set_accumulation(micro_batches);
    return Checkpoints(folder / cut).load(model, opt)->step;
  };
  for (const int n : {1, 2, 3, 4}) EXPECT_EQ(load("step", n), 9) << n;
  for (const int n : {1, 2}) EXPECT_EQ(code_of([&] { load("middle", n); }), "E0641") << n;
  EXPECT_EQ(load("middle", 3), 11);
}

// Adds tensors of `value` to a checkpoint's state, as if it had been written with them.
void add_sums(const Path& checkpoint, const std::vector<TensorType>& types, float value) {
  const Path file = checkpoint / "state.safetensors";
  std::vector<std::vector<float>> values;
  {
    const Safetensors state = Safetensors::open(file);
    std::vector<TensorView> all = state.tensors();
    std::erase_if(all, [](const TensorView& t) { return t.name.starts_with("accumulated."); });
    const char* const names[] = {"accumulated.up.weight", "accumulated.down.bias"};
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto count = static_cast<std::size_t>(types[i].shape.max_numel());
      values.emplace_back(count).back() = value;
      all.push_back({names[i], types[i], std::as_bytes(std::span(values.back()))});
    }
    write_safetensors(checkpoint / "with-sums", all);
  }
  std::filesystem::rename(checkpoint / "with-sums", file);
  Manifest manifest = read_manifest(checkpoint);
  const std::string bytes = read_file(file, 1 << 20);
  manifest.files["state.safetensors"] = {bytes.size(), hash64(bytes)};
  std::ofstream(checkpoint / "manifest.json") << manifest_text(manifest);
}

// A run in fp16 begins with steps that overflow: between their micro-batches it is healthy, too.
TEST(Checkpoints, SumsThatOverflowedInTheSearchOfAScaleAreNoDivergence) {
  use_cpu();
  for (const char* precision : {"O2:fp16", "O2:fp16 loss_scale=none"}) {
    const TemporaryFolder folder;
    Checkpoints checkpoints(folder.path());
    Net model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, precision);
    opt.set_accumulation(2);
    Loader loader(samples(), {.batch = 4, .seed = 3});
    const auto [x, y] = *loader.begin();
    accumulate(cross_entropy(net(x), y) * 1e30, opt);
    checkpoints.save({0, 4}, model, opt);
    EXPECT_EQ(checkpoints.load(model, opt).has_value(), precision == std::string("O2:fp16"));
  }
}

// An earlier version wrote sums of zeros behind a step, and did not count what is in them.
TEST(Checkpoints, SumsOfZerosThatNobodyCountedArePassedOver) {
  const std::vector<TensorType> sums{{DType::F32, Shape{16, 6}}, {DType::F32, Shape{3}}};
  for (const int micro_batches : {1, 3}) {
    const TemporaryFolder folder;
    live(folder.path(), {Mode::Compiled, "O0", StateFormat::F32, 3}, 1, 9);
    const auto load = [&](float value) {
      Net model;
      auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O0");
      opt.set_accumulation(micro_batches);
      std::filesystem::remove_all(folder / "step-000008");
      if (value != 7) add_sums(folder / "step-000009", sums, value);
      Checkpoints(folder.path()).load(model, opt);
      return state_of(model, opt);
    };
    const Bytes without = load(7);  // as it is
    EXPECT_TRUE(load(0) == without);
    EXPECT_EQ(code_of([&] { load(0.5f); }), "E0641");  // what would be lost
  }
}

TEST(Checkpoints, WhatIsAnothersIsRefusedAndChangesNothing) {
  const TemporaryFolder folder;
  live(folder.path(), {Mode::Eager, "O0"}, 1, 2);
  Checkpoints checkpoints(folder.path());
  const auto refused = [&](std::string_view head, const OptimizerSpec& spec,
                           const char* precision) {
    Net model(head);
    auto [net, opt] = amp::initialize(model, spec, precision);
    const Bytes before = state_of(model, opt);
    std::string code;
    try {
      checkpoints.load(model, opt);
    } catch (const DataError& e) {
      code = e.code();
      EXPECT_NE(std::string_view(e.what()).find("that it was saved with"), std::string::npos);
    }
    EXPECT_EQ(code.empty(), state_of(model, opt) != before);
    return code;
  };
  EXPECT_EQ(refused("head", optim::AdamW{}, "O0"), "E0641");
  EXPECT_EQ(refused("down", optim::Sgd{}, "O0"), "E0641");
  EXPECT_EQ(refused("down", optim::AdamW{}, "O2:bf16"), "E0641");
  EXPECT_EQ(refused("down", optim::AdamW{.lr = 1}, "O0"), "");  // a rate may change
}

TEST(Checkpoints, OneProgramAtATimeAndNoStepThatCannotBe) {
  use_cpu();
  const TemporaryFolder folder;
  Checkpoints checkpoints(folder / "new");
  EXPECT_EQ(code_of([&] { Checkpoints second(folder / "new"); }), "E0821");
  EXPECT_EQ(code_of([&] { Checkpoints(folder / std::string("new\0er", 6)); }), "E0609");
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{}, "O0");
  EXPECT_FALSE(checkpoints.load(model, opt));
  EXPECT_EQ(code_of([&, &opt = opt] { checkpoints.save({.step = -1}, model, opt); }), "E0824");
  EXPECT_EQ(code_of([&] { Checkpoints(folder / "other", -1); }), "E0824");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53;  // that a manifest can tell
  for (const std::uint64_t beyond : {kMost + 1, std::uint64_t{INT64_MAX}}) {
    const auto step = static_cast<std::int64_t>(beyond);
    EXPECT_EQ(code_of([&, &opt = opt] { checkpoints.save({step, 1}, model, opt); }), "E0824");
    EXPECT_EQ(code_of([&, &opt = opt] { checkpoints.save({1, beyond}, model, opt); }), "E0824");
  }
  EXPECT_TRUE(steps_in(folder / "new").empty());
  checkpoints.save({std::int64_t{kMost}, kMost}, model, opt);
  const auto at = checkpoints.load(model, opt);
  EXPECT_TRUE(at && at->step == std::int64_t{kMost} && at->data_position == kMost);
}

// Its weights would be in no checkpoint, and the run could not be gone on with.
TEST(Checkpoints, AModelWithoutSomeOfWhatIsTrainedIsRefused) {
  use_cpu();
  const TemporaryFolder folder;
  Checkpoints checkpoints(folder.path());
  Net model, other;
  std::vector<VariablePtr> both = model.parameters();
  const std::vector<VariablePtr> more = other.parameters();
  both.insert(both.end(), more.begin(), more.end());
  Optimizer of_both(optim::Sgd{}, both, {}), own(optim::Sgd{}, model.parameters(), {});
  EXPECT_EQ(code_of([&] { checkpoints.save({1, 1}, model, of_both); }), "E0807");
  EXPECT_EQ(code_of([&] { checkpoints.save({1, 1}, other, own); }), "E0807");
  EXPECT_EQ(code_of([&] { checkpoints.load(other, own); }), "E0807");
  EXPECT_TRUE(steps_in(folder.path()).empty());
  checkpoints.save({1, 1}, model, own);
}

// A training of plain steps in a folder: the step that it began behind.
std::int64_t trained(Checkpoints& checkpoints, bool loads, std::int64_t end) {
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, "O0");
  LoopPosition at;
  if (loads) at = checkpoints.load(model, opt).value_or(LoopPosition{});
  const std::int64_t from = at.step;
  while (at.step < end) {
    ++at.step;
    checkpoints.save(at, model, opt);
  }
  return from;
}

std::string run_of(const Path& checkpoint) { return read_manifest(checkpoint).meta.run; }

// Begun anew without load(), it would be told from the older one by steps alone.
TEST(Checkpoints, AFolderBelongsToOneTraining) {
  use_cpu();
  const TemporaryFolder folder;
  const auto train = [&](bool loads, std::int64_t end) {
    Checkpoints checkpoints(folder.path(), 2);
    return trained(checkpoints, loads, end);
  };
  EXPECT_EQ(train(true, 4), 0);  // nothing there
  const std::string name = run_of(folder / "step-000004");
  EXPECT_FALSE(name.empty());
  const std::vector<std::string> before = steps_in(folder.path());
  for (const std::int64_t end : {1, 4, 9}) {
    EXPECT_EQ(code_of([&] { train(false, end); }), "E0827");
    EXPECT_EQ(steps_in(folder.path()), before);
  }
  EXPECT_EQ(train(true, 6), 4);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::string>{"step-000005", "step-000006"}));
  EXPECT_EQ(run_of(folder / "step-000006"), name);
  // Of a killed save of the older one: whole, and not yet in its place.
  std::filesystem::remove_all(folder / "step-000005");
  std::filesystem::rename(folder / "step-000006", folder / ".step-000006.partial");
  EXPECT_EQ(code_of([&] { train(false, 1); }), "E0827");
  std::filesystem::remove_all(folder / "step-000006");
  EXPECT_EQ(train(false, 1), 0);
  EXPECT_NE(run_of(folder / "step-000001"), name);
}

// Another's, brought here later, is neither counted nor removed.
TEST(Checkpoints, OnlyThoseOfTheTrainingMakeRoom) {
  use_cpu();
  const TemporaryFolder folder;
  Checkpoints ours(folder / "ours", 2), others(folder / "others", 2);
  trained(others, false, 2);
  EXPECT_EQ(trained(ours, false, 4), 0);
  std::filesystem::copy(folder / "others" / "step-000001", folder / "ours" / "step-000001");
  EXPECT_EQ(trained(ours, true, 6), 4);
  EXPECT_EQ(steps_in(folder / "ours"),
            (std::vector<std::string>{"step-000001", "step-000005", "step-000006"}));
}

// What happens to the names of a folder, in its order, as the system tells it.
class WatchedNames {
 public:
  explicit WatchedNames(const Path& folder) : watch_(inotify_init1(IN_NONBLOCK)) {
    inotify_add_watch(watch_, folder.c_str(), IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE);
  }
  ~WatchedNames() { ::close(watch_); }
  WatchedNames(const WatchedNames&) = delete;
  WatchedNames& operator=(const WatchedNames&) = delete;
  std::vector<std::string> changes() const {
    std::vector<std::string> all;
    std::array<char, 4096> bytes;
    for (ssize_t n; (n = ::read(watch_, bytes.data(), bytes.size())) > 0;)
      for (ssize_t at = 0; at < n;) {
        inotify_event event;
        std::memcpy(&event, bytes.data() + at, sizeof event);
        const char* name = bytes.data() + at + sizeof event;
        const bool is_new = (event.mask & IN_MOVED_TO) != 0;
        const char* change = is_new ? "there is " : event.mask & IN_DELETE ? "deleted " : "moved ";
        all.push_back(std::string(change) + (event.len > 0 ? name : ""));
        at += static_cast<ssize_t>(sizeof event + event.len);
      }
    return all;
  }

 private:
  int watch_;
};

// At every moment one of the two is there as a whole, under a name that a start looks for.
TEST(Checkpoints, WhatIsReplacedStaysUntilItsReplacementIsThere) {
  use_cpu();
  const TemporaryFolder folder;
  Checkpoints checkpoints(folder / "run", 2);
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.01}, "O0");
  const LoopPosition at{.step = 4};
  checkpoints.save(at, model, opt);
  const WatchedNames names(folder / "run");
  checkpoints.save(at, model, opt);
  EXPECT_EQ(names.changes(),
            (std::vector<std::string>{"moved step-000004", "there is .step-000004.old",
                                      "moved .step-000004.partial", "there is step-000004",
                                      "deleted .step-000004.old"}));
}

// Programs before drew no name: what they left goes on.
TEST(Checkpoints, ThoseWithoutANameGoOn) {
  use_cpu();
  const TemporaryFolder folder;
  {
    Checkpoints checkpoints(folder.path(), 2);
    trained(checkpoints, true, 3);
  }
  for (const std::string& step : steps_in(folder.path())) {
    Manifest manifest = read_manifest(folder / step);
    manifest.meta.run = "";
    std::ofstream(folder / step / "manifest.json") << manifest_text(manifest);
  }
  Checkpoints checkpoints(folder.path(), 2);
  EXPECT_EQ(code_of([&] { trained(checkpoints, false, 4); }), "E0827");
  EXPECT_EQ(trained(checkpoints, true, 5), 3);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::string>{"step-000004", "step-000005"}));
  EXPECT_EQ(trained(checkpoints, true, 6), 5);
}

}  // namespace
}  // namespace aloft::e2e
