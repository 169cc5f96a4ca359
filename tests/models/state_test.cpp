// A model's state and modes across modules: saving, loading and saving again, loads that are
// refused, train and evaluation mode of what is nested, gradients that detach() stops.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/file.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/random.h"
#include "models/state_dict.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/identity.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/sgd.h"
#include "temporary_folder.h"
#include "types/tolerance.h"

namespace aloft::models {
namespace {

// Modules two levels deep, with buffers.
struct Block : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm2d norm;
  nn::Dropout drop;
  Block(nn::Module& parent, std::string_view name, std::int64_t width)
      : Module(parent, name),
        conv(*this, "conv", 2, width, 1),
        norm(*this, "norm", width),
        drop(*this, "drop", 0.5) {}
  Tensor operator()(const Tensor& x) { return drop(norm(conv(x))); }
};
struct Net : nn::Module {
  Block block;
  nn::Linear head;
  explicit Net(std::int64_t width = 3, std::string_view head_name = "head")
      : block(*this, "block", width), head(*this, head_name, width * 4, 2) {}
  Tensor operator()(const Tensor& x) { return head(flatten(block(x), 1)); }
};

void start(std::uint64_t seed) {
  static const bool once = (use_device(cpu_device()), true);
  (void)once;
  eager().clear_tape();
  manual_seed(seed);
}

Tensor images(int step = 0) {
  std::vector<float> x;
  for (int i = 0; i < 5 * 8; ++i) x.push_back(static_cast<float>((i * 7 + step * 3) % 11) / 5);
  return from_floats(x, {5, 2, 2, 2});
}

std::map<std::string, std::string> bytes_of(const nn::Module& m, const Optimizer& opt) {
  std::map<std::string, std::string> all;
  for (const auto& list : {m.parameters(), m.buffers(), opt.state()})
    for (const VariablePtr& v : list) {
      const auto bytes = v->buffer->read<char>(0, v->type.max_bytes());
      all[v->name.str()].assign(bytes.begin(), bytes.end());
    }
  return all;
}

class State : public testing::TestWithParam<const char*> {};

TEST_P(State, SavedLoadedAndSavedAgainItIsTheSameFile) {
  const TemporaryFolder folder;
  start(1);
  Net first;
  auto [net, opt] = amp::initialize(first, optim::Sgd{.lr = 0.1}, GetParam());
  for (int i = 0; i < 3; ++i) {
    const Tensor y = net(images(i));
    minimize(mean(y * y), opt);
  }
  save_state(folder / "a.safetensors", first);
  start(2);
  Net second;
  auto [other, other_opt] = amp::initialize(second, optim::Sgd{.lr = 0.1}, GetParam());
  EXPECT_NE(bytes_of(second, other_opt), bytes_of(first, opt));
  load_state(Safetensors::open(folder / "a.safetensors"), second);
  save_state(folder / "b.safetensors", second);
  EXPECT_TRUE(read_file(folder / "a.safetensors", 1 << 20) ==
              read_file(folder / "b.safetensors", 1 << 20));
  for (const auto& list : {first.parameters(), first.buffers()})
    for (const VariablePtr& v : list)
      EXPECT_EQ(bytes_of(second, other_opt).at(v->name.str()),
                bytes_of(first, opt).at(v->name.str()));
}

// The values that are trained, all of them one after another.
std::vector<float> trained_values(const nn::Module& m) {
  std::vector<float> all;
  for (const VariablePtr& v : state_variables(m)) {
    std::vector<float> values(static_cast<std::size_t>(v->type.shape.max_numel()));
    read_state(*v, 0, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// A step updates the master and rounds the parameter from it: the master must have been loaded too.
TEST_P(State, AStepGoesOnFromWhatWasLoaded) {
  for (const StateFormat master : {StateFormat::F32, StateFormat::Split}) {
    if (master == StateFormat::Split && std::string(GetParam()) != "O2:bf16") continue;
    for (const bool is_compiled : {false, true}) {
      const TemporaryFolder folder;
      start(1);
      Net first;
      save_state(folder / "a.safetensors", first);
      const std::vector<float> saved = trained_values(first);
      start(2);
      Net second;
      second.eval();  // running statistics stay
      auto [net, opt] = amp::initialize(second, optim::Sgd{.lr = 0, .master = master}, GetParam());
      const auto update = [&net = net, &opt = opt](const Tensor& x) {
        const Tensor y = net(x);
        return minimize(mean(y * y), opt);
      };
      auto compiled = compile(update, {.partial_batches = false});
      const auto step = [&] { return is_compiled ? compiled(images()) : update(images()); };
      step();  // what was read before the load is not read behind it
      load_state(Safetensors::open(folder / "a.safetensors"), second);
      EXPECT_EQ(trained_values(second), saved);
      int skipped = 0;  // until the loss scale fits
      while (step().skipped() && skipped < 30) ++skipped;
      EXPECT_LT(skipped, 30);
      EXPECT_EQ(trained_values(second), saved);
      for (const VariablePtr& p :
           second.parameters()) {  // and what the model computes with is near
        const std::vector<double> low =
            eager().from_host(p->type, p->buffer->read<char>().data()).to_vector();
        const VariablePtr want = first.parameter(p->name.str());
        for (std::size_t i = 0; i < low.size(); ++i) {
          const double exact = want->buffer->read_one<float>(i);
          EXPECT_NEAR(low[i], exact, allowed_error(p->type.dtype, 1, exact)) << p->name.str();
        }
      }
    }
  }
}

TEST_P(State, ALoadThatDoesNotFitChangesNothing) {
  const TemporaryFolder folder;
  start(1);
  Net wider(4), renamed(3, "top");  // shapes that differ; a name that is missing and one too many
  save_state(folder / "wider.safetensors", wider);
  save_state(folder / "renamed.safetensors", renamed);
  start(2);
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{}, GetParam());
  const auto before = bytes_of(model, opt);
  for (const char* file : {"wider.safetensors", "renamed.safetensors"}) {
    EXPECT_THROW(load_state(Safetensors::open(folder / file), model), DataError) << file;
    EXPECT_EQ(bytes_of(model, opt), before) << file;
  }
}

// What fits is loaded, the rest is said and stays.
TEST_P(State, ALoadThatIsNotStrictSaysWhatItLeft) {
  const TemporaryFolder folder;
  start(1);
  Net wider(4);
  save_state(folder / "wider.safetensors", wider);
  start(2);
  Net model;
  const auto [net, opt] = amp::initialize(model, optim::Sgd{}, GetParam());
  const Safetensors file = Safetensors::open(folder / "wider.safetensors");
  const auto values = [](const Variable& v) {
    std::vector<float> out(static_cast<std::size_t>(v.type.shape.max_numel()));
    read_state(v, 0, out);
    return out;
  };
  std::map<std::string, std::vector<float>> before;
  for (const VariablePtr& v : state_variables(model)) before[v->name.str()] = values(*v);
  const StateReport report = load_state(file, model, {.strict = false});
  EXPECT_FALSE(report.is_complete());
  EXPECT_FALSE(report.loaded.empty());
  EXPECT_FALSE(report.mismatched.empty());
  EXPECT_TRUE(report.missing.empty() && report.unexpected.empty());
  EXPECT_EQ(report.loaded.size() + report.mismatched.size(), before.size());
  EXPECT_NE(report.str().find("of another type: '"), std::string::npos) << report.str();
  const std::set<std::string> loaded(report.loaded.begin(), report.loaded.end());
  for (const VariablePtr& v : state_variables(model)) {
    const std::string& name = v->name.str();
    std::vector<float> want = before.at(name);
    if (loaded.contains(name)) read_floats(file.at(name), 0, want);
    EXPECT_EQ(values(*v), want) << name;
  }
  Net renamed(3, "top");
  const StateReport other = load_state(file, renamed, {.strict = false});
  EXPECT_FALSE(other.missing.empty() || other.unexpected.empty());
}

TEST_P(State, ModesOfNestedModulesHoldInBothModes) {
  start(1);
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{}, GetParam());
  const auto call = [&net = net](const Tensor& x) { return net(x); };
  const Tensor x = images();
  const auto mean_now = [&model, &opt = opt] {
    return bytes_of(model, opt).at("block.norm.running_mean");
  };
  model.eval();
  EXPECT_FALSE(model.block.drop.is_training() || model.block.norm.is_training());
  const std::string start_mean = mean_now();
  const std::vector<float> y = call(x).to_floats();
  auto compiled = compile(call, {.partial_batches = false});
  EXPECT_EQ(call(x).to_floats(), y);  // no number is drawn
  EXPECT_EQ(compiled(x).to_floats(), y);
  EXPECT_EQ(mean_now(), start_mean);
  model.train();
  EXPECT_TRUE(model.block.drop.is_training() && model.block.norm.is_training());
  EXPECT_NE(call(x).to_floats(), y);
  const std::string moved = mean_now();
  EXPECT_NE(moved, start_mean);
  auto training = compile(call, {.partial_batches = false});
  EXPECT_NE(training(x).to_floats(), y);
  EXPECT_NE(mean_now(), moved);
}

INSTANTIATE_TEST_SUITE_P(All, State, testing::Values("O0", "O2:bf16", "O2:fp16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           if (name.size() > 2) name[2] = '_';
                           return name;
                         });

struct Weight : nn::Module {
  VariablePtr w = add_parameter("w", {2}, [](float* v, std::int64_t) { v[0] = 2, v[1] = 3; });
  Tensor operator()() const { return use(w); }
};

// d/dw of sum(detach(w) * w) is w, not 2 w: a step of rate 1 leaves zero.
TEST(Detach, StopsTheGradientAndPassesTheValueInBothModes) {
  for (const bool is_compiled : {false, true}) {
    start(1);
    Weight model;
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 1}, "O0");
    const auto step = [&, &opt = opt](const Tensor& factor) {
      const Tensor w = model();
      return minimize(sum(detach(w) * w * factor), opt);
    };
    auto compiled = compile(step, {.partial_batches = false});
    const Tensor one = from_floats({1, 1}, {2});
    const StepResult r = is_compiled ? compiled(one) : step(one);
    EXPECT_EQ(r.loss(), 13);
    const auto w = model.w->buffer->read<float>();
    EXPECT_EQ(w[0], 0);
    EXPECT_EQ(w[1], 0);
  }
}

