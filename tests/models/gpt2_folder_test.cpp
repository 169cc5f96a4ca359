// Hugging Face folders made with transformers: logits, loss and every gradient against the float64
// judge, in both orientations, with and without prefix; and folders that must be refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "fixture_folders.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/random.h"
#include "models/gpt2.h"
#include "models/huggingface.h"
#include "models/state_dict.h"
#include "ops/cross_entropy.h"
#include "optim/sgd.h"
#include "temporary_folder.h"
#include "types/tolerance.h"

namespace aloft::models {
namespace {

std::string bytes_of(const Variable& v) {
  const auto bytes = v.buffer->read<char>(0, v.type.max_bytes());
  return {bytes.begin(), bytes.end()};
}

const char* const kFolders[] = {"gpt2-tiny", "gpt2-linear", "gpt2-odd"};
Gpt2Config config_in(const HuggingFaceFolder& folder) {
  return config_of<Gpt2Config>(folder.spec.settings);
}
Path fixture(const std::string& name) { return Path("tests/fixtures") / name; }

void use_cpu() {
  static const bool once = (use_device(cpu_device()), true);
  (void)once;
}

std::vector<float> floats(const TensorView& t) {
  std::vector<float> v(static_cast<std::size_t>(t.type.shape.max_numel()));
  read_floats(t, 0, v);
  return v;
}

Tensor integers(const TensorView& t) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(t.type.shape.max_numel()));
  for (std::size_t i = 0; i < v.size(); ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, t.bytes.data() + i * sizeof value, sizeof value);
    v[i] = static_cast<std::int32_t>(value);
  }
  return from_ints(v, t.type.shape);
}

// Largest difference over largest magnitude.
double distance(const std::vector<float>& ours, const std::vector<float>& judge) {
  EXPECT_EQ(ours.size(), judge.size());
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < std::min(ours.size(), judge.size()); ++i) {
    difference = std::max(difference, std::abs(double(ours[i]) - judge[i]));
    magnitude = std::max(magnitude, std::abs(double(judge[i])));
  }
  return magnitude > 0 ? difference / magnitude : difference;
}

std::vector<float> transposed(const std::vector<float>& x, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> y(x.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * columns + c];
  return y;
}

// What a logit goes through: 14 results a block and 5 besides (parity/decoders_test.cpp names
// them), each a sum over at most the feed-forward part's width, the errors of which are
// independent. A gradient goes through as many again.
double chain_of_sums(const Gpt2Config& config, int ways) {
  const double results = ways * (14.0 * static_cast<double>(config.layers) + 5);
  return tolerance_of(DType::F32, config.feed_forward()).absolute * std::sqrt(results);
}

class Folder : public testing::TestWithParam<const char*> {};

TEST_P(Folder, LogitsLossAndGradientsAreTheJudges) {
  use_cpu();
  eager().clear_tape();
  const HuggingFaceFolder folder = open_huggingface(fixture(GetParam()));
  const Safetensors expected = Safetensors::open(fixture(GetParam()) / "expected.safetensors");
  Gpt2 model(config_in(folder));
  load_huggingface(folder, model);
  const Tensor tokens = integers(expected.at("tokens")), targets = integers(expected.at("targets"));
  const Tensor logits = model(tokens);
  EXPECT_LT(distance(logits.to_floats(), floats(expected.at("logits"))),
            chain_of_sums(config_in(folder), 1));
  const Tensor loss = cross_entropy(logits, targets);
  const double judged = floats(expected.at("loss"))[0];
  EXPECT_NEAR(loss.item(), judged, allowed_error(DType::F32, 1, judged));
  loss.backward();
  for (const VariablePtr& p : model.parameters()) {
    const StoredTensor& stored = folder.stored.at(p->name.str());
    const TensorView& judge = expected.at("grad." + stored.name);
    std::vector<float> want = floats(judge);
    if (stored.transposed)
      want = transposed(want, judge.type.shape[0].max(), judge.type.shape[1].max());
    EXPECT_LT(distance(grad_of(p).to_floats(), want), chain_of_sums(config_in(folder), 2))
        << p->name.str();
  }
}

class AnyFolder : public testing::TestWithParam<std::string> {};

