// What a precision policy knows of a value stays with it where nothing is recorded for a while: a
// model computes the same compiled, eagerly, again, and for evaluation.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "nn/linear.h"
#include "numbers.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/identity.h"
#include "ops/losses.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/transpose.h"
#include "ops/unary.h"
#include "optim/sgd.h"

namespace aloft::e2e {
namespace {

struct Net;
using Forward = std::function<Tensor(const Net&, const Tensor&)>;

struct Net : nn::Layer {
  explicit Net(Forward f) : forward(std::move(f)) {}
  Tensor weight() const { return use(w); }
  Tensor operator()(Operand x) const { return forward(*this, x.tensor); }
  nn::Linear a{*this, "a", 8, 8}, b{*this, "b", 8, 8};
  VariablePtr w = new_parameter("w", {8, 8}, nn::Init::normal(0.5));
  Forward forward;
};

Tensor wide(const Tensor& x) { return cast(x, DType::F32); }

// Each has a part without gradients.
const std::vector<std::pair<const char*, Forward>>& forwards() {
  static const std::vector<std::pair<const char*, Forward>> all = {
      {"a target in f32",
       [](const Net& n, const Tensor& x) {
         Tensor t;
         {
           NoGrad off;
           t = wide(n.b(x));
         }
         return mean(square(n.a(x) - t));
       }},
      {"a loss as a weight",
       [](const Net& n, const Tensor& x) {
         Tensor t;
         {
           NoGrad off;
           t = mse_loss(n.b(x), x);
         }
         return sum(n.a(x) * t);
       }},
      {"statistics in f32",
       [](const Net& n, const Tensor& x) {
         const Tensor y = n.a(x);
         Tensor middle;
         {
           NoGrad off;
           middle = mean(wide(y), {0}, true);
         }
         return sum(square(y - middle));
       }},
      {"a parameter that is moved",
       [](const Net& n, const Tensor& x) {
         Tensor t;
         {
           NoGrad off;
           t = transpose(n.weight(), {1, 0});
         }
         return sum(wide(matmul(x, t))) + mean(n.a(x));
       }},
      {"a parameter",
       [](const Net& n, const Tensor& x) {
         Tensor t;
         {
           NoGrad off;
           t = n.weight();
         }
         return sum(wide(matmul(x, t))) + mean(n.a(x));
       }},
      {"a number without gradients",
       [](const Net& n, const Tensor& x) {
         Tensor k;
         {
           NoGrad off;
           k = full({}, 0.13);
         }
         return sum(square(n.a(x) * k));
       }},
      {"a number that is detached",
       [](const Net& n, const Tensor& x) {
         return sum(square(softmax(n.a(x)) * detach(full({}, 0.39))));
       }},
      {"a number", [](const Net& n, const Tensor& x) {
         const Tensor k = full({}, 0.1);
         const Tensor t = n.a(x) * 0.3;
         return sum(wide(t * k));
       }}};
  return all;
}

TEST(ValueNotes, StayWithTheirValuesWhereNothingIsRecorded) {
  use_cpu();
  for (const char* precision : {"O0", "O1:bf16", "O2:bf16", "O2:fp16", "O1:bf16 deny_params=w",
                                "O2:bf16 deny_params=w", "O1:bf16 deny_ops=matmul allow_params=w"})
    for (const auto& [name, forward] : forwards()) {
      SCOPED_TRACE(std::string(precision) + ", " + name);
      eager().clear_tape();
      manual_seed(3);
      Net model(forward);
      auto [net, opt] = amp::initialize(model, optim::Sgd{}, precision);
      const Tensor x = spread(3, {5, 8});
      auto compiled = compile([&net = net](const Tensor& in) { return net(in); });
      const double want = compiled(x).item();
      EXPECT_EQ(net(x).item(), want);
      eager().clear_tape();
      EXPECT_EQ(net(x).item(), want);
      const NoGrad evaluation;
      EXPECT_EQ(net(x).item(), want);
    }
}

// The backward pass decides by what the forward pass knew.
TEST(ValueNotes, DecideTheGradientsToo) {
  use_cpu();
  for (const char* precision : {"O0", "O1:bf16", "O2:bf16", "O2:fp16", "O3:bf16"})
    for (const auto& [name, forward] : forwards()) {
      SCOPED_TRACE(std::string(precision) + ", " + name);
      std::string weights[2];
      for (const bool is_compiled : {false, true}) {
        eager().clear_tape();
        manual_seed(3);
        Net model(forward);
        auto [net, opt] = amp::initialize(model, optim::Sgd{.lr = 0.5}, precision);
        const auto step = [&net = net, &opt = opt](const Tensor& in) {
          return minimize(net(in), opt);
        };
        auto compiled = compile(step);
        const Tensor x = spread(3, {5, 8});
        is_compiled ? compiled(x) : step(x);
        for (const VariablePtr& p : model.parameters()) weights[is_compiled] += bytes_of(*p);
      }
      EXPECT_EQ(weights[0], weights[1]);
    }
}

// A teacher's values pass through the program around both, which may be compiled in parts.
struct Student : nn::Layer {
  nn::Linear a{*this, "a", 8, 8};
  Tensor operator()(Operand x, Operand target) const { return sum(a(x) * (target.tensor * 1.1)); }
};

TEST(ValueNotes, PassTheBordersOfCompiledFunctions) {
  use_cpu();
  for (const char* precision : {"O1:bf16", "O2:bf16", "O2:fp16", "O3:bf16"}) {
    SCOPED_TRACE(precision);
    manual_seed(3);
    Net teacher([](const Net& n, const Tensor& x) { return wide(n.b(x)); });
    Student student;
    auto [teaches, teacher_opt] = amp::initialize(teacher, optim::Sgd{}, precision);
    auto [learns, student_opt] = amp::initialize(student, optim::Sgd{}, precision);
    const NoGrad evaluation;
    const auto taught = [&net = teaches](const Tensor& x) { return net(x) * 1.5; };
    const auto loss = [&net = learns](const Tensor& x, const Tensor& t) { return net(x, t); };
    auto compiled_teacher = compile(taught);
    auto compiled_loss = compile(loss);
    auto both = compile([&](const Tensor& x) { return loss(x, taught(x)); });
    const Tensor x = spread(3, {5, 8});
    EXPECT_TRUE(eager().notes(taught(x)).is_wide);
    const double want = both(x).item();
    const double plain = loss(x, x).item();
    EXPECT_EQ(loss(x, taught(x)).item(), want);
    EXPECT_EQ(compiled_loss(x, x).item(), plain);  // a value of which nothing is known, in between
    EXPECT_EQ(compiled_loss(x, taught(x)).item(), want);
    EXPECT_EQ(loss(x, compiled_teacher(x)).item(), want);
    EXPECT_EQ(compiled_loss(x, compiled_teacher(x)).item(), want);
    EXPECT_EQ(compiled_loss(x, x).item(), plain);
  }
}

}  // namespace
}  // namespace aloft::e2e
