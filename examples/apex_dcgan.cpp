// The training script of NVIDIA apex's examples/dcgan, line by line: two models, two optimizers,
// and three losses with a loss scale each. On small made-up images; where the script's generator
// has transposed convolutions, this one makes its images larger and convolves them.
//
//   [netD, netG], [optimizerD, optimizerG] = amp.initialize(
//       [netD, netG], [optimizerD, optimizerG], opt_level=opt.opt_level, num_losses=3)
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

using namespace aloft;

constexpr std::int64_t kBatch = 32, nz = 16, ngf = 16, ndf = 16, nc = 1, kSize = 16;
const nn::Conv2dOptions kHalves{
    .stride = 2, .padding = 1, .bias = false, .weight_init = nn::Init::normal(0.05)};
const nn::Conv2dOptions kKeeps{.padding = 1, .bias = false, .weight_init = nn::Init::normal(0.05)};

Tensor twice_as_large(const Tensor& x) { return repeat(repeat(x, 2, 2), 2, 3); }

struct Generator : nn::Module {
  nn::Linear start{*this, "start", nz, 2 * ngf * 4 * 4};
  nn::BatchNorm2d norm0{*this, "norm0", 2 * ngf};
  nn::Conv2d conv1{*this, "conv1", 2 * ngf, ngf, 3, kKeeps};
  nn::BatchNorm2d norm1{*this, "norm1", ngf};
  nn::Conv2d conv2{*this, "conv2", ngf, nc, 3, kKeeps};

  Tensor operator()(Operand input) const {  // [B, nz] -> [B, nc, kSize, kSize]
    return call(input, [&](const Tensor& z) {
      const Tensor x = relu(norm0(reshape(start(z), {kBatch, 2 * ngf, 4, 4})));
      const Tensor y = relu(norm1(conv1(twice_as_large(x))));
      return tanh(conv2(twice_as_large(y)));
    });
  }
};

struct Discriminator : nn::Module {
  nn::Conv2d conv0{*this, "conv0", nc, ndf, 4, kHalves};
  nn::Conv2d conv1{*this, "conv1", ndf, 2 * ndf, 4, kHalves};
  nn::BatchNorm2d norm1{*this, "norm1", 2 * ndf};
  nn::Linear out{*this, "out", 2 * ndf * 4 * 4, 1};

  Tensor operator()(Operand input) const {  // [B, nc, kSize, kSize] -> [B]
    return call(input, [&](const Tensor& image) {
      const Tensor x = leaky_relu(conv0(image), 0.2);
      const Tensor y = leaky_relu(norm1(conv1(x)), 0.2);
      return reshape(out(reshape(y, {kBatch, 2 * ndf * 4 * 4})), {kBatch});
    });
  }
};

class Numbers {
 public:
  Tensor noise() {
    std::vector<float> values(kBatch * nz);
    for (float& v : values) v = normal_(bits_);
    return from_floats(values, {kBatch, nz});
  }
  // A light spot near the middle of a dark image.
  Tensor images() {
    std::vector<float> values;
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const float cx = 7.5f + normal_(bits_), cy = 7.5f + normal_(bits_);
      for (int y = 0; y < kSize; ++y)
        for (int x = 0; x < kSize; ++x)
          values.push_back(2 * std::exp(-(std::pow(x - cx, 2.0f) + std::pow(y - cy, 2.0f)) / 12) -
                           1);
    }
    return from_floats(values, {kBatch, nc, kSize, kSize});
  }

 private:
  std::mt19937 bits_{2809};
  std::normal_distribution<float> normal_;
};

// How like the mean images are: 1 where one is the other, made lighter or darker.
double likeness(const Tensor& a, const Tensor& b) {
  const Tensor x = mean(a, {0}), y = mean(b, {0});
  const Tensor dx = x - mean(x), dy = y - mean(y);
  return mean(dx * dy).item() / std::sqrt(mean(dx * dx).item() * mean(dy * dy).item());
}

int main() {
  manual_seed(2809);
  Generator generator;
  Discriminator discriminator;
  const auto criterion = [](const Tensor& output, const Tensor& label) {
    return bce_with_logits(output, label);
  };
  const optim::Adam adam{.lr = 1e-3, .beta1 = 0.5};
  auto [nets, optimizers] = amp::initialize(std::tie(discriminator, generator), {adam, adam},
                                            {.opt_level = "O1", .num_losses = 3});
  auto& [netD, netG] = nets;
  Optimizer &optimizerD = optimizers[0], &optimizerG = optimizers[1];

  Numbers numbers;
  const Tensor fixed_noise = numbers.noise();
  for (int i = 0; i < 150; ++i) {
    // (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
    // train with real
    netD->zero_grad();
    const Tensor real = numbers.images();
    Tensor label = full({kBatch}, 1.0);
    Tensor output = netD(real);
    const Tensor errD_real = criterion(output, label);
    {
      auto errD_real_scaled = amp::scale_loss(errD_real, optimizerD, {.loss_id = 0});
      errD_real_scaled.backward();
    }
    const double D_x = mean(output).item();

    // train with fake
    const Tensor noise = numbers.noise();
    const Tensor fake = netG(noise);
    label = full({kBatch}, 0.0);
    output = netD(detach(fake));
    const Tensor errD_fake = criterion(output, label);
    {
      auto errD_fake_scaled = amp::scale_loss(errD_fake, optimizerD, {.loss_id = 1});
      errD_fake_scaled.backward();
    }
    const double D_G_z1 = mean(output).item();
    const Tensor errD = errD_real + errD_fake;
    amp::step(optimizerD);

    // (2) Update G network: maximize log(D(G(z)))
    netG->zero_grad();
    label = full({kBatch}, 1.0);  // fake labels are real for generator cost
    output = netD(fake);
    const Tensor errG = criterion(output, label);
    {
      auto errG_scaled = amp::scale_loss(errG, optimizerG, {.loss_id = 2});
      errG_scaled.backward();
    }
    const double D_G_z2 = mean(output).item();
    amp::step(optimizerG);

    if (i % 30 == 29)
      fmt::print("[{}] Loss_D: {:.4f} Loss_G: {:.4f} D(x): {:.4f} D(G(z)): {:.4f} / {:.4f}\n", i,
                 errD.item(), errG.item(), D_x, D_G_z1, D_G_z2);
  }
  const double like = likeness(netG(fixed_noise), numbers.images());
  fmt::print("{}\nlikeness of mean images {:.3f}\n", amp::state_dict(optimizerD).str(), like);
  return like > 0.8 ? 0 : 1;
}
