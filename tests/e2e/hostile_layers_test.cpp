// Layers, models, optimizers, schedules and loaders, made with numbers that nobody sane would pass.
// A result, or an error with a code and what is needed, as of functions
// (hostile_functions_test.cpp).
#include "hostile_calls.h"
#include "models/llama.h"
#include "models/model_spec.h"

namespace aloft::e2e {
namespace {

TEST_F(HostileArguments, OfLayers) {
  using nn::Module;
  const auto layer = [](auto make) {
    return [make](I a, I b) {
      Module root;
      make(root, a, b);
    };
  };
  with_pairs({
      {"Linear", layer([&](Module& m, I a, I b) { read(nn::Linear(m, "l", a, b)(x)); })},
      {"Embedding", layer([&](Module& m, I a, I b) { read(nn::Embedding(m, "l", a, b)(ids)); })},
      {"LayerNorm and RMSNorm", layer([&](Module& m, I a, I) {
         read(nn::LayerNorm(m, "l", a)(x));
         read(nn::RMSNorm(m, "r", a)(x));
       })},
      {"GroupNorm", layer([&](Module& m, I a, I b) { read(nn::GroupNorm(m, "l", a, b)(image)); })},
      {"BatchNorm2d", layer([&](Module& m, I a, I) { read(nn::BatchNorm2d(m, "l", a)(image)); })},
      {"Conv2d", layer([&](Module& m, I a, I b) { read(nn::Conv2d(m, "l", a, b, 3)(image)); })},
      {"Conv2d's kernel and groups", layer([&](Module& m, I a, I b) {
         read(nn::Conv2d(m, "l", 4, 4, a, {.groups = b})(image));
       })},
      {"Conv2d's stride and padding", layer([&](Module& m, I a, I b) {
         read(nn::Conv2d(m, "l", 4, 2, 3, {.stride = a, .padding = b})(image));
       })},
      {"Conv2d's dilation", layer([&](Module& m, I a, I b) {
         read(nn::Conv2d(m, "l", 4, 2, 2, {.padding = b, .dilation = a})(image));
       })},
      {"ConvTranspose2d's kernel and groups", layer([&](Module& m, I a, I b) {
         read(nn::ConvTranspose2d(m, "l", 4, 4, a, {.groups = b})(image));
       })},
      {"ConvTranspose2d's stride and paddings", layer([&](Module& m, I a, I b) {
         read(nn::ConvTranspose2d(m, "l", 4, 2, 3,
                                  {.stride = a, .padding = b, .output_padding = b})(image));
       })},
      {"MaxPool2d",
       layer([&](Module& m, I a, I b) { read(nn::MaxPool2d(m, "l", a, {.stride = b})(image)); })},
      {"AvgPool2d", layer([&](Module& m, I a, I b) {
         read(nn::AvgPool2d(m, "l", 2, {.stride = a, .padding = b})(image));
       })},
      {"MultiHeadAttention",
       layer([&](Module& m, I a, I b) { read(nn::MultiHeadAttention(m, "l", a, b)(x)); })},
      {"MultiHeadAttention's kv_heads", layer([&](Module& m, I a, I b) {
         read(nn::MultiHeadAttention(m, "l", 4, a, {.kv_heads = b})(x));
       })},
  });
  with_doubles({
      {"Dropout",
       [&](double v) {
         Module root;
         read(nn::Dropout(root, "l", v)(x));
       }},
      {"eps and momentum",
       [&](double v) {
         Module root;
         read(nn::LayerNorm(root, "l", 4, {.eps = v})(x));
         read(nn::RMSNorm(root, "r", 4, {.eps = v})(x));
         read(nn::GroupNorm(root, "g", 2, 4, {.eps = v})(image));
         read(nn::BatchNorm2d(root, "e", 4, {.eps = v})(image));
         read(nn::BatchNorm2d(root, "b", 4, {.momentum = v})(image));
       }},
      {"a first value",
       [&](double v) {
         Module root;
         read(nn::Linear(root, "l", 4, 4, {.weight_init = nn::Init::normal(v)})(x));
       }},
  });
}

// What once was taken for another value, or asked for memory that nobody needs.
TEST_F(HostileArguments, ThatLayersTookForAnother) {
  nn::Module root;
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"kv_heads", [&] { nn::MultiHeadAttention(root, "a", 4, 2, {.kv_heads = -1}); }},
      {"a pool's stride", [&] { nn::MaxPool2d(root, "m", 2, {.stride = -1}); }},
      {"hidden", [&] { models::Gpt2({.layers = 1, .heads = 1, .dim = 2, .hidden = -1}); }},
      {"layers", [&] { models::Gpt2({.layers = kLarge, .heads = 1, .dim = 2, .vocab = 2}); }},
      {"deviation", [&] { nn::Linear(root, "l", 2, 2, {.weight_init = nn::Init::normal(NAN)}); }},
      {"Mlp", [&] { models::Mlp(std::vector<std::int64_t>{}); }},
  };
  for (const auto& [name, call] : calls) {
    const int before = refused;
    check(name, call);
    EXPECT_EQ(refused, before + 1) << name;
  }
  const ArrayData data{.features = 3, .values = std::vector<float>(12, 1), .labels = {0, 1, 2, 0}};
  Loader loader(data, {.batch = kLarge});
  int batches = 0;
  for (auto [x, y] : loader) {
    EXPECT_EQ(x.shape(), Shape({4, 3}));
    ++batches;
    break;
  }
  EXPECT_EQ(batches, 1);
}

