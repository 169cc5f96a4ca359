// Models, optimizers, programs and texts, made from what is none: null pointers, names that no
// checkpoint can hold, numbers beyond what there is. Refused where it is given, with the code that
// fits, before anything is changed.
#include <limits>

#include "hostile_calls.h"
#include "infer/draw_texts.h"
#include "refusal.h"
#include "tasks/classification.h"
#include "tasks/language_model.h"
#include "tasks/regression.h"

namespace aloft::e2e {
namespace {

std::vector<float> all_logits(const Generator& g) {
  const auto logits = g.logits();
  return {logits.begin(), logits.end()};
}

constexpr double kInf = std::numeric_limits<double>::infinity();

// `what` is refused with `code`, and not by the standard library.
template <class Call>
void expect_code(const std::string& what, const char* code, const Call& call) {
  const int before = refused;
  std::string seen;
  check(what, [&] {
    try {
      call();
    } catch (const Error& e) {
      seen = e.code();
      throw;
    }
  });
  EXPECT_EQ(refused, before + 1) << what;
  EXPECT_EQ(seen, code) << what;
}

VariablePtr hand_made(const char* name, DType dtype, bool with_memory) {
  auto v = std::make_shared<Variable>();
  v->name = name;
  v->type = {dtype, Shape{4}};
  if (with_memory) nn::allocate(*v);
  return v;
}

struct Two : nn::Module {
  nn::Linear up{*this, "up", 4, 3}, down{*this, "down", 3, 2};
  Tensor operator()(const Tensor& t) { return down(relu(up(t))); }
  Tensor value(const VariablePtr& v) { return use(v); }
};

TEST_F(HostileArguments, ThatAreNoParameter) {
  Two model;
  const VariablePtr none = model.parameter("nope"), w = model.up.weight;
  const VariablePtr empty = hand_made("e", DType::F32, false);
  const auto train = [&](std::vector<VariablePtr> parameters) {
    Optimizer(optim::AdamW{}, parameters, {});
  };
  expect_code("an optimizer of null", "E0325", [&] { train({none}); });
  expect_code("an optimizer of null among others", "E0325", [&] { train({w, nullptr}); });
  expect_code("an optimizer of one twice", "E0325", [&] { train({w, model.up.bias, w}); });
  expect_code("an optimizer without memory", "E0325", [&] { train({w, empty}); });
  for (const DType t : kAllDTypes) {
    const std::string of = "an optimizer of " + std::string(name_of(t));
    if (t == DType::F32 || t == DType::BF16 || t == DType::F16)
      check(of, [&] { train({hand_made("v", t, true)}); });
    else
      expect_code(of, "E0311", [&] { train({hand_made("v", t, true)}); });
  }
  expect_code("the value of null", "E0325", [&] { read(model.value(none)); });
  expect_code("the value of no memory", "E0325", [&] { read(model.value(empty)); });
  expect_code("an update of null", "E0325", [&] { current_emitter().update(none, one); });
  expect_code("an update of no memory", "E0325", [&] { current_emitter().update(empty, one); });
  expect_code("the gradient of null", "E0325", [&] { grad_of(none); });
  for (const VariablePtr& v : {none, empty}) {
    auto reads = compile([&](const Tensor& t) { return t + model.value(v); });
    expect_code("a program that reads what is none", "E0325", [&] { read(reads(one)); });
    auto writes = compile([&](const Tensor& t) {
      current_emitter().update(v, t);
      return t + 1;
    });
    expect_code("a program that writes what is none", "E0325", [&] { read(writes(one)); });
  }
  expect_code("data that is null", "E0313", [] { ArrayLoader(nullptr, {}); });
}

TEST_F(HostileArguments, ThatAreTensorsNeverAssigned) {
  Two model;
  Optimizer optimizer(optim::Sgd{}, model.parameters(), {});
  const Tensor none;
  const auto never = [&](const char* what, const auto& call) { expect_code(what, "E0302", call); };
  never("minimize", [&] { minimize(none, optimizer); });
  never("scaled_gradients", [&] { scaled_gradients(none, optimizer); });
  expect_code("update_parameters", "E0807", [&] { update_parameters(none, {}, optimizer); });
  expect_code("apply_gradients", "E0807", [&] { apply_gradients(none, {}, optimizer); });
  never("update_scaler", [&] { update_scaler({}, optimizer); });
  never("scale_loss", [&] { static_cast<void>(amp::scale_loss(none, optimizer)); });
  expect_code("amp::step", "E0808", [&] { amp::step(none, optimizer); });
  never("loss", [] { StepResult().loss(); });
  never("skipped", [] { static_cast<void>(StepResult().skipped()); });
  never("backward", [&] { none.backward(); });
  never("detach", [&] { detach(none); });
  never("a model of it", [&] { model(none); });
  never("an update", [&] { current_emitter().update(model.up.weight, none); });
  never("an argument", [&] { compile([](const Tensor& t) { return t + 1; })(none); });
  never("a result", [&] { compile([](const Tensor&) { return Tensor(); })(one); });
  never("a traced update", [&] {
    compile([&](const Tensor& t) {
      current_emitter().update(model.up.weight, Tensor());
      return t + 1;
    })(one);
  });
  never("a traced loss",
        [&] { compile([&](const Tensor&) { return minimize(Tensor(), optimizer); })(one); });
  optimizer.set_accumulation(2);
  never("accumulate", [&] { accumulate(none, optimizer); });
}

TEST_F(HostileArguments, ThatAreFunctionsNeverAssigned) {
  std::function<Tensor(Tensor)> none;
  Tensor (*null)(Operand) = nullptr;
  nn::Module root;
  nn::Sequential stages(root, "stages");
  expect_code("compile of none", "E0302", [&] { compile(none); });
  expect_code("compile of null", "E0302", [&] { compile(null); });
  expect_code("compile of a reference to none", "E0302", [&] { compile(std::ref(none)); });
  Two model;
  Optimizer optimizer(optim::Sgd{}, model.parameters(), {});
  expect_code("gradients of none", "E0302", [&] { value_and_grad(none, optimizer); });
  expect_code("gradients of null", "E0302", [&] { value_and_grad(null, optimizer); });
  expect_code("a stage of none", "E0302", [&] { stages.add(nn::Sequential::Stage()); });
  expect_code("a stage of null", "E0302", [&] { stages.add(null); });
  EXPECT_EQ(stages(x).to_vector(), x.to_vector());  // nothing was added
  struct Filled : nn::Module {
    Filled() { add_parameter("w", {2}, {}); }
  };
  expect_code("a parameter filled by none", "E0302", [] { Filled model; });
  struct Long : nn::Module {
    Long() { add_buffer("b", {Dim::symbolic("B", 4)}, 1); }
  };
  expect_code("a buffer without a length", "E0306", [] { Long model; });
}

// What a module is given: children, parameters and buffers, in this order, by their names.
struct Named : nn::Module {
  Named(const std::vector<std::string>& parts, const std::vector<std::string>& parameters,
        const std::vector<std::string>& more = {}) {
    for (const std::string& name : parts)
      children.push_back(std::make_unique<nn::Linear>(*this, name, 2, 1));
    for (const std::string& name : parameters)
      add_parameter(name, {1}, [](float* v, std::int64_t) { v[0] = 2; });
    for (const std::string& name : more) add_buffer(name, {1}, 0);
  }
  std::vector<std::unique_ptr<nn::Linear>> children;
};

// Only what can be saved, each under a name of its own, can be made: else training would end in an
// error at its first checkpoint.
TEST_F(HostileArguments, ThatAreNames) {
  const std::vector<std::string> none,
      odd = {"",     "__metadata__", std::string("a\0b", 3), "a\nb",
             "\x7f", "\xff",         "\xed\xa0\x80",         "caf\xe9"};
  for (const std::string& name : odd) {
    expect_code("a child's name", "E0701", [&] { Named({name}, none); });
    expect_code("a parameter's name", "E0701", [&] { Named(none, {name}); });
    expect_code("a buffer's name", "E0701", [&] { Named(none, none, {name}); });
  }
  using Names = std::vector<std::string>;
  const std::pair<const char*, const char*> met[] = {
      {"w", "w"}, {"a", "a.b"}, {"a.b", "a"}, {"a", "a."}};
  for (const auto& [a, b] : met) {
    expect_code("two children", "E0701", [&, a = a, b = b] { Named(Names{a, b}, none); });
    expect_code("two parameters", "E0701", [&, a = a, b = b] { Named(none, Names{a, b}); });
    expect_code("a child and a parameter", "E0701", [&, a = a, b = b] { Named({a}, {b}); });
    expect_code("a parameter and a buffer", "E0701", [&, a = a, b = b] { Named(none, {a}, {b}); });
  }
  const Path file =
      std::filesystem::temp_directory_path() / ("aloft-names-" + std::to_string(getpid()));
  const Names fine = {"h.0",
                      "h.1",
                      "h.10",
                      "a/b",
                      "*",
                      "..",
                      " ",
                      "\"\\",
                      "gr\xc3\xb6\xc3\x9f"
                      "e"};
  check("names that can be saved", [&] {
    Named model(fine, {"w", "w2"}, {"b"});
    models::save_state(file, model);
    models::load_state(Safetensors::open(file), model);
  });
  std::filesystem::remove(file);
}

TEST_F(HostileArguments, OfCompiling) {
  const auto with = [&](int threads, std::vector<std::string> skip) {
    CompileOptions o;
    o.threads = threads, o.passes.skip = std::move(skip);
    read(compile([](const Tensor& t) { return t + 1; }, o)(one));
  };
  for (const int threads : {-1, INT32_MIN, 1025, 100000, INT32_MAX})
    expect_code("threads", "E0700", [&] { with(threads, {}); });
  for (const int threads : {0, 1, 3}) with(threads, {});
  for (const char* name : {"", "nope", "fuse-elementwise ", "insert-casts"})
    expect_code("a pass left out", "E0317", [&] { with(1, {"cse", name}); });
  EXPECT_NE(refusal([&] { with(1, {"fuse-elementwse"}); }).find("try   fuse-elementwise"),
            std::string::npos);
  with(1, {"fuse-elementwise", "cse"});
}

TEST_F(HostileArguments, OfCompiledPrograms) {
  auto plus = compile([](const Tensor& t) { return t + 1; }, {.name = "plus"});
  expect_code("programs before the first call", "E0315", [&] { plus.programs(); });
  read(plus(one));
  const Programs& programs = plus.programs();
  const std::string name = programs.plan().programs.at(0).name;
  programs.graph(name);
  expect_code("a graph", "E0315", [&] { programs.graph("nope"); });
  expect_code("times", "E0315", [&] { programs.pass_times(""); });
  expect_code("decisions", "E0315", [&] { programs.decisions("nope"); });
  expect_code("a result", "E0323", [&] { programs.output<double>(name, "result"); });
  expect_code("its bits", "E0323", [&] { programs.output<std::int32_t>(name, "result"); });
  expect_code("a result's name", "E0315", [&] { programs.output<float>(name, "nope"); });
  expect_code("a result of none", "E0315", [&] { programs.output<float>("nope", "result"); });
  expect_code("an input's name", "E0315", [&] { programs.input<float>(name, "nope"); });
  expect_code("an input of none", "E0315", [&] { programs.input<float>("nope", "0"); });
}

TEST_F(HostileArguments, OfProgramsBeforeAndAfterTheyHaveMemory) {
  Programs programs(1);
  programs.add("plus", {{"x", {DType::F32, {1}}}}, [](const std::vector<Tensor>& in) {
    return results::Named{{"y", in[0] + 1}};
  });
  const auto refuse = [&](const char* what, const std::function<void()>& ask) {
    expect_code(what, "E0315", ask);
  };
  refuse("find before memory", [&] { programs.find("plus"); });
  refuse("input before memory", [&] { programs.input<float>("plus", "x"); });
  refuse("output before memory", [&] { programs.output<float>("plus", "y"); });
  refuse("run before memory", [&] { programs.run(0, {}); });
  programs.finish();
  EXPECT_EQ(programs.find("nope"), -1);
  for (const int index : {-1, 1, INT32_MAX, INT32_MIN})
    refuse("an index", [&] { programs.run(index, {}); });
  const std::vector<std::int64_t> one_too_many = {1};
  expect_code("lengths", "E0307", [&] { programs.run(0, one_too_many); });
  expect_code("a wider input", "E0323", [&] { programs.input<double>("plus", "x"); });
  programs.input<float>("plus", "x").write()[0] = 2;
  programs.run(programs.find("plus"), {});
  EXPECT_EQ(programs.output<float>("plus", "y").item(), 3);
}

struct Writer {
  Writer() {
    models::Gpt2Config c;
    c.layers = 1, c.heads = 2, c.dim = 16, c.context = 8, c.vocab = 20;
    model = std::make_unique<models::Gpt2>(c);
    generator = std::make_unique<Generator>(*model, 1, 2);
  }
  std::unique_ptr<models::Gpt2> model;
  std::unique_ptr<Generator> generator;
};

TEST_F(HostileArguments, OfAGenerator) {
  Writer w;
  Generator& g = *w.generator;
  const std::vector<std::int32_t> first = {1, 2}, three = {1, 2, 3};
  expect_code("logits before start", "E0812", [&] { g.logits(); });
  expect_code("feed before start", "E0812", [&] { g.feed(first); });
  expect_code("a start of nothing", "E0812", [&] { g.start({}); });
  g.start(first);
  const std::vector<float> before = all_logits(g);
  for (const I v : kInts) {
    if (v < 0 || v > 1) expect_code("a row", "E0812", [&] { g.logits(20, v); });
    if (v < 1) expect_code("ids", "E0700", [&] { g.logits(v); });
    if (v < 1) continue;
    EXPECT_EQ(g.logits(v).size(), static_cast<std::size_t>(std::min<I>(v, 20)));
  }
  expect_code("a token for two rows", "E0812", [&] { g.feed(1); });
  expect_code("three tokens for two rows", "E0812", [&] { g.feed(three); });
  for (const I v : kInts)
    check("rows of a generator", [&] { EXPECT_EQ(Generator(*w.model, 1, v).rows(), v); });
  for (const int threads : {-1, INT32_MAX})
    expect_code("threads of a generator", "E0700", [&] { Generator(*w.model, threads); });
  EXPECT_EQ(before, all_logits(g));
}

TEST_F(HostileArguments, OfDrawing) {
  Writer w;
  Generator& g = *w.generator;
  const std::vector<std::int32_t> prompt = {1, 2};
  const std::vector<float> four = {1, 2, 3, 2};
  g.start(prompt);
  const std::vector<float> before = all_logits(g);
  const auto draw = [&](DrawOptions o) {
    o.tokens = std::min<I>(o.tokens, 2);
    static_cast<void>(draw_texts(g, std::vector<std::int32_t>{7}, o));
  };
  const auto refuse = [&](const SamplingOptions& o) {
    expect_code("sample_token", "E0700", [&] { sample_token(four, o, 0); });
    expect_code("draw_texts", "E0700", [&] { draw({.sampling = o}); });
    expect_code("draw_texts of nothing", "E0700", [&] { draw({.tokens = 0, .sampling = o}); });
  };
  for (const double v : {-1.0, -1e-300, 100.5, 1e300, kInf, -kInf, std::nan("")})
    refuse({.temperature = v});
  for (const double v : {-1.0, -1e-300, 1.5, 1e300, kInf, -kInf, std::nan("")})
    refuse({.top_p = v});
  for (const I v : {INT64_MIN, I{-1}}) refuse({.top_k = v});
  expect_code("tokens", "E0700", [&] { draw({.tokens = -1}); });
  for (const I v : {INT64_MIN, I{-5}, I{0}}) expect_code("ids", "E0700", [&] { draw({.ids = v}); });
  expect_code("of no logits", "E0812", [] { sample_token({}, {}, 0); });
  EXPECT_EQ(before, all_logits(g));  // nobody began
  for (const double v : {0.0, -0.0, 1e-300, 1.0, 100.0})
    check("a temperature", [&] { draw({.sampling = {.temperature = v}}); });
  for (const double v : {0.0, 1e-300, 1.0})
    check("a top_p", [&] { draw({.sampling = {.top_p = v}}); });
  for (const I v : {I{0}, I{1}, INT64_MAX})
    check("a top_k", [&] { draw({.sampling = {.top_k = v}}); });
}

// A class that says three and tells two apart: counted by three, a label of 2 would be a number
// beyond its logits.
struct TwoOfThree : models::Classifier {
  std::int64_t classes() const override { return 3; }
  Tensor operator()(Operand x) const override {
    return call(x, [&](Tensor t) { return out(t); });
  }
  nn::Linear out{*this, "out", 4, 2};
};

TEST_F(HostileArguments, OutputsThatAreNotOfTheClasses) {
  const std::vector<Tensor> numbers{full({5, 4}, 1.0), full({5, 2}, 1.0)};
  const std::vector<Tensor> labels{numbers[0], cast(full({5}, 1.0), DType::I32)};
  const Classification classification(std::make_unique<TwoOfThree>());
  const Regression regression(std::make_unique<TwoOfThree>());
  const auto compiled = [&](Tensor x, Tensor y) { return classification.loss({x, y}); };
  expect_code("a loss", "E0215", [&] { read(classification.loss(labels)); });
  expect_code("an evaluation", "E0215", [&] { classification.evaluate(labels); });
  expect_code("a regression", "E0215", [&] { read(regression.loss(numbers)); });
  expect_words(refusal([&] { compile(compiled)(labels[0], labels[1]); }),
               {"E0215", "from  argument 0"});
}

// A language model that says how many ids it knows, and gives logits of eleven.
struct Eleven : models::CausalLm {
  explicit Eleven(I vocab) : known(vocab) {}
  I vocab() const override { return known; }
  I context() const override { return 8; }
  Tensor operator()(Operand tokens) const override {
    return call(tokens, [&](Tensor t) { return head(ids(t)); });
  }
  Tensor loss(Operand tokens, Operand targets) const override {
    return cross_entropy((*this)(tokens), targets);
  }
  models::DecodeCache make_cache(I, I longest, DType) const override {
    return {{}, hand_made("position", DType::F32, true), longest};
  }
  Tensor decode(Operand tokens, const models::DecodeCache&) const override {
    return (*this)(tokens);
  }
  void prefill(Operand, const models::DecodeCache&) const override {}
  I known;
  nn::Embedding ids{*this, "ids", 20, 4};
  nn::Linear head{*this, "head", 4, 11};
};

TEST_F(HostileArguments, LogitsThatAreNotOfTheVocabulary) {
  const Tensor tokens = cast(full({2, 3}, 1.0), DType::I32);
  const std::vector<Tensor> columns{tokens, tokens};
  const auto loss = [&](I vocab) {
    return LanguageModel(std::make_unique<Eleven>(vocab)).loss(columns);
  };
  const auto compiled = [](I vocab) {
    const LanguageModel task(std::make_unique<Eleven>(vocab));
    const Tensor t = cast(full({2, 3}, 1.0), DType::I32);
    return compile([&](Tensor x, Tensor y) { return task.loss({x, y}); })(t, t);
  };
  const auto draw = [](I vocab) {
    Eleven model(vocab);
    Generator generator(model, 1);
    return draw_texts(generator, std::vector<std::int32_t>{1}, {.tokens = 3})[0].tokens.size();
  };
  for (const I vocab : {I{7}, I{10}, I{12}, I{20}}) {
    expect_code("a loss", "E0215", [&] { read(loss(vocab)); });
    expect_code("a compiled loss", "E0215", [&] { read(compiled(vocab)); });
    expect_code("a text", "E0215", [&] { draw(vocab); });
  }
  EXPECT_EQ(loss(11).item(), compiled(11).item());
  EXPECT_EQ(draw(11), 3U);
  const std::string said = refusal([&] { loss(20); });
  EXPECT_NE(said.find("[2,3,11]"), std::string::npos) << said;
  EXPECT_NE(said.find("[2,3,20], as its vocab() says"), std::string::npos) << said;
}

}  // namespace
}  // namespace aloft::e2e
