// The training script of NVIDIA apex's examples/dcgan, line by line: two models, two optimizers,
// and three losses with a loss scale each. Narrower than there, and on made-up images.
//
//   [netD, netG], [optimizerD, optimizerG] = amp.initialize(
//       [netD, netG], [optimizerD, optimizerG], opt_level=opt.opt_level, num_losses=3)
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

using namespace aloft;

constexpr std::int64_t batchSize = 16, imageSize = 64, nz = 16, ngf = 8, ndf = 8, nc = 3;

// The script's weights_init(): small numbers in all convolutions, none of which has a bias.
nn::ConvTranspose2dOptions up(std::int64_t stride, std::int64_t padding) {
  return {
      .stride = stride, .padding = padding, .bias = false, .weight_init = nn::Init::normal(0.02)};
}
nn::Conv2dOptions down(std::int64_t stride, std::int64_t padding) {
  return {
      .stride = stride, .padding = padding, .bias = false, .weight_init = nn::Init::normal(0.02)};
}
Tensor leaky(const Tensor& x) { return leaky_relu(x, 0.2); }

struct Generator : nn::Module {
  nn::Sequential main{*this, "main"};
  Generator() {
    // input is Z, going into a convolution
    main.add<nn::ConvTranspose2d>(nz, ngf * 8, 4, up(1, 0));
    main.add<nn::BatchNorm2d>(ngf * 8).add(relu);
    // state size. (ngf*8) x 4 x 4
    main.add<nn::ConvTranspose2d>(ngf * 8, ngf * 4, 4, up(2, 1));
    main.add<nn::BatchNorm2d>(ngf * 4).add(relu);
    // state size. (ngf*4) x 8 x 8
    main.add<nn::ConvTranspose2d>(ngf * 4, ngf * 2, 4, up(2, 1));
    main.add<nn::BatchNorm2d>(ngf * 2).add(relu);
    // state size. (ngf*2) x 16 x 16
    main.add<nn::ConvTranspose2d>(ngf * 2, ngf, 4, up(2, 1));
    main.add<nn::BatchNorm2d>(ngf).add(relu);
    // state size. (ngf) x 32 x 32
    main.add<nn::ConvTranspose2d>(ngf, nc, 4, up(2, 1)).add(tanh);
    // state size. (nc) x 64 x 64
  }
  Tensor operator()(Operand input) const { return main(input); }
};

struct Discriminator : nn::Module {
  nn::Sequential main{*this, "main"};
  Discriminator() {
    // input is (nc) x 64 x 64
    main.add<nn::Conv2d>(nc, ndf, 4, down(2, 1)).add(leaky);
    // state size. (ndf) x 32 x 32
    main.add<nn::Conv2d>(ndf, ndf * 2, 4, down(2, 1));
    main.add<nn::BatchNorm2d>(ndf * 2).add(leaky);
    // state size. (ndf*2) x 16 x 16
    main.add<nn::Conv2d>(ndf * 2, ndf * 4, 4, down(2, 1));
    main.add<nn::BatchNorm2d>(ndf * 4).add(leaky);
    // state size. (ndf*4) x 8 x 8
    main.add<nn::Conv2d>(ndf * 4, ndf * 8, 4, down(2, 1));
    main.add<nn::BatchNorm2d>(ndf * 8).add(leaky);
    // state size. (ndf*8) x 4 x 4
    main.add<nn::Conv2d>(ndf * 8, 1, 4, down(1, 0));
  }
  Tensor operator()(Operand input) const {
    const Tensor output = main(input);
    return reshape(output, {output.dim(0)});
  }
};

std::mt19937 bits{2809};
std::normal_distribution<float> normal;

Tensor randn(std::int64_t batch_size) {
  std::vector<float> values(static_cast<std::size_t>(batch_size * nz));
  for (float& v : values) v = normal(bits);
  return from_floats(values, {batch_size, nz, 1, 1});
}

// Light spots near the middle of dark images.
ArrayData spots(int images) {
  ArrayData data;
  data.features = nc * imageSize * imageSize;
  for (int i = 0; i < images; ++i) {
    const float cx = 31.5f + 4 * normal(bits), cy = 31.5f + 4 * normal(bits);
    for (int c = 0; c < nc; ++c)
      for (int y = 0; y < imageSize; ++y)
        for (int x = 0; x < imageSize; ++x) {
          const float distance = std::hypot(static_cast<float>(x) - cx, static_cast<float>(y) - cy);
          data.values.push_back(2 * std::exp(-distance * distance / 200) - 1);
        }
    data.labels.push_back(0);
  }
  return data;
}

// How like the mean images are: 1 where one is the other, made lighter or darker.
double likeness(const Tensor& a, const Tensor& b) {
  const Tensor x = mean(a, {0}), y = mean(b, {0});
  const Tensor dx = x - mean(x), dy = y - mean(y);
  return mean(dx * dy).item() / std::sqrt(mean(dx * dx).item() * mean(dy * dy).item());
}

int main() {
  manual_seed(2809);
  const ArrayData dataset = spots(256);
  Loader dataloader(dataset, {.batch = batchSize, .seed = 2809}, {nc, imageSize, imageSize});
  Generator generator;
  Discriminator discriminator;
  const auto criterion = [](const Tensor& output, const Tensor& label) {
    return bce_with_logits(output, label);
  };
  const Tensor fixed_noise = randn(batchSize);
  const double real_label = 1, fake_label = 0;

  // setup optimizer
  const optim::Adam adam{.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.999};
  auto [nets, optimizers] = amp::initialize(std::tie(discriminator, generator), {adam, adam},
                                            {.opt_level = "O1", .num_losses = 3});
  auto& [netD, netG] = nets;
  Optimizer &optimizerD = optimizers[0], &optimizerG = optimizers[1];

  const int niter = 16;
  for (int epoch = 0; epoch < niter; ++epoch) {
    int i = 0;
    for (auto [real, unused] : dataloader) {
      // (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
      // train with real
      netD->zero_grad();
      const std::int64_t batch_size = real.dim(0).max();
      Tensor label = full({batch_size}, real_label);

      Tensor output = netD(real);
      const Tensor errD_real = criterion(output, label);
      {
        auto errD_real_scaled = amp::scale_loss(errD_real, optimizerD, {.loss_id = 0});
        errD_real_scaled.backward();
      }
      const double D_x = mean(output).item();

      // train with fake
      const Tensor noise = randn(batch_size);
      const Tensor fake = netG(noise);
      label = full({batch_size}, fake_label);
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
      label = full({batch_size}, real_label);  // fake labels are real for generator cost
      output = netD(fake);
      const Tensor errG = criterion(output, label);
      {
        auto errG_scaled = amp::scale_loss(errG, optimizerG, {.loss_id = 2});
        errG_scaled.backward();
      }
      const double D_G_z2 = mean(output).item();
      amp::step(optimizerG);

      if (i % 8 == 0)
        fmt::print(
            "[{}/{}][{}] Loss_D: {:.4f} Loss_G: {:.4f} D(x): {:.4f} D(G(z)): {:.4f} / {:.4f}\n",
            epoch, niter, i, errD.item(), errG.item(), D_x, D_G_z1, D_G_z2);
      ++i;
    }
  }
  const Tensor real = from_floats(dataset.values, {256, nc, imageSize, imageSize});
  const double like = likeness(netG(fixed_noise), real);
  fmt::print("{}\nlikeness of mean images {:.3f}\n", amp::state_dict(optimizerD).str(), like);
  return like > 0.8 ? 0 : 1;
}
