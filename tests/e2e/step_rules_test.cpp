// What a training step asks for and whom it trains: micro-batches are counted, copies of an
// optimizer are one, scaled losses are recognised, parameters may be frozen and unfrozen between
// steps, indices are in range.
#include <gtest/gtest.h>

#include "base/error.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/grad_scaler.h"
#include "frontend/programs.h"
#include "frontend/scale_loss.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/linear_cross_entropy.h"
#include "ops/losses.h"
#include "ops/reduce.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "refusal.h"

namespace aloft::e2e {
namespace {

class StepRules : public testing::Test {
 protected:
  void SetUp() override {
    use_cpu();
    omp_set_num_threads(1);
    eager().clear_tape();
    eager().forget_gradients();
    manual_seed(1);
  }
};

struct Net : nn::Module {
  nn::Linear in{*this, "in", 4, 6};
  nn::Linear out{*this, "out", 6, 3};
  Tensor operator()(Tensor x) { return out(in(x)); }
};

Tensor labels() { return from_ints({0, 2, 1, 2}, {4}); }

// --- micro-batches

TEST_F(StepRules, MicroBatchesAreCounted) {
  for (const bool is_compiled : {false, true}) {
    Net model;
    auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, "O0");
    const auto loss = [&, &net = net](Tensor x, Tensor y) { return cross_entropy(net(x), y); };
    const auto part = [&, &opt = opt](Tensor x, Tensor y) { return accumulate(loss(x, y), opt); };
    const auto whole = [&, &opt = opt](Tensor x, Tensor y) { return minimize(loss(x, y), opt); };
    auto compiled_part = compile(part);
    auto compiled_whole = compile(whole);
    const Tensor x = numbers({4, 4}), y = labels();
    const auto accumulates = [&] { is_compiled ? compiled_part(x, y) : part(x, y); };
    const auto steps = [&] { is_compiled ? compiled_whole(x, y) : whole(x, y); };

    expect_words(refusal(accumulates), {"E0808", "set_accumulation"});
    steps();
    opt.set_accumulation(4);
    const auto before = state_of(model, opt);
    expect_words(refusal(steps), {"E0802", "0 micro-batches", "3, then minimize()"});
    EXPECT_EQ(state_of(model, opt), before) << is_compiled;
    accumulates();
    expect_words(refusal(steps), {"E0802", "1 micro-batches"});
    accumulates();
    accumulates();
    const auto full = state_of(model, opt);
    expect_words(refusal(accumulates), {"E0802", "3 micro-batches"});
    EXPECT_EQ(state_of(model, opt), full) << is_compiled;
    steps();
    EXPECT_NE(bytes_of(*model.in.weight), before.at("in.weight"));
    expect_words(refusal(steps), {"E0802", "0 micro-batches"});
    accumulates();
    opt.set_accumulation(1);  // begins anew, with one batch a step
    steps();
    expect_words(refusal(accumulates), {"E0808"});
  }
}

TEST_F(StepRules, AProgramMayHoldAWholeStep) {
  std::map<std::string, std::string> states[2];
  for (const bool is_compiled : {false, true}) {
    manual_seed(1);
    Net model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.1}, "O0");
    opt.set_accumulation(2);
    const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      accumulate(cross_entropy(net(x), y), opt);
      return minimize(cross_entropy(net(x * 2.0), y), opt);
    };
    auto compiled = compile(step);
    for (int i = 0; i < 3; ++i)
      is_compiled ? compiled(numbers({4, 4}), labels()) : step(numbers({4, 4}), labels());
    accumulate(cross_entropy(net(numbers({4, 4})), labels()), opt);
    const std::string before = bytes_of(*model.in.weight);
    if (is_compiled) {  // refused as a whole: the count is what it was
      expect_words(refusal([&] { compiled(numbers({4, 4}), labels()); }), {"E0802"});
      EXPECT_EQ(bytes_of(*model.in.weight), before);
    }
    minimize(cross_entropy(net(numbers({4, 4})), labels()), opt);
    states[is_compiled] = state_of(model, opt);
  }
  EXPECT_EQ(states[0], states[1]);
}

