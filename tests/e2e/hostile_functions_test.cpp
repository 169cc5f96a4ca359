// The functions that a program computes with, with arguments that nobody sane would pass. A result,
// or an error with a code and what is needed. Never a crash, a call without end, "a mistake in
// Aloft" or an exception of the language's library.
#include "hostile_calls.h"
#include "ops/op.h"

namespace aloft::e2e {
namespace {

TEST_F(HostileArguments, OfFunctionsAlongAnAxis) {
  with_ints({
      {"argmax", [&](I a) { read(argmax(x, a)); }},
      {"argmin", [&](I a) { read(argmin(x, a, true)); }},
      {"concat",
       [&](I a) {
         read(concat({x, x}, a));
       }},
      {"concat of nothing", [&](I a) { read(concat({}, a)); }},
      {"stack",
       [&](I a) {
         read(stack({x, x}, a));
       }},
      {"stack of nothing", [&](I a) { read(stack({}, a)); }},
      {"cumsum", [&](I a) { read(cumsum(x, a)); }},
      {"gather", [&](I a) { read(gather(x, index, a)); }},
      {"scatter_add", [&](I a) { read(scatter_add(x, index, x, a)); }},
      {"take", [&](I a) { read(take(x, list, a)); }},
      {"index_add", [&](I a) { read(index_add(x, list, x, a)); }},
      {"flip", [&](I a) { read(flip(x, a)); }},
      {"softmax", [&](I a) { read(softmax(x, a)); }},
      {"log_softmax", [&](I a) { read(log_softmax(x, a)); }},
      {"sort", [&](I a) { read(sort(x, a)); }},
      {"argsort", [&](I a) { read(argsort(x, a)); }},
      {"sum", [&](I a) { read(sum(x, {a})); }},
      {"any", [&](I a) { read(any(x, {a})); }},
      {"all", [&](I a) { read(all(x, {a})); }},
      {"logsumexp", [&](I a) { read(logsumexp(x, {a})); }},
      {"norm", [&](I a) { read(norm(x, {a}, true)); }},
      {"norm's order", [&](I a) { read(norm(x, {}, false, a)); }},
      {"layer_norm's axes", [&](I a) { read(layer_norm(x, {}, {}, 1e-5, a)); }},
      {"group_norm's groups", [&](I a) { read(group_norm(image, a, {}, {})); }},
      {"element_count", [&](I a) { read(element_count(x, {a}, DType::F32)); }},
      {"transpose",
       [&](I a) {
         read(transpose(x, {a, 1, 0}));
       }},
      {"transpose of too few", [&](I a) { read(transpose(x, {a})); }},
      {"tril", [&](I a) { read(tril(x, a)); }},
      {"triu", [&](I a) { read(triu(x, a)); }},
      {"dim", [&](I a) { x.dim(narrow(a)); }},
      {"shape()[]", [&](I a) { x.shape()[narrow(a)].str(); }},
      {"Shape[] of none", [&](I a) { Shape()[narrow(a)].str(); }},
      {"cross_entropy's ignore_index", [&](I a) { read(cross_entropy(logits, targets, {a})); }},
      {"nll_loss' ignore_index", [&](I a) { read(nll_loss(logits, targets, {a})); }},
  });
  with_pairs({
      {"swap_axes", [&](I a, I b) { read(swap_axes(x, narrow(a), narrow(b))); }},
      {"flatten", [&](I a, I b) { read(flatten(x, narrow(a), narrow(b))); }},
      {"mean",
       [&](I a, I b) {
         read(mean(x, {a, b}));
       }},
      {"max",
       [&](I a, I b) {
         read(max(x, {a, b}));
       }},
      {"min",
       [&](I a, I b) {
         read(min(x, {a, b}, true));
       }},
      {"prod",
       [&](I a, I b) {
         read(prod(x, {a, b}));
       }},
      {"var",
       [&](I a, I b) {
         read(var(x, {a, b}));
       }},
      {"split",
       [&](I a, I b) {
         read(split(x, {a, b}, -1));
       }},
      {"split along", [&](I a, I b) { read(split(x, {a}, b)); }},
      {"roll", [&](I a, I b) { read(roll(x, a, b)); }},
      {"top_k", [&](I a, I b) { read(top_k(x, a, b)); }},
  });
}

// An axis counts from the front or from the back, to the same, and is refused where there is none.
TEST_F(HostileArguments, ThatAreAxes) {
  std::vector<double> numbers(24);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<double>(i));
  const Tensor y = from_doubles(numbers, {2, 3, 4}), small = from_ints({1, 0}, {2});
  const Tensor zeros = full({2, 3, 4}, 0, DType::I32);
  const std::pair<const char*, std::function<Tensor(I)>> functions[] = {
      {"argmax", [&](I a) { return argmax(y, a); }},
      {"argmin", [&](I a) { return argmin(y, a); }},
      {"concat",
       [&](I a) {
         return concat({y, y}, a);
       }},
      {"cumsum", [&](I a) { return cumsum(y, a); }},
      {"gather", [&](I a) { return gather(y, zeros, a); }},
      {"scatter_add", [&](I a) { return scatter_add(y, zeros, y, a); }},
      {"take", [&](I a) { return take(y, small, a); }},
      {"index_add", [&](I a) { return index_add(y, small, take(y, small, a), a); }},
      {"flip", [&](I a) { return flip(y, a); }},
      {"roll", [&](I a) { return roll(y, 1, a); }},
      {"tile", [&](I a) { return tile(y, 2, a); }},
      {"repeat", [&](I a) { return repeat(y, 2, a); }},
      {"pad", [&](I a) { return pad(y, a, 1, 0); }},
      {"slice", [&](I a) { return slice(y, a, 1); }},
      {"split",
       [&](I a) {
         return split(concat({y, y}, a), {y.dim(narrow(a)).max(), y.dim(narrow(a)).max()}, a)[0];
       }},
      {"softmax", [&](I a) { return softmax(y, a); }},
      {"log_softmax", [&](I a) { return log_softmax(y, a); }},
      {"sort", [&](I a) { return sort(y, a)[0]; }},
      {"argsort", [&](I a) { return argsort(y, a); }},
      {"top_k", [&](I a) { return top_k(y, 2, a)[0]; }},
      {"sum", [&](I a) { return sum(y, {a}); }},
      {"mean", [&](I a) { return mean(y, {a}); }},
      {"max", [&](I a) { return max(y, {a}, true); }},
      {"min", [&](I a) { return min(y, {a}); }},
      {"prod", [&](I a) { return prod(y, {a}); }},
      {"any", [&](I a) { return any(y, {a}); }},
      {"all", [&](I a) { return all(y, {a}); }},
      {"logsumexp", [&](I a) { return logsumexp(y, {a}); }},
      {"norm", [&](I a) { return norm(y, {a}); }},
      {"var", [&](I a) { return var(y, {a}); }},
      {"element_count", [&](I a) { return element_count(y, {a}, DType::F32); }},
      {"transpose",
       [&](I a) {
         return transpose(y, {a, (a % 3 + 4) % 3, (a % 3 + 5) % 3});
       }},
      {"swap_axes", [&](I a) { return swap_axes(y, narrow(a), 0); }},
      {"flatten", [&](I a) { return flatten(y, narrow(a)); }},
      {"flatten to", [&](I a) { return flatten(y, 0, narrow(a)); }},
  };
  for (const auto& [name, f] : functions) {
    for (const I axis : {-3, -2, -1})
      check(name, [&, &name = name, &f = f] {
        const Tensor back = f(axis), front = f(axis + 3);
        EXPECT_EQ(back.shape(), front.shape()) << name << axis;
        EXPECT_EQ(back.to_vector(), front.to_vector()) << name << axis;
      });
    for (const I axis : kInts)
      if (axis < -3 || axis > 2) {
        const int before = refused;
        check(name, [&, &f = f] { f(axis); });
        EXPECT_EQ(refused, before + 1) << name << axis;
      }
  }
}

// Any number of rows of nothing is nothing: no loop goes over them.
TEST_F(HostileArguments, WithoutAnElement) {
  const std::pair<const char*, std::function<void(const Tensor&)>> functions[] = {
      {"softmax", [](const Tensor& t) { read(softmax(t)); }},
      {"log_softmax", [](const Tensor& t) { read(log_softmax(t, 0)); }},
      {"cumsum", [](const Tensor& t) { read(cumsum(t)); }},
      {"cumsum along 0", [](const Tensor& t) { read(cumsum(t, 0)); }},
      {"sort", [](const Tensor& t) { read(sort(t)); }},
      {"sort along 0", [](const Tensor& t) { read(sort(t, 0)); }},
      {"argsort", [](const Tensor& t) { read(argsort(t)); }},
      {"top_k", [](const Tensor& t) { read(top_k(t, 0)); }},
      {"sum", [](const Tensor& t) { read(sum(t)); }},
      {"max", [](const Tensor& t) { read(max(t, {0})); }},
      {"mean", [](const Tensor& t) { read(mean(t, {0}, true)); }},
      {"var", [](const Tensor& t) { read(var(t, {0})); }},
      {"prod", [](const Tensor& t) { read(prod(t)); }},
      {"any", [](const Tensor& t) { read(any(t)); }},
      {"logsumexp", [](const Tensor& t) { read(logsumexp(t, {0})); }},
      {"norm", [](const Tensor& t) { read(norm(t)); }},
      {"layer_norm", [](const Tensor& t) { read(layer_norm(t, {}, {})); }},
      {"rms_norm", [](const Tensor& t) { read(rms_norm(t, {})); }},
      {"flip", [](const Tensor& t) { read(flip(t, -1)); }},
      {"roll", [](const Tensor& t) { read(roll(t, 1, -1)); }},
      {"slice", [](const Tensor& t) { read(slice(t, -1, 0, 3)); }},
      {"pad", [](const Tensor& t) { read(pad(t, 0, 0, 0)); }},
      {"concat",
       [](const Tensor& t) {
         read(concat({t, t}, -1));
       }},
      {"transpose", [](const Tensor& t) { read(swap_axes(t, 0, 1)); }},
      {"repeat", [](const Tensor& t) { read(repeat(t, 1, 0)); }},
      {"tril", [](const Tensor& t) { read(tril(t)); }},
      {"add", [](const Tensor& t) { read(t + t); }},
      {"exp", [](const Tensor& t) { read(exp(t)); }},
      {"matmul", [](const Tensor& t) { read(matmul(t, t, false, true)); }},
      {"cast", [](const Tensor& t) { read(cast(t, DType::BF16)); }},
  };
  for (const Shape& shape : {Shape{kLarge, 0}, Shape{0, kLarge}, Shape{kLarge, 0, 2},
                             Shape{2, kLarge, 0}, Shape{2, 0, kLarge}})
    for (const auto& [name, f] : functions)
      check(std::string(name) + " of " + shape.str(), [&, &f = f] { f(full(shape, 0)); });
}

// What once was taken, and gave what nobody asked for.
TEST_F(HostileArguments, ThatLeaveTheRange) {
  const auto rng = [] { return current_emitter().state(random_state()); };
  const Tensor square = full({3, 3}, 1);
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"extents beside a 0",
       [] {
         full({0, kLarge, kLarge}, 0);
       }},
      {"a bound below 0",
       [] {
         Shape{Dim::symbolic("B", -7, 7), 4}.max_numel();
       }},
      {"axes from behind", [&] { flatten(x, 2, 0); }},
      {"huber_loss", [&] { huber_loss(x, x, -1); }},
      {"random_uniform", [&] { random_uniform(rng(), {4}, 1, 0); }},
      {"random_normal", [&] { random_normal(rng(), {4}, 0, -1); }},
      {"attention",
       [&] {
         attention_qkv(full({1, 2, 12}, 1), {1, 0, true, INFINITY});
       }},
      {"layer_norm", [&] { layer_norm(x, {}, {}, -1); }},
      {"rms_norm", [&] { rms_norm(x, {}, NAN); }},
      {"matmul",
       [&] {
         Attrs whole;
         whole.set("out", DType::I32);
         whole.set("same_out", false);
         emit_one("matmul", whole, {square, square});
       }},
  };
  for (const auto& [name, call] : calls) {
    const int before = refused;
    check(name, call);
    EXPECT_EQ(refused, before + 1) << name;
  }
}

