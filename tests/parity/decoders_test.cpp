// Decoders against PyTorch and transformers: logits, loss and the gradient of every parameter of
// tiny checkpoints, read from Hugging Face folders of several kinds, compiled and op by op; and the
// likeliest tokens that follow a prompt, with a cache and without.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "fixture_folders.h"
#include "frontend/amp.h"
#include "frontend/eager.h"
#include "frontend/programs.h"
#include "models/huggingface.h"
#include "ops/binary.h"
#include "optim/sgd.h"
#include "parity/fixture.h"
#include "parity/parity_row.h"
#include "types/tolerance.h"

namespace aloft::parity {
namespace {

// One committed folder with the float64 judge's verdict.
struct Checkpoint {
  std::string name;
  models::HuggingFaceFolder folder;
  Arrays expected;
  Json judged;  // what PyTorch's own runs are off by, by tensor

  explicit Checkpoint(const std::string& n)
      : name(n),
        folder(models::open_huggingface("tests/fixtures/" + n)),
        expected(read_arrays(n + "/expected.safetensors")),
        judged(read_json(n + "/expected.json")) {}

  std::unique_ptr<models::CausalLm> model() const {
    return folder.spec.family->make_causal_lm(folder.spec.settings);
  }
  // The judge's gradient of the model's parameter `p`, in the model's orientation.
  HostArray gradient(const std::string& p) const {
    const models::StoredTensor& stored = folder.stored.at(p);
    const HostArray& g = expected.at("grad." + stored.name);
    if (!stored.transposed) return g;
    HostArray t = HostArray::zeros(g.dtype, {g.shape[1], g.shape[0]});
    for (std::int64_t i = 0; i < g.shape[0]; ++i)
      for (std::int64_t j = 0; j < g.shape[1]; ++j) t[j * g.shape[0] + i] = g[i * g.shape[1] + j];
    return t;
  }
  std::string gradient_name(const std::string& p) const {
    return "grad." + folder.stored.at(p).name;
  }
  double single_limit(const std::string& result) const {
    return std::max(1e-5, 2 * judged.at("torch_fp32_error").at(result).get<double>());
  }
  std::int64_t rows() const {  // with a target
    const auto& t = expected.at("targets").values;
    return static_cast<std::int64_t>(t.size()) - std::count(t.begin(), t.end(), HostNumber(-100));
  }
};

using Results = std::vector<std::pair<std::string, Tensor>>;

// Logits, loss and gradients of loss x seed.
Results emit_scores(const models::CausalLm& model, const Tensor& tokens, const Tensor& targets,
                    double seed) {
  const Tensor logits = model(tokens);
  const Tensor loss = model.loss(tokens, targets);
  Results results{{"logits", logits}, {"loss", loss}};
  std::vector<Tensor> wrt;
  for (const VariablePtr& p : model.parameters()) wrt.push_back(current_emitter().state(p));
  const auto grads = loss.emitter()->gradients(loss, scalar_like(loss, seed), wrt, current_where());
  for (std::size_t i = 0; i < wrt.size(); ++i)
    results.emplace_back(model.parameters()[i]->name.str(), grads[i]);
  return results;
}

HostArray empty_of(const TensorType& type) {
  std::vector<std::int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.max());
  return HostArray::zeros(type.dtype, std::move(shape));
}

Arrays score_compiled(const Checkpoint& c, const models::CausalLm& model, double seed) {
  const HostArray &tokens = c.expected.at("tokens"), &targets = c.expected.at("targets");
  const TensorType type{DType::I64, Shape::of(tokens.shape)};
  Programs programs;
  programs.add("score", {{"tokens", type}, {"targets", type}}, [&](const std::vector<Tensor>& in) {
    return emit_scores(model, in.at(0), in.at(1), seed);
  });
  programs.finish();
  store_bytes(tokens, programs.input<std::byte>("score", "tokens").write().data());
  store_bytes(targets, programs.input<std::byte>("score", "targets").write().data());
  programs.run(programs.find("score"), {});
  Arrays got;
  for (const NamedRef& out : programs.plan().find("score")->outputs) {
    HostArray a = empty_of(out.ref.type);
    load_bytes(a, programs.output<std::byte>("score", out.name).read().data());
    got.emplace(out.name, std::move(a));
  }
  return got;
}

Arrays score_eagerly(const Checkpoint& c, const models::CausalLm& model, double seed) {
  const auto ints = [](const HostArray& a) {
    return from_ints({a.values.begin(), a.values.end()}, Shape::of(a.shape));
  };
  Arrays got;
  for (const auto& [name, t] :
       emit_scores(model, ints(c.expected.at("tokens")), ints(c.expected.at("targets")), seed)) {
    HostArray a = empty_of(t.type());
    const std::vector<double> v = t.to_vector();
    a.values.assign(v.begin(), v.end());
    got.emplace(name, std::move(a));
  }
  return got;
}

enum class Mode { Compiled, Eager };

Arrays score(const Checkpoint& c, models::CausalLm& model, Mode mode, double seed = 1) {
  Arrays got =
      mode == Mode::Compiled ? score_compiled(c, model, seed) : score_eagerly(c, model, seed);
  for (const VariablePtr& p : model.parameters())
    for (HostNumber& g : got.at(p->name.str()).values) g /= seed;
  return got;
}

class DecoderParity : public ::testing::TestWithParam<std::tuple<std::string, Mode>> {
 protected:
  static void SetUpTestSuite() { use_device(cpu_device()); }
  Checkpoint checkpoint_{std::get<0>(GetParam())};
  Mode mode() const { return std::get<1>(GetParam()); }
};

// Within 1e-5 of float64, or within twice PyTorch's own fp32 error.
TEST_P(DecoderParity, SinglePrecision) {
  const Checkpoint& c = checkpoint_;
  const std::unique_ptr<models::CausalLm> made = c.model();
  models::CausalLm& model = *made;
  models::load_huggingface(c.folder, model);
  const Arrays got = score(c, model, mode());
  ParityRow row("decoder", in_mode(c.name, mode() == Mode::Eager) + ", fp32: share of the limit",
                1);
  const auto see = [&](const std::string& name, const HostArray& result, const HostArray& want,
                       double limit) { row.see(error_of(result, want), 0, limit, name); };
  for (const char* name : {"logits", "loss"})
    see(name, got.at(name), c.expected.at(name), c.single_limit(name));
  ASSERT_EQ(model.parameters().size(), c.folder.stored.size());
  for (const VariablePtr& p : model.parameters()) {
    const HostArray want = c.gradient(p->name.str());
    const double limit = c.single_limit(c.gradient_name(p->name.str()));
    see(p->name.str(), got.at(p->name.str()), want, limit);
    for (const auto& [wrong, gradient] : wrong_gradients(want))
      EXPECT_GT(error_of(gradient, want), limit) << p->name.str() << ": " << wrong;
  }
}

// What a logit goes through that is rounded to the low type. A block: two norms, the four products
// and their weights, scores' weights, two sums, the activation; besides the blocks the sum of the
// embeddings, the last norm, the logits and both embeddings. With rotary positions a block has
// three products more, their weights, two rotations, and a gate; norms of queries and keys and
// behind the parts are four more, and a cap one. A gradient goes through as many again.
int roundings(const models::ModelSpec& spec) {
  const int a_block = spec.find("rotary_base") ? 28 : 14;
  return a_block * static_cast<int>(spec.whole("layers")) + 5;
}

struct LowLevel {
  const char* name;
  DType type;
  double seed;
};

// What the judge is for: of every gradient, one wrong element or row among right ones, and all of
// it.
void expect_wrong_gradients_noticed(const HostArray& right, const auto& problem) {
  for (const auto& wrongs : {wrong_elements(right), wrong_gradients(right)})
    for (const auto& [wrong, gradient] : wrongs) EXPECT_NE(problem(gradient), "") << wrong;
}

TEST_P(DecoderParity, LowPrecision) {
  const Checkpoint& c = checkpoint_;
  ParityRow row(
      "decoder",
      in_mode(c.name, mode() == Mode::Eager) + ", bf16 and fp16: tensors beyond their band", 0);
  for (const LowLevel& low :
       {LowLevel{"O1:bf16", DType::BF16, 1}, LowLevel{"O2:bf16", DType::BF16, 1},
        LowLevel{"O1:fp16", DType::F16, 1024}, LowLevel{"O2:fp16", DType::F16, 1024}}) {
    SCOPED_TRACE(low.name);
    const std::unique_ptr<models::CausalLm> made = c.model();
    models::CausalLm& model = *made;
    const auto trained = amp::initialize(model, optim::Sgd{}, low.name);
    models::load_huggingface(c.folder, model);
    const Arrays got = score(c, model, mode(), low.seed);
    const LowJudge judge(c.judged, low.type);
    const auto cap = [&](int passes) {
      return chain_tolerance(low.type, passes * roundings(c.folder.spec));
    };
    const HostArray &logits = c.expected.at("logits"), &loss = c.expected.at("loss");
    const auto see = [&](const std::string& name, const std::string& problem) {
      row.see(problem.empty() ? 0 : 1, 0, 1, std::string(low.name) + ", " + name + ": " + problem);
    };
    see("logits", judge.problem("logits", got.at("logits"), logits, cap(1)));
    EXPECT_GT(norm_error(got.at("logits"), logits), judge.own_norm_error("logits") / 4)
        << "the low type was not used";
    EXPECT_LE(error_of(got.at("loss"), loss), judge.loss_limit(logits, loss, c.rows()));
    ASSERT_EQ(model.parameters().size(), c.folder.stored.size());
    for (const VariablePtr& variable : model.parameters()) {
      const std::string p = variable->name.str();
      SCOPED_TRACE(p);
      const auto problem = [&, want = c.gradient(p)](const HostArray& g) {
        return judge.problem(c.gradient_name(p), g, want, cap(2));
      };
      see(p, problem(got.at(p)));
      expect_wrong_gradients_noticed(got.at(p), problem);
    }
  }
}

// The place of the largest of each row's logits at position `at` of [rows, length, vocab].
std::vector<std::int64_t> likeliest(const HostArray& logits, std::int64_t at) {
  const std::int64_t rows = logits.shape[0], length = logits.shape[1], vocab = logits.shape[2];
  std::vector<std::int64_t> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto first = logits.values.begin() + (r * length + at) * vocab;
    out.push_back(std::max_element(first, first + vocab, [](double a, double b) { return a < b; }) -
                  first);
  }
  return out;
}