template <class Call>
std::string code_of(const Call& call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.code();
  }
  return "";
}

// Elements that a variable does not have are not read from, nor written to, its neighbour's memory.
TEST(StateValues, AreThoseOfTheVariable) {
  start(1);
  Weight model;
  Variable& w = *model.w;
  std::vector<float> three(3, 7);
  const std::span<float> all(three);
  for (const std::int64_t first : {INT64_MIN, std::int64_t{-1}, std::int64_t{3}, INT64_MAX}) {
    EXPECT_EQ(code_of([&] { read_state(w, first, all.first(1)); }), "E0313") << first;
    EXPECT_EQ(code_of([&] { write_state(w, first, all.first(1)); }), "E0313") << first;
  }
  EXPECT_EQ(code_of([&] { read_state(w, 0, all); }), "E0313");
  EXPECT_EQ(code_of([&] { write_state(w, 1, all.first(2)); }), "E0313");
  EXPECT_EQ(code_of([&] { read_state(w, 2, all.first(0)); }), "");
  EXPECT_EQ(w.buffer->read_one<float>(1), 3);
  const TensorView ids{"ids", {DType::I32, {2}}, std::as_bytes(all.first(2))};
  EXPECT_EQ(code_of([&] { read_floats(ids, 0, all.first(2)); }), "E0323");
  EXPECT_EQ(code_of([&] { read_floats(ids, 1, all.first(2)); }), "E0313");
}