TEST_P(AnyFolder, SurvivesBeingWrittenAndReadAgain) {
  use_cpu();
  const TemporaryFolder temporary;
  const HuggingFaceFolder folder = open_huggingface(fixture(GetParam()));
  const auto model = make_module(folder.spec);
  load_huggingface(folder, *model);
  save_huggingface(temporary.path() / "again", *model, folder.spec);
  const HuggingFaceFolder again = open_huggingface(temporary.path() / "again");
  // What follows from other settings is written out.
  ModelSpec want = folder.spec;
  for (const ModelSetting& s : want.family->settings)
    if (s.role.derived && !s.role.published.empty())
      want.settings[std::string(s.key)] = want.whole(s.key);
  EXPECT_EQ(again.spec.settings, want.settings);
  const auto copy = make_module(again.spec);
  load_huggingface(again, *copy);
  for (const VariablePtr& p : model->parameters())
    EXPECT_EQ(bytes_of(*p), bytes_of(*copy->parameter(p->name.str()))) << p->name.str();
}
INSTANTIATE_TEST_SUITE_P(All, AnyFolder, testing::ValuesIn(fixture_folders()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
INSTANTIATE_TEST_SUITE_P(All, Folder, testing::ValuesIn(kFolders), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// A folder with the tiny model's tensors and another config.json.
Path with_config(const Path& folder, const std::string& config) {
  std::filesystem::copy_file(fixture("gpt2-tiny") / "model.safetensors",
                             folder / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder / "config.json") << config;
  return folder;
}

TEST(Gpt2Folder, WrongFoldersAreRefused) {
  const TemporaryFolder temporary;
  const auto code_of = [&](const std::string& config) -> std::string {
    try {
      open_huggingface(with_config(temporary.path(), config));
    } catch (const DataError& e) {
      return e.code();
    }
    return "";
  };
  const std::string rest =
      R"("n_positions": 24, "n_embd": 32, "n_head": 4, "vocab_size": 96, "model_type": "gpt2")";
  EXPECT_EQ(code_of("{\"n_layer\": 2, " + rest + "}"), "");
  EXPECT_EQ(code_of("{\"n_layer\": 3, " + rest + "}"), "E0632");           // a layer is missing
  EXPECT_EQ(code_of("{\"n_layer\": 1, " + rest + "}"), "E0632");           // one too many
  EXPECT_EQ(code_of("{\"n_layer\": 2000000000, " + rest + "}"), "E0631");  // nothing of that size
  EXPECT_EQ(code_of("{\"n_layer\": 2, \"n_inner\": 64, " + rest + "}"), "E0632");
  EXPECT_EQ(code_of("{\"n_layer\": 2, \"activation_function\": \"relu\", " + rest + "}"), "E0631");
  EXPECT_EQ(code_of("{\"n_layer\": -1, " + rest + "}"), "E0631");
  EXPECT_EQ(code_of("{\"n_layer\": \"two\", " + rest + "}"), "E0631");
  EXPECT_EQ(code_of("{\"model_type\": \"mamba\"}"), "E0631");
  EXPECT_EQ(code_of("[1, 2"), "E0631");
  EXPECT_EQ(code_of(""), "E0631");
}

// A folder written from a model in training holds its masters, and one read into a model that was
// prepared already is what the next step goes on from.
TEST(Gpt2Folder, MastersAreWhatIsSavedAndLoaded) {
  use_cpu();
  const TemporaryFolder temporary;
  Gpt2Config config;
  config.layers = 1;
  config.heads = 2;
  config.dim = 8;
  config.vocab = 11;
  config.context = 4;
  const auto values_of = [](const Gpt2& model) {
    std::vector<float> all;
    for (const VariablePtr& v : state_variables(model)) {
      std::vector<float> values(static_cast<std::size_t>(v->type.shape.max_numel()));
      read_state(*v, 0, values);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  manual_seed(1);
  Gpt2 first(config);
  const std::vector<float> before = values_of(first);
  const auto of_first = amp::initialize(first, optim::Sgd{}, "O2:bf16");
  save_huggingface(temporary.path() / "saved", first, spec_of("gpt2", first.config()));
  manual_seed(2);
  Gpt2 second(config);
  auto [net, opt] = amp::initialize(second, optim::Sgd{.lr = 0}, "O2:bf16");
  load_huggingface(open_huggingface(temporary.path() / "saved"), second);
  const Tensor tokens = from_ints({1, 2, 3, 4}, {1, 4});
  EXPECT_FALSE(
      minimize(cross_entropy(net(tokens), from_ints({2, 3, 4, 5}, {1, 4})), opt).skipped());
  EXPECT_EQ(values_of(second), before);
}

TEST(StateDict, MastersAreWhatIsSavedAndLoaded) {
  use_cpu();
  const TemporaryFolder temporary;
  Gpt2Config config;
  config.layers = 1;
  config.heads = 2;
  config.dim = 8;
  config.vocab = 11;
  config.context = 4;
  Gpt2 model(config);
  std::map<std::string, std::string> before;
  for (const VariablePtr& p : model.parameters()) before[p->name.str()] = bytes_of(*p);
  auto [net, opt] = amp::initialize(model, optim::Momentum{}, "O2:bf16");
  save_state(temporary.path() / "state.safetensors", model);
  const Safetensors file = Safetensors::open(temporary.path() / "state.safetensors");
  for (const auto& [name, bytes] : before) {
    const TensorView& t = file.at(name);
    EXPECT_EQ(t.type.dtype, DType::F32);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()), bytes);
  }
  // Into a model that keeps everything in one type, and into one of another width.
  Gpt2 plain(config);
  load_state(file, plain);
  for (const VariablePtr& p : plain.parameters()) EXPECT_EQ(bytes_of(*p), before[p->name.str()]);
  config.dim = 16;
  Gpt2 wider(config);
  EXPECT_THROW(load_state(file, wider), DataError);
}

}  // namespace
}  // namespace aloft::models