// Programs that were traced under a number of micro-batches hold again when it is set again, over
// sums and a count that began anew.
TEST_F(StepRules, MicroBatchesChangeBetweenSteps) {
  const auto trained = [](bool is_compiled) {
    manual_seed(1);
    eager().clear_tape();
    Net model;
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.1}, "O0");
    const auto loss = [&net = net](Tensor x, Tensor y) { return cross_entropy(net(x), y); };
    const auto part = [&, &opt = opt](Tensor x, Tensor y) { return accumulate(loss(x, y), opt); };
    const auto whole = [&, &opt = opt](Tensor x, Tensor y) { return minimize(loss(x, y), opt); };
    auto compiled_part = compile(part);
    auto compiled_whole = compile(whole);
    float first = 0;
    const auto call = [&](bool is_last) {
      const Tensor x = numbers({4, 4}, first++), y = labels();
      if (is_last)
        is_compiled ? compiled_whole(x, y) : whole(x, y);
      else
        is_compiled ? compiled_part(x, y) : part(x, y);
    };
    for (const int n : {3, 2, 1, 3, 2, 3}) {
      opt.set_accumulation(n);
      EXPECT_EQ(opt.accumulators().empty(), n == 1);
      EXPECT_EQ(opt.micro_batches() == nullptr, n == 1);
      if (n == 3) call(false);  // is dropped: the number of micro-batches is set once more
      opt.set_accumulation(n);
      for (int i = 1; i <= n; ++i) call(i == n);
    }
    if (is_compiled) {
      EXPECT_EQ(compiled_whole.programs().plan().programs.size(), 3u);  // not six
    }
    return state_of(model, opt);
  };
  EXPECT_EQ(trained(true), trained(false));
}

// --- copies

TEST_F(StepRules, CopiesAreOneOptimizer) {
  const auto trained = [](bool by_copies, bool is_compiled) {
    manual_seed(1);
    eager().clear_tape();
    Net model;
    model.requires_grad(false, "in.*");
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.1}, "O0");
    Optimizer copy = opt, source = opt;
    const auto part = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      return accumulate(cross_entropy(net(x), y), by_copies ? source : opt);
    };
    const Optimizer moved = std::move(source);  // which stays what it was
    // As loops write it whose function outlives them.
    auto whole = [net = net, its = copy](Tensor x, Tensor y) mutable {
      return minimize(cross_entropy(net(x), y), its);
    };
    auto compiled_part = compile(part);
    auto compiled_whole = compile(whole);
    opt.set_accumulation(2);
    for (int i = 0; i < 4; ++i) {
      if (i == 2) model.requires_grad(true);  // one of them takes the parameters, all have them
      const Tensor x = numbers({4, 4}, static_cast<float>(i)), y = labels();
      is_compiled ? compiled_part(x, y) : part(x, y);
      if (!by_copies)
        minimize(cross_entropy(net(x), y), opt);
      else
        is_compiled ? compiled_whole(x, y) : whole(x, y);
    }
    EXPECT_EQ(moved.parameters(), opt.parameters());
    EXPECT_EQ(copy.state(), opt.state());
    return state_of(model, opt);
  };
  const auto want = trained(false, false);
  for (const bool is_compiled : {false, true}) EXPECT_EQ(trained(true, is_compiled), want);
}

// --- scaled losses

TEST_F(StepRules, AStepWantsItsOwnScaleInTheLoss) {
  Net model, other;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, "O1:fp16");
  auto [net2, opt2] = amp::initialize(other, optim::Sgd{.lr = 0.1}, "O1:fp16");
  const auto loss = [&, &net = net] { return cross_entropy(net(numbers({4, 4})), labels()); };
  opt.scale->buffer->write_one(8.0f);
  const std::string before = bytes_of(*model.in.weight);
  Tensor l = loss();
  l.backward();
  expect_words(refusal([&, &opt = opt] { amp::step(l, opt); }), {"E0808", "scale_loss"});
  expect_words(refusal([&, &opt = opt] { amp::GradScaler(opt).step(l); }), {"E0808"});
  l = loss();  // to be added to what the first one left
  expect_words(refusal([&, &opt = opt] { amp::scale_loss(l, opt).backward(); }),
               {"E0808", "without the loss scale"});
  opt.zero_grad();
  l = loss();
  expect_words(refusal([&, &opt2 = opt2] { amp::scale_loss(l, opt2).backward(); }), {"E0808"});
  expect_words(refusal([&, &opt = opt] { amp::step(l, opt); }), {"E0808"});
  EXPECT_EQ(bytes_of(*model.in.weight), before);
  opt.zero_grad();
  l = loss();
  amp::scale_loss(l + loss() * 0.5, opt).backward();
  amp::step(l, opt);
  EXPECT_NE(bytes_of(*model.in.weight), before);

  Net plain;  // nothing is scaled here
  auto [net3, opt3] = amp::initialize(plain, optim::Sgd{.lr = 0.1}, "O1:bf16");
  l = cross_entropy(net3(numbers({4, 4})), labels());
  l.backward();
  amp::step(l, opt3);
}

// --- frozen parameters

struct Frozen {
  std::map<std::string, std::string> state;
  std::vector<double> norms;
};