// Runs a program of tokens [rows, length] -> logits.
HostArray run_tokens(Programs& programs, const char* name, const HostArray& tokens) {
  store_bytes(tokens, programs.input<std::byte>(name, "tokens").write().data());
  programs.run(programs.find(name), {});
  HostArray logits = empty_of(programs.plan().find(name)->outputs.front().ref.type);
  load_bytes(logits, programs.output<std::byte>(name, "logits").read().data());
  return logits;
}

class GreedyTokens : public ::testing::TestWithParam<std::string> {};

TEST_P(GreedyTokens, AreTransformersWithACacheAndWithout) {
  use_device(cpu_device());
  const Checkpoint c{GetParam()};
  const HostArray &prompt = c.expected.at("prompt"), &want = c.expected.at("greedy");
  const std::int64_t rows = prompt.shape[0], said = prompt.shape[1], more = want.shape[1];
  const std::unique_ptr<models::CausalLm> model = c.model();
  models::load_huggingface(c.folder, *model);
  model->eval();
  const models::DecodeCache cache = model->make_cache(rows, said + more, DType::F32);
  Programs programs;
  const auto add = [&](const char* name, std::int64_t length, const auto& logits_of) {
    programs.add(
        name, {{"tokens", {DType::I64, {rows, length}}}}, [&](const std::vector<Tensor>& in) {
          return std::vector<std::pair<std::string, Tensor>>{{"logits", logits_of(in.at(0))}};
        });
  };
  const auto decoded = [&](const Tensor& t) { return model->decode(t, cache); };
  add("prompt", said, decoded);
  add("next", 1, decoded);
  add("whole", said + more - 1, [&](const Tensor& t) { return (*model)(t); });
  programs.finish();
  ParityRow with("decoder", c.name + ", greedy tokens with a cache that differ", 0);
  ParityRow without("decoder", c.name + ", greedy tokens without a cache that differ", 0);
  HostArray whole = HostArray::zeros(DType::I64, {rows, said + more - 1});
  HostArray next = HostArray::zeros(DType::I64, {rows, 1});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t t = 0; t < said; ++t) whole[r * (said + more - 1) + t] = prompt[r * said + t];
  for (std::int64_t t = 0; t < more; ++t) {
    const auto cached = t == 0 ? likeliest(run_tokens(programs, "prompt", prompt), said - 1)
                               : likeliest(run_tokens(programs, "next", next), 0);
    const auto uncached = likeliest(run_tokens(programs, "whole", whole), said + t - 1);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t expected = want[r * more + t].whole();
      const std::string where = "row " + std::to_string(r) + " token " + std::to_string(t);
      with.see(static_cast<double>(cached[r] != expected), 0, 1, where);
      without.see(static_cast<double>(uncached[r] != expected), 0, 1, where);
      next[r] = static_cast<double>(expected);
      if (t + 1 < more) whole[r * (said + more - 1) + said + t] = static_cast<double>(expected);
    }
  }
}