TEST_F(HostileArguments, OneHotRowsOfNoIdsTakeNoMemoryForTheirClasses) {
  const Tensor none = full({0, 3}, 0, DType::I32);
  EXPECT_EQ(one_hot(none, kLarge).shape(), Shape({0, 3, kLarge}));
  check("classes below 0", [&] { read(one_hot(none, -1)); });
}

TEST_F(HostileArguments, OfFunctionsThatMakeAShape) {
  const auto rng = [] { return current_emitter().state(random_state()); };
  with_ints({
      {"one_hot", [&](I a) { read(one_hot(ids, a)); }},
      {"one_hot of nothing",
       [&](I a) {
         read(one_hot(full({0, 3}, 0, DType::I32), a));
       }},
      {"reshape", [&](I a) { read(reshape(x, {a})); }},
      {"broadcast_to",
       [&](I a) {
         read(broadcast_to(one, {a, 4}));
       }},
      {"broadcast_to of nothing",
       [&](I a) {
         read(broadcast_to(full({1, 0}, 0), {a, 0}));
       }},
      {"from_floats",
       [&](I a) {
         read(from_floats({1, 2}, {a}));
       }},
      {"from_ints",
       [&](I a) {
         read(from_ints({}, {a, 0}));
       }},
      {"attention_qkv's heads",
       [&](I a) {
         read(attention_qkv(full({1, 2, 12}, 1), {a}));
       }},
      {"attention_qkv's kv_heads",
       [&](I a) {
         read(attention_qkv(full({1, 2, 12}, 1), {2, a}));
       }},
      {"element type", [&](I a) { read(full({2}, static_cast<double>(a), DType::I8)); }},
      {"symbol's bound", [&](I a) { Dim::symbolic("B", a, 7).max(); }},
      {"symbol's factor",
       [&](I a) {
         Shape{Dim::symbolic("B", 7, a), 4}.max_numel();
       }},
  });
  with_pairs({
      {"full",
       [&](I a, I b) {
         read(full({a, b, 0}, 0));
       }},
      {"full the other way",
       [&](I a, I b) {
         read(full({0, a, b}, 0));
       }},
      {"sum over nothing",
       [&](I a, I b) {
         read(sum(full({0, a, b}, 0), {1}));
       }},
      {"transpose of nothing",
       [&](I a, I b) {
         read(transpose(full({a, 0, b}, 0), {2, 1, 0}));
       }},
      {"reshape to two",
       [&](I a, I b) {
         read(reshape(x, {a, b}));
       }},
      {"iota", [&](I a, I b) { read(iota(7, DType::I32, a, b)); }},
      {"iota's count",
       [&](I a, I b) {
         if (a < 100 || a > (I{1} << 50)) read(iota(a, DType::I64, b));
       }},
      {"tile", [&](I a, I b) { read(tile(x, a, b)); }},
      {"repeat", [&](I a, I b) { read(repeat(x, a, b)); }},
      {"tile of nothing",
       [&](I a, I b) {
         read(tile(full({0, 3}, 0), a, b));
       }},
      {"repeat of nothing",
       [&](I a, I b) {
         read(repeat(full({0, 3}, 0), a, b));
       }},
      {"random_uniform",
       [&](I a, I b) {
         read(random_uniform(rng(), {a, b, 0}));
       }},
      {"random_normal",
       [&](I a, I b) {
         read(random_normal(rng(), {0, a, b}));
       }},
      {"pad", [&](I a, I b) { read(pad(x, -1, a, b)); }},
      {"pad along", [&](I a, I b) { read(pad(x, a, 1, 1, 0, b)); }},
      {"slice", [&](I a, I b) { read(slice(x, -1, a, b)); }},
      {"slice by steps", [&](I a, I b) { read(slice(x, -1, a, INT64_MAX, b)); }},
      {"slice along", [&](I a, I b) { read(slice(x, a, 0, b)); }},
      {"Shape's numbers",
       [](I a, I b) {
         Shape{a, b}.max_numel();
         Shape{a, b}.numel().max();
       }},
      {"bytes",
       [](I a, I b) {
         TensorType{DType::F64, {a, b}}.max_bytes();
       }},
  });
}

