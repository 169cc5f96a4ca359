// Encoders against transformers: logits, loss and the gradient of every parameter of tiny
// checkpoints of BERT and RoBERTa for classification, of texts of several lengths with padding
// behind them, compiled and op by op.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "fixture_folders.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "models/huggingface.h"
#include "models/text_classifier.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "optim/sgd.h"
#include "parity/fixture.h"
#include "parity/parity_row.h"
#include "types/tolerance.h"

namespace aloft::parity {
namespace {

struct Checkpoint {
  models::HuggingFaceFolder folder;
  Arrays expected;
  Json judged;  // what PyTorch's own runs are off by, by tensor

  explicit Checkpoint(const std::string& n)
      : folder(models::open_huggingface("tests/fixtures/" + n)),
        expected(read_arrays(n + "/expected.safetensors")),
        judged(read_json(n + "/expected.json")) {}

  std::unique_ptr<models::Classifier> model() const {
    std::unique_ptr<models::Classifier> made = models::make_classifier(folder.spec);
    made->eval();
    return made;
  }
  std::string gradient_name(const std::string& p) const {
    return "grad." + folder.stored.at(p).name;
  }
  const HostArray& gradient(const std::string& p) const { return expected.at(gradient_name(p)); }
  double error_of_torch(const std::string& result) const {
    return judged.at("torch_fp32_error").at(result).get<double>();
  }
  Tensor ints(const char* name) const {
    const HostArray& a = expected.at(name);
    return from_ints({a.values.begin(), a.values.end()}, Shape::of(a.shape));
  }
  std::vector<Tensor> inputs() const {
    return {ints("tokens"), ints("types"), ints("lengths"), ints("labels")};
  }
};

// What is added to every key alike changes no weight of a softmax: its gradient is 0, and its
// errors are absolute.
bool is_of_key_bias(const std::string& parameter) { return parameter.ends_with("key.bias"); }

double largest(const HostArray& a) {
  double most = 0;
  for (const double v : a.values) most = std::max(most, std::abs(v));
  return most;
}
double length(const HostArray& a) {
  double squares = 0;
  for (const double v : a.values) squares += v * v;
  return std::sqrt(squares);
}

// Logits, loss, then the gradient of loss x seed by every parameter.
std::vector<Tensor> emit_scores(const models::Classifier& model, const std::vector<Tensor>& in,
                                float seed) {
  const models::TextClassifier& of_texts = *model.of_texts();
  ModuleScope scope("", model.policy());
  const Tensor logits = of_texts.classify(in[0], in[1], in[2]);
  const Tensor loss = cross_entropy(logits, in[3]);
  std::vector<Tensor> results{logits, loss}, wrt;
  for (const VariablePtr& p : model.parameters()) wrt.push_back(current_emitter().state(p));
  const auto grads = loss.emitter()->gradients(loss, scalar_like(loss, seed), wrt, current_where());
  results.insert(results.end(), grads.begin(), grads.end());
  return results;
}

HostArray host(const Tensor& t) {
  std::vector<std::int64_t> shape;
  for (const Dim& d : t.shape()) shape.push_back(d.max());
  HostArray a = HostArray::zeros(t.dtype(), std::move(shape));
  const std::vector<double> v = t.to_vector();
  a.values.assign(v.begin(), v.end());
  return a;
}

struct Scores {
  HostArray logits, loss;
  std::vector<HostArray> gradients;  // in the order of parameters()
};

enum class Mode { Compiled, Eager };

Scores score(const Checkpoint& c, const models::Classifier& model, Mode mode, float seed = 1) {
  const std::vector<Tensor> in = c.inputs();
  std::vector<Tensor> got;
  if (mode == Mode::Compiled) {
    auto compiled = compile(
        [&](const Tensor& a, const Tensor& b, const Tensor& l, const Tensor& y) {
          return emit_scores(model, {a, b, l, y}, seed);
        },
        {.partial_batches = false});
    got = compiled(in[0], in[1], in[2], in[3]);
  } else {
    got = emit_scores(model, in, seed);
  }
  Scores out{host(got[0]), host(got[1]), {}};
  for (std::size_t i = 2; i < got.size(); ++i) {
    out.gradients.push_back(host(got[i]));
    for (HostNumber& g : out.gradients.back().values) g /= seed;
  }
  return out;
}

class EncoderParity : public ::testing::TestWithParam<std::tuple<std::string, Mode>> {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
  Checkpoint checkpoint_{std::get<0>(GetParam())};
  Mode mode() const { return std::get<1>(GetParam()); }
};

// Within 1e-5 of float64, or within twice PyTorch's own fp32 error.
TEST_P(EncoderParity, SinglePrecision) {
  const Checkpoint& c = checkpoint_;
  const auto model = c.model();
  models::load_huggingface(c.folder, *model);
  const Scores got = score(c, *model, mode());
  const auto limit = [&](const std::string& result) {
    return std::max(1e-5, 2 * c.error_of_torch(result));
  };
  ParityRow row(
      "encoder",
      in_mode(std::get<0>(GetParam()), mode() == Mode::Eager) + ", fp32: share of the limit", 1);
  row.see(error_of(got.logits, c.expected.at("logits")), 0, limit("logits"), "logits");
  row.see(error_of(got.loss, c.expected.at("loss")), 0, limit("loss"), "loss");
  const std::vector<VariablePtr> parameters = model->parameters();
  ASSERT_EQ(parameters.size(), c.folder.stored.size());
  ASSERT_EQ(parameters.size(), got.gradients.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string p = parameters[i]->name.str();
    SCOPED_TRACE(p);
    const HostArray& want = c.gradient(p);
    if (is_of_key_bias(p)) {
      std::string of_queries = p;
      of_queries.replace(p.rfind("key"), 3, "query");
      EXPECT_LE(largest(got.gradients[i]), std::max(1e-5 * largest(c.gradient(of_queries)),
                                                    2 * c.error_of_torch(c.gradient_name(p))));
      continue;
    }
    row.see(error_of(got.gradients[i], want), 0, limit(c.gradient_name(p)), p);
    for (const auto& [wrong, gradient] : wrong_gradients(want))
      EXPECT_GT(error_of(gradient, want), limit(c.gradient_name(p))) << wrong;
  }
}

// What a logit goes through that is rounded to the low type. A block: two norms, six products and
// their weights, scores and their weights, two sums, the activation; besides the blocks the sums of
// the embeddings, their norm, and the head's two products with a tanh between them. A gradient goes
// through as many again.
int roundings(const models::ModelSpec& spec) {
  return 20 * static_cast<int>(spec.whole("layers")) + 12;
}

struct LowLevel {
  const char* name;
  DType type;
  float seed;
};

TEST_P(EncoderParity, LowPrecision) {
  const Checkpoint& c = checkpoint_;
  ParityRow row("encoder",
                in_mode(std::get<0>(GetParam()), mode() == Mode::Eager) +
                    ", bf16 and fp16: tensors beyond their band",
                0);
  for (const LowLevel& low :
       {LowLevel{"O1:bf16", DType::BF16, 1}, LowLevel{"O2:bf16", DType::BF16, 1},
        LowLevel{"O1:fp16", DType::F16, 1024}, LowLevel{"O2:fp16", DType::F16, 1024}}) {
    SCOPED_TRACE(low.name);
    const auto model = c.model();
    const auto trained = amp::initialize(*model, optim::Sgd{}, low.name);
    model->eval();
    models::load_huggingface(c.folder, *model);
    const Scores got = score(c, *model, mode(), low.seed);
    const LowJudge judge(c.judged, low.type);
    const HostArray &logits = c.expected.at("logits"), &loss = c.expected.at("loss");
    const auto cap = [&](int passes) {
      return chain_tolerance(low.type, passes * roundings(c.folder.spec));
    };
    const auto see = [&](const std::string& name, const std::string& problem) {
      row.see(problem.empty() ? 0 : 1, 0, 1, std::string(low.name) + ", " + name + ": " + problem);
    };
    see("logits", judge.problem("logits", got.logits, logits, cap(1)));
    EXPECT_GT(norm_error(got.logits, logits), judge.own_norm_error("logits") / 4)
        << "the low type was not used";
    EXPECT_LE(error_of(got.loss, loss), judge.loss_limit(logits, loss, logits.shape[0]));
    const std::vector<VariablePtr> parameters = model->parameters();
    ASSERT_EQ(parameters.size(), got.gradients.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string p = parameters[i]->name.str(), name = c.gradient_name(p);
      SCOPED_TRACE(p);
      const HostArray& want = c.gradient(p);
      if (is_of_key_bias(p)) {
        EXPECT_LE(length(got.gradients[i]), LowJudge::kElement * judge.own_norm_error(name));
        continue;
      }
      const auto problem = [&](const HostArray& g) { return judge.problem(name, g, want, cap(2)); };
      see(p, problem(got.gradients[i]));
      for (const auto& wrongs : {wrong_elements(got.gradients[i]), wrong_gradients(want)})
        for (const auto& [wrong, gradient] : wrongs) EXPECT_NE(problem(gradient), "") << wrong;
    }
  }
}

// What lies behind a text is looked at by nothing.
TEST_P(EncoderParity, PaddingChangesNothing) {
  const Checkpoint& c = checkpoint_;
  const auto model = c.model();
  models::load_huggingface(c.folder, *model);
  const models::TextClassifier& of_texts = *model->of_texts();
  HostArray tokens = c.expected.at("tokens");
  const HostArray& lengths = c.expected.at("lengths");
  const std::int64_t longest = tokens.shape[1];
  const auto logits_of = [&](const HostArray& ids) {
    return of_texts
        .classify(from_ints({ids.values.begin(), ids.values.end()}, Shape::of(ids.shape)),
                  c.ints("types"), c.ints("lengths"))
        .to_floats();
  };
  const std::vector<float> before = logits_of(tokens);
  for (std::int64_t row = 0; row < tokens.shape[0]; ++row)
    for (std::int64_t t = lengths.values[row].whole(); t < longest; ++t)
      tokens[row * longest + t] = 5.0;
  EXPECT_EQ(before, logits_of(tokens));
  tokens[1] = tokens[1] == HostNumber(5) ? 6.0 : 5.0;  // of a text
  EXPECT_NE(before, logits_of(tokens));
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, EncoderParity,
                         ::testing::Combine(::testing::ValuesIn(fixture_encoders()),
                                            ::testing::Values(Mode::Compiled, Mode::Eager)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (std::get<1>(info.param) == Mode::Eager ? "_eager" : "");
                         });

}  // namespace
}  // namespace aloft::parity