// Prompts of which some are padded on their left.
TEST_P(GreedyTokens, OfPaddedPromptsAreTransformersToo) {
  use_device(cpu_device());
  const Checkpoint c{GetParam()};
  const HostArray &prompt = c.expected.at("prompt"), &starts = c.expected.at("starts"),
                  &want = c.expected.at("padded");
  const std::int64_t rows = prompt.shape[0], said = prompt.shape[1], more = want.shape[1];
  const std::unique_ptr<models::CausalLm> model = c.model();
  models::load_huggingface(c.folder, *model);
  model->eval();
  models::DecodeCache cache = model->make_cache(rows, said + more, DType::F32);
  cache.allow_padding(rows);
  store_bytes(starts, cache.starts->buffer->edit<std::byte>().data());
  Programs programs;
  for (const auto& [name, length] : {std::pair{"prompt", said}, std::pair{"next", std::int64_t{1}}})
    programs.add(name, {{"tokens", {DType::I64, {rows, length}}}},
                 [&](const std::vector<Tensor>& in) {
                   return std::vector<std::pair<std::string, Tensor>>{
                       {"logits", model->decode(in.at(0), cache)}};
                 });
  programs.finish();
  ParityRow row("decoder", c.name + ", greedy tokens of padded prompts that differ", 0);
  HostArray next = HostArray::zeros(DType::I64, {rows, 1});
  for (std::int64_t t = 0; t < more; ++t) {
    const auto got = t == 0 ? likeliest(run_tokens(programs, "prompt", prompt), said - 1)
                            : likeliest(run_tokens(programs, "next", next), 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      row.see(static_cast<double>(got[r] != want[r * more + t].whole()), 0, 1,
              "row " + std::to_string(r) + " token " + std::to_string(t));
      next[r] = want[r * more + t];
    }
  }
}

std::string test_name(const std::string& folder) {
  std::string name = folder;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, GreedyTokens, ::testing::ValuesIn(fixture_models()),
                         [](const auto& info) { return test_name(info.param); });
INSTANTIATE_TEST_SUITE_P(HuggingFace, DecoderParity,
                         ::testing::Combine(::testing::ValuesIn(fixture_models()),
                                            ::testing::Values(Mode::Compiled, Mode::Eager)),
                         [](const auto& info) {
                           return test_name(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == Mode::Eager ? "_eager" : "");
                         });

}  // namespace
}  // namespace aloft::parity