TEST(HostMemory, EveryTypeComesBack) {
  start(1);
  const auto back = [](DType dtype, const auto& values) {
    const auto count = static_cast<std::int64_t>(std::size(values));
    return eager().from_host({dtype, {count}}, std::data(values)).to_vector();
  };
  using Values = std::vector<double>;
  EXPECT_EQ(back(DType::F64, std::vector<double>{0.1, -3}), (Values{0.1, -3}));
  EXPECT_EQ(back(DType::F32, std::vector<float>{0.5f, -3}), (Values{0.5, -3}));
  EXPECT_EQ(back(DType::BF16, std::vector<std::uint16_t>{0x3f80, 0xc040}), (Values{1, -3}));
  EXPECT_EQ(back(DType::F16, std::vector<std::uint16_t>{0x3c00, 0xc200}), (Values{1, -3}));
  EXPECT_EQ(back(DType::I32, std::vector<std::int32_t>{-7, 1 << 30}), (Values{-7, 1 << 30}));
  EXPECT_EQ(back(DType::I64, std::vector<std::int64_t>{-7, 1LL << 40}), (Values{-7, 1LL << 40}));
  EXPECT_EQ(back(DType::U8, std::vector<std::uint8_t>{255, 0}), (Values{255, 0}));
  EXPECT_EQ(back(DType::I8, std::vector<std::int8_t>{-128, 5}), (Values{-128, 5}));
  EXPECT_EQ(back(DType::Bool, std::vector<std::uint8_t>{1, 0}), (Values{1, 0}));
}

TEST(HostMemory, ValuesThatDoNotFitTheShapeAreRefused) {
  start(1);
  EXPECT_THROW(from_floats({1, 2, 3}, {2, 2}), UserError);
  EXPECT_THROW(from_ints({1}, {2}), UserError);
  EXPECT_EQ(from_ints({-7, 1 << 30}, {2}).to_vector(), (std::vector<double>{-7, 1 << 30}));
  EXPECT_EQ(from_floats({0.1f, -3}, {2, 1}).to_floats(), (std::vector<float>{0.1f, -3}));
  EXPECT_TRUE(from_floats({}, {0, 3}).to_floats().empty());
}

}  // namespace
}  // namespace aloft::models