// A field of a struct, hostile.
template <class Config, class Use>
void with_fields(const std::string& name, const Config& usual, std::vector<I Config::*> fields,
                 const Use& use) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    for (const I v : kInts) {
      Config c = usual;
      c.*fields[i] = v;
      check(name + ", field " + std::to_string(i) + " = " + std::to_string(v), [&] { use(c); });
    }
}
template <class Config, class Use>
void with_numbers(const std::string& name, const Config& usual,
                  std::vector<double Config::*> fields, const Use& use) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    for (const double v : kDoubles) {
      Config c = usual;
      c.*fields[i] = v;
      check(name + ", number " + std::to_string(i) + " = " + std::to_string(v), [&] { use(c); });
    }
}

TEST_F(HostileArguments, OfModels) {
  using models::Gpt2Config, models::LlamaConfig, models::LeNetConfig, models::ResNetConfig;
  Gpt2Config gpt;
  gpt.layers = 1, gpt.heads = 2, gpt.dim = 4, gpt.vocab = 7, gpt.context = 5;
  const auto use_gpt = [&](const Gpt2Config& c) {
    models::parameter_count(models::spec_of("gpt2", c));
    read(models::Gpt2(c).loss(ids, ids));
  };
  with_fields("Gpt2", gpt,
              {&Gpt2Config::layers, &Gpt2Config::heads, &Gpt2Config::dim, &Gpt2Config::vocab,
               &Gpt2Config::context, &Gpt2Config::hidden},
              use_gpt);
  with_numbers("Gpt2", gpt,
               {&Gpt2Config::dropout, &Gpt2Config::norm_eps, &Gpt2Config::init_deviation}, use_gpt);
  const LlamaConfig llama{1, 2, 1, 4, 8, 7};
  const auto use_llama = [&](const LlamaConfig& c) { read(models::Llama(c).loss(ids, ids)); };
  with_fields("Llama", llama,
              {&LlamaConfig::layers, &LlamaConfig::heads, &LlamaConfig::kv_heads, &LlamaConfig::dim,
               &LlamaConfig::hidden, &LlamaConfig::vocab},
              use_llama);
  with_numbers("Llama", llama,
               {&LlamaConfig::rotary_base, &LlamaConfig::norm_eps, &LlamaConfig::init_deviation},
               use_llama);
  const LeNetConfig lenet{4, 6, 5, 3, 2, 4};
  const auto use_lenet = [&](const LeNetConfig& c) { read(models::LeNet(c)(image)); };
  with_fields("LeNet", lenet,
              {&LeNetConfig::channels, &LeNetConfig::height, &LeNetConfig::width,
               &LeNetConfig::classes, &LeNetConfig::filters, &LeNetConfig::hidden},
              use_lenet);
  check("LeNet of a large image", [&] { use_lenet({4, I{1} << 62, I{1} << 62, 3, 2, 4}); });
  const ResNetConfig resnet{4, 3, 2, {1, 1}};
  const auto use_resnet = [&](const ResNetConfig& c) { read(models::ResNet(c)(image)); };
  with_fields("ResNet", resnet,
              {&ResNetConfig::channels, &ResNetConfig::classes, &ResNetConfig::width}, use_resnet);
  check("ResNet of no stage", [&] { use_resnet({4, 3, 2, {}}); });
  for (const I v : kInts) {
    const std::string of = " of " + std::to_string(v);
    check("ResNet's blocks" + of, [&] { use_resnet({4, 3, 2, {1, v}}); });
    check("Mlp" + of, [&] { read(models::Mlp({4, v, 3})(x)); });
    check("Gpt2's cache" + of, [&] { models::Gpt2(gpt).make_cache(v, 3, DType::F32); });
    check("Gpt2's longest" + of, [&] { models::Gpt2(gpt).make_cache(1, v, DType::F32); });
  }
  const int before = refused;
  check("Mlp of nothing", [&] { read(models::Mlp(std::vector<std::int64_t>{})(x)); });
  check("Mlp of one width", [&] { read(models::Mlp({4})(x)); });
  EXPECT_EQ(refused, before + 2);
  for (const DType t : kAllDTypes)
    check("Gpt2's cache of " + std::string(name_of(t)), [&] {
      const models::Gpt2 model(gpt);
      read(model.decode(ids, model.make_cache(2, 5, t)));
    });
}