TEST_F(HostileArguments, OfWindows) {
  const Tensor w = full({4, 2, 3, 3}, 0.1), line = full({2, 4, 9}, 1), w1 = full({4, 4, 3}, 0.1);
  with_pairs({
      {"conv2d's stride",
       [&](I a, I b) {
         read(conv2d(image, w, {}, {{a, b}, {1, 1}, {1, 1}, 2}));
       }},
      {"conv2d's padding",
       [&](I a, I b) {
         read(conv2d(image, w, {}, {{1, 1}, {a, b}, {1, 1}, 2}));
       }},
      {"conv2d's dilation",
       [&](I a, I b) {
         read(conv2d(image, w, {}, {{1, 1}, {2, 2}, {a, b}, 2}));
       }},
      {"conv2d's groups",
       [&](I a, I b) {
         read(conv2d(image, w, {}, {{b, 1}, {1, 1}, {1, 1}, a}));
       }},
      {"conv1d's stride and padding",
       [&](I a, I b) {
         read(conv1d(line, w1, {}, {a, b}));
       }},
      {"conv1d's dilation and groups",
       [&](I a, I b) {
         read(conv1d(line, w1, {}, {1, 1, a, b}));
       }},
      {"max_pool2d's kernel",
       [&](I a, I b) {
         read(max_pool2d(image, {{a, b}}));
       }},
      {"max_pool2d's stride",
       [&](I a, I b) {
         read(max_pool2d(image, {{2, 2}, {a, b}}));
       }},
      {"max_pool2d's padding",
       [&](I a, I b) {
         read(max_pool2d(image, {{2, 2}, {}, {a, b}}));
       }},
      {"avg_pool2d's kernel",
       [&](I a, I b) {
         read(avg_pool2d(image, {{a, b}}));
       }},
      {"avg_pool2d's stride",
       [&](I a, I b) {
         read(avg_pool2d(image, {{2, 2}, {a, b}}));
       }},
      {"avg_pool2d's padding",
       [&](I a, I b) {
         read(avg_pool2d(image, {{2, 2}, {}, {a, b}}));
       }},
  });
}