// Eight steps; before some of them parameters are frozen or unfrozen.
Frozen train(const char* precision, bool is_compiled, const std::map<int, std::string>& changes,
             StateFormat master = StateFormat::F32) {
  manual_seed(1);
  eager().clear_tape();
  Net model;
  if (changes.contains(-1)) model.requires_grad(false, changes.at(-1));
  auto [net, opt] = amp::initialize(
      model, optim::AdamW{.lr = 0.1, .weight_decay = 0.1, .clip_norm = 1, .master = master},
      precision);
  const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
    return minimize(cross_entropy(net(x), y), opt);
  };
  auto compiled = compile(step);
  Frozen f;
  for (int i = 0; i < 8; ++i) {
    if (const auto c = changes.find(i); c != changes.end())
      model.requires_grad(c->second[0] == '+', c->second.substr(1));
    std::map<std::string, std::string> before;
    for (const VariablePtr& p : model.parameters()) before[p->name.str()] = bytes_of(*p);
    const Tensor x = numbers({4, 4}, static_cast<float>(i)), y = labels();
    const StepResult r = is_compiled ? compiled(x, y) : step(x, y);
    f.norms.push_back(r.grad_norm.item());
    for (const VariablePtr& p : model.parameters())
      EXPECT_EQ(bytes_of(*p) != before.at(p->name.str()), p->requires_grad && !r.skipped())
          << p->name.str() << " in step " << i << " " << precision;
  }
  f.state = state_of(model, opt);
  return f;
}

TEST_F(StepRules, ParametersAreFrozenAndUnfrozenBetweenSteps) {
  const std::map<int, std::string> changes[] = {{{2, "-in.*"}, {5, "+in.*"}},
                                                {{-1, "in.*"}, {3, "+in.weight"}, {6, "+*"}},
                                                {{1, "-out.bias"}, {4, "-in.*"}}};
  for (const char* precision : {"O0", "O1:bf16", "O2:fp16", "O3:bf16"})
    for (const auto& c : changes) {
      const Frozen eagerly = train(precision, false, c), compiled = train(precision, true, c);
      EXPECT_EQ(eagerly.state, compiled.state) << precision;
      EXPECT_EQ(eagerly.norms, compiled.norms) << precision;
    }
  const Frozen split = train("O2:bf16", true, changes[1], StateFormat::Split);
  const Frozen whole = train("O2:bf16", true, changes[1]);
  EXPECT_EQ(split.norms, whole.norms);
}

TEST_F(StepRules, AnUnfrozenParameterTrainsAsOneThatNeverWas) {
  // Frozen and unfrozen again before the first step: nothing has happened.
  for (const char* precision : {"O0", "O3:bf16"}) {
    const Frozen never = train(precision, true, {});
    const Frozen was = train(precision, true, {{-1, "in.*"}, {0, "+*"}});
    EXPECT_EQ(never.state, was.state) << precision;
    EXPECT_EQ(never.norms, was.norms) << precision;
  }
}

// Adam's correction of its moments, and the first update of a momentum, are those of a parameter's
// own updates, as in torch.optim: the bits of optimizers that know nothing of each other.
TEST_F(StepRules, EachParameterCountsItsOwnUpdates) {
  const OptimizerSpec specs[] = {optim::AdamW{.lr = 0.1},
                                 optim::AdamW{.lr = 0.1, .update = UpdateTime::Early},
                                 optim::Sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}};
  const auto weights = [](const OptimizerSpec& spec, bool late, bool apart, bool is_compiled) {
    manual_seed(1);
    eager().clear_tape();
    Net model;
    const auto all = model.parameters();
    Optimizer in(spec, {all[0], all[1]}, scalar::no_scaler());
    Optimizer out(spec, {all[2], all[3]}, scalar::no_scaler());
    if (late) model.requires_grad(false, "in.*");
    Optimizer both(spec, all, scalar::no_scaler());
    const auto step = [&](Tensor x, Tensor y) {
      const Tensor loss = cross_entropy(model(x), y);
      if (!apart) minimize(loss, both);
      if (apart && all[0]->requires_grad) minimize(loss, in);
      if (apart && all[2]->requires_grad) minimize(loss, out);
      return loss;
    };
    auto compiled = compile(step);
    int i = 0;
    for (const char* now :
         {"out.*", "out.*", "*", "in.*", "*", "out.*", "*", "in.*", "*", "out.*"}) {
      model.requires_grad(false);
      model.requires_grad(true, now);
      const Tensor x = numbers({4, 4}, static_cast<float>(i++)), y = labels();
      is_compiled ? compiled(x, y) : step(x, y);
    }
    if (is_compiled) {  // what comes and goes does not compile for ever
      EXPECT_LE(compiled.programs().plan().programs.size(), 5u);
    }
    std::vector<std::string> bytes;
    for (const VariablePtr& p : all) bytes.push_back(bytes_of(*p));
    return bytes;
  };
  for (const OptimizerSpec& spec : specs) {
    const auto want = weights(spec, false, true, false);
    for (const bool late : {false, true})
      for (const bool is_compiled : {false, true})
        EXPECT_EQ(weights(spec, late, false, is_compiled), want)
            << spec.rule.name() << (late ? " late" : "") << (is_compiled ? " compiled" : "");
  }
}