template <class Rule>
void step_with(const Rule& rule) {
  models::Mlp model({4, 3, 2});
  const Tensor x = full({5, 4}, 0.5), y = full({5, 2}, 1);
  auto [net, optimizer] = amp::initialize(model, rule, "O2:bf16");
  for (int i = 0; i < 2; ++i) read(minimize(mse_loss(net(x), y), optimizer).loss_tensor);
}

TEST_F(HostileArguments, OfOptimizers) {
  using optim::Adam, optim::AdamW, optim::Sgd, optim::Momentum;
  const auto use = [](const auto& rule) { step_with(rule); };
  with_numbers(
      "Adam", Adam{},
      {&Adam::lr, &Adam::beta1, &Adam::beta2, &Adam::eps, &Adam::weight_decay, &Adam::clip_norm},
      use);
  with_numbers("AdamW", AdamW{},
               {&AdamW::lr, &AdamW::beta1, &AdamW::beta2, &AdamW::eps, &AdamW::weight_decay,
                &AdamW::clip_norm},
               use);
  with_numbers("Sgd", Sgd{},
               {&Sgd::lr, &Sgd::momentum, &Sgd::dampening, &Sgd::weight_decay, &Sgd::clip_norm},
               use);
  with_numbers("Momentum", Momentum{.nesterov = true},
               {&Momentum::lr, &Momentum::momentum, &Momentum::weight_decay, &Momentum::clip_norm},
               use);
  for (const double v : kDoubles)
    check("a group's lr " + std::to_string(v), [&] {
      Sgd rule;
      rule.groups = {{{"*"}, v, v}};
      step_with(rule);
    });
  for (const I v : kInts)
    check("set_accumulation of " + std::to_string(v), [&] {
      models::Mlp model({4, 2});
      Optimizer optimizer(Sgd{}, model.parameters(), scalar::no_scaler());
      optimizer.set_accumulation(narrow(v));
    });
}

TEST_F(HostileArguments, OfWhatAnOptimizerIsAsked) {
  models::Mlp model({4, 2});
  const Optimizer optimizer(optim::Momentum{}, model.parameters(), scalar::no_scaler());
  const std::size_t count = optimizer.parameters().size();
  for (const I v : kInts) {
    const auto i = static_cast<std::size_t>(v);
    const auto is_refused = [&](const std::string& what, bool has, const auto& call) {
      const int before = refused;
      check(what + " " + std::to_string(v), call);
      EXPECT_EQ(refused > before, !has) << what << " " << v;
    };
    is_refused("master", i < count, [&] { static_cast<void>(optimizer.master(i)); });
    is_refused("moment", i < count, [&] { static_cast<void>(optimizer.moment(0, i)); });
    is_refused("moment of the first", i < 1, [&] { static_cast<void>(optimizer.moment(i, 0)); });
    is_refused("applied_to", i < count, [&] { static_cast<void>(optimizer.applied_to(i)); });
    is_refused("group", i < count, [&] { static_cast<void>(optimizer.group(i)); });
    is_refused("decays", i < count, [&] { static_cast<void>(optimizer.decays(i)); });
  }
}