TEST_F(HostileArguments, ThatAreNumbers) {
  const auto rng = [] { return current_emitter().state(random_state()); };
  const Tensor q = full({1, 2, 2, 4}, 0.5), places = full({2}, 1, DType::I32);
  const Tensor c4 = full({4}, 1);
  with_doubles({
      {"elu", [&](double v) { read(elu(x, v)); }},
      {"leaky_relu", [&](double v) { read(leaky_relu(x, v)); }},
      {"attention's scale",
       [&](double v) {
         read(attention(q, q, q, {true, v}));
       }},
      {"clamp", [&](double v) { read(clamp(x, v, 1)); }},
      {"clamp of integers", [&](double v) { read(clamp(ids, -v, v)); }},
      {"label_smoothing",
       [&](double v) {
         read(cross_entropy(logits, targets, {-100, v}));
       }},
      {"dropout", [&](double v) { read(dropout(x, rng(), v)); }},
      {"group_norm", [&](double v) { read(group_norm(image, 2, {}, {}, v)); }},
      {"layer_norm", [&](double v) { read(layer_norm(x, {}, {}, v)); }},
      {"rms_norm", [&](double v) { read(rms_norm(x, {}, v)); }},
      {"batch_norm's momentum",
       [&](double v) {
         read(batch_norm(image, c4, c4, c4, c4, {true, v}).y);
       }},
      {"batch_norm's eps",
       [&](double v) {
         read(batch_norm(image, c4, c4, c4, c4, {true, 0.1, v}).y);
       }},
      {"huber_loss", [&](double v) { read(huber_loss(x, x, v)); }},
      {"pad", [&](double v) { read(pad(ids, 0, 1, 1, v)); }},
      {"random_uniform", [&](double v) { read(random_uniform(rng(), {4}, v, 1)); }},
      {"random_uniform's high", [&](double v) { read(random_uniform(rng(), {4}, 0, v)); }},
      {"random_normal", [&](double v) { read(random_normal(rng(), {4}, v, v)); }},
      {"rotary", [&](double v) { read(rotary(q, places, {v})); }},
      {"var", [&](double v) { read(var(x, {}, false, v)); }},
      {"a number beside integers",
       [&](double v) {
         read(ids * v);
         read(pow(ids, v));
       }},
      {"a comparison", [&](double v) { read(less(ids, v)); }},
      {"full",
       [&](double v) {
         for (const DType t : kAllDTypes) read(full({3}, v, t));
       }},
      {"fill",
       [](double v) {
         float values[5];
         nn::fill(nn::Init::normal(v), "w", values, 5);
         nn::fill(nn::Init::uniform(v), "w", values, 5);
       }},
  });
  for (const std::string reduction : {"", "mean ", "none", "x"}) {
    check("mse_loss by " + reduction, [&] { read(mse_loss(x, x, reduction)); });
    check("kl_div by " + reduction, [&] { read(kl_div(x, x, reduction)); });
    check("nll_loss by " + reduction, [&] { read(nll_loss(logits, targets, {-100, reduction})); });
    check("cross_entropy by " + reduction, [&] {
      read(cross_entropy(logits, targets, {-100, 0, reduction}));
    });
  }
}

}  // namespace
}  // namespace aloft::e2e