// A function that freezes and unfreezes between its steps.
TEST_F(StepRules, CountsAreThoseOfEagerStepsWithinAProgramToo) {
  const auto trained = [](const char* first, bool is_compiled) {
    manual_seed(1);
    eager().clear_tape();
    Net model;
    model.requires_grad(first[0] == '+', "in.*");
    auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 0.1}, "O0");
    const auto step = [&, &net = net, &opt = opt](Tensor x, Tensor y) {
      model.requires_grad(first[0] == '+', "in.*");
      minimize(cross_entropy(net(x), y), opt);
      model.requires_grad(first[0] != '+', "in.*");
      return minimize(cross_entropy(net(x), y), opt);
    };
    auto compiled = compile(step, {.partial_batches = false});
    for (int i = 0; i < 4; ++i) {
      const Tensor x = numbers({4, 4}, static_cast<float>(i)), y = labels();
      is_compiled ? compiled(x, y) : step(x, y);
    }
    return state_of(model, opt);
  };
  for (const char* first : {"+ then -", "- then +"})
    EXPECT_EQ(trained(first, true), trained(first, false)) << first;
}

TEST_F(StepRules, TheLoopsOfOtherSystemsFreezeToo) {
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, "O1:fp16");
  opt.scale->buffer->write_one(8.0f);
  model.requires_grad(false, "in.*");
  const std::string in = bytes_of(*model.in.weight), out = bytes_of(*model.out.weight);
  const Tensor loss = cross_entropy(net(numbers({4, 4})), labels());
  amp::scale_loss(loss, opt).backward();
  amp::step(loss, opt);
  EXPECT_EQ(bytes_of(*model.in.weight), in);
  EXPECT_NE(bytes_of(*model.out.weight), out);
}

TEST_F(StepRules, EverythingFrozenOrNothingMatchedIsRefused) {
  Net model;
  auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.1}, "O0");
  expect_words(refusal([&] { model.requires_grad(false, "nope.*"); }), {"E0809", "nope.*", "in."});
  for (const VariablePtr& p : model.parameters()) EXPECT_TRUE(p->requires_grad);
  model.requires_grad(false);
  const Tensor loss = cross_entropy(net(numbers({4, 4})), labels());
  expect_words(refusal([&, &opt = opt] { minimize(loss, opt); }), {"E0801"});
  nn::Module empty;
  empty.requires_grad(false);
}

// --- names and ranges

TEST_F(StepRules, GradientsThatAreNotThereAreNamed) {
  Net model;
  expect_words(refusal([&] { grad_of(model.parameter("nope")); }), {"E0325", "parameter("});
  expect_words(refusal([&] { grad_of(model.in.weight).to_vector(); }), {"E0302", "backward()"});
  mean(model(numbers({4, 4}))).backward();
  EXPECT_TRUE(grad_of(model.in.weight).is_defined());
}

TEST_F(StepRules, IndicesOutOfRangeAreRefusedEagerly) {
  const Tensor x = numbers({3, 4}), table = numbers({5, 2});
  expect_words(refusal([&] {
                 cross_entropy(x, from_ints({0, 4, 1}, {3}));
               }),
               {"E0214", "4 as number 1 of 3", "0 to 3", "-100"});
  expect_words(refusal([&] { cross_entropy(x, from_ints({0, 1, -1}, {3})); }), {"E0214", "-1"});
  expect_words(refusal([&] {
                 nll_loss(x, from_ints({0, 4, -100}, {3}));
               }),
               {"E0214", "nll_loss", "4 as number 1 of 3", "0 to 3"});
  expect_words(refusal([&] {
                 linear_cross_entropy(numbers({3, 2}), table, from_int64s({0, 5, 1}, {3}));
               }),
               {"E0214", "0 to 4"});
  expect_words(refusal([&] { embedding(table, from_ints({0, 5}, {2})); }), {"E0214", "an id"});
  EXPECT_EQ(cross_entropy(x, from_ints({0, -100, 3}, {3})).shape(), Shape{});
  EXPECT_EQ(embedding(table, from_ints({0, 4}, {2})).shape(), (Shape{2, 2}));
  EXPECT_EQ(embedding(table, from_ints({}, {0})).shape(), (Shape{0, 2}));
}

}  // namespace
}  // namespace aloft::e2e