TEST_F(HostileArguments, OfSchedulesAndLossScalers) {
  using scalar::ScheduleRule, scalar::ScalerRule;
  for (const scalar::ScheduleKind kind : scalar::kAllScheduleKinds) {
    ScheduleRule usual;
    usual.kind = kind, usual.total = 10, usual.step_size = 3;
    if (!begins_itself(kind)) usual.warmup = 2;
    usual.factors = {1, 0.5}, usual.parts = {{}};
    const auto use = [](const ScheduleRule& rule) {
      step_with(optim::Sgd{.schedule = rule});
      for (const I applied : kInts) {
        const double factor = schedule_factor(rule, applied);
        EXPECT_TRUE(factor >= 0 && factor <= 1) << factor;
      }
    };
    const std::string name(name_of(kind));
    with_fields(name, usual,
                {&ScheduleRule::warmup, &ScheduleRule::total, &ScheduleRule::step_size,
                 &ScheduleRule::decay, &ScheduleRule::step_down},
                use);
    with_numbers(name, usual,
                 {&ScheduleRule::min_factor, &ScheduleRule::gamma, &ScheduleRule::div,
                  &ScheduleRule::final_div, &ScheduleRule::start_factor},
                 use);
  }
  const auto step_scaled = [](const ScalerRule& rule) {
    models::Mlp model({4, 2});
    Optimizer optimizer(optim::Sgd{}, model.parameters(), rule);
    const Tensor x = full({5, 4}, 0.5);
    for (int i = 0; i < 2; ++i) minimize(mean(model(x)), optimizer);
  };
  for (const scalar::ScalerKind kind :
       {scalar::ScalerKind::None, scalar::ScalerKind::Fixed, scalar::ScalerKind::Dynamic}) {
    ScalerRule usual = scalar::dynamic_scaler();
    usual.kind = kind;
    for (double ScalerRule::*field : {&ScalerRule::growth, &ScalerRule::backoff})
      for (const double v : kDoubles) {
        ScalerRule rule = usual;
        rule.*field = v;
        check("a scaler's factor " + std::to_string(v), [&] { step_scaled(rule); });
      }
    for (float ScalerRule::*field : {&ScalerRule::init, &ScalerRule::max, &ScalerRule::min})
      for (const double v : kDoubles) {
        ScalerRule rule = usual;
        rule.*field = static_cast<float>(std::clamp(v, -3.4e38, 3.4e38));
        if (!std::isfinite(v)) rule.*field = static_cast<float>(v);
        check("a scaler's number " + std::to_string(v), [&] { step_scaled(rule); });
      }
    for (std::int32_t ScalerRule::*field :
         {&ScalerRule::growth_interval, &ScalerRule::give_up_after})
      for (const I v : kInts) {
        ScalerRule rule = usual;
        rule.*field = narrow(v);
        check("a scaler's count " + std::to_string(v), [&] { step_scaled(rule); });
      }
  }
}

TEST_F(HostileArguments, OfLoaders) {
  const ArrayData data{.features = 3, .values = std::vector<float>(12, 1), .labels = {0, 1, 2, 0}};
  const auto go = [](const ArrayData& d, const ArrayLoaderOptions& o, const Shape& sample = {}) {
    Loader loader(d, o, sample);
    int most = 0;
    for (auto [x, y] : loader) {
      read(x);
      if (++most == 3) break;
    }
    loader.seek(UINT64_MAX - 1);
    for (auto [x, y] : loader) {
      read(x);
      if (++most == 6) break;
    }
  };
  for (const LastBatch last : {LastBatch::Wrap, LastBatch::Keep, LastBatch::Drop})
    for (const I v : kInts) {
      const std::string of = " of " + std::to_string(v);
      const auto u = static_cast<std::uint64_t>(v);
      check("batch" + of, [&] { go(data, {.batch = v, .last = last}); });
      check("epochs" + of, [&] { go(data, {.batch = 3, .last = last, .epochs = u}); });
      check("position" + of, [&] { go(data, {.batch = 3, .last = last, .position = u}); });
      check("prefetch" + of, [&] { go(data, {.batch = 3, .last = last, .prefetch = narrow(v)}); });
      check("a sample's shape" + of, [&] { go(data, {.batch = 2, .last = last}, {v, 3}); });
      check("features" + of, [&] {
        ArrayData other = data;
        other.features = v;
        go(other, {.batch = 2});
      });
      check("outputs" + of, [&] {
        ArrayData other{
            .features = 3, .values = data.values, .outputs = v, .targets = {1, 2, 3, 4}};
        go(other, {.batch = 2});
      });
      check("held out" + of, [&] { split_arrays(data, v, 1); });
      check("a walk" + of, [&] {
        const BatchWalk walk(u, 3, last, u);
        walk.sample(u, walk.rows_at(u));
        walk.batches_left(u);
      });
    }
}

}  // namespace
}  // namespace aloft::e2e
