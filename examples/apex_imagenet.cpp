// The training script of NVIDIA apex's examples/imagenet (main_amp.py), line by line, for one
// process: a ResNet, SGD, the options of amp as words of the command line. Without its prefetcher,
// and on made-up small images, for which the ResNet is narrow.
//
//   example_apex_imagenet [--opt-level O2] [--keep-batchnorm-fp32 True] [--loss-scale 128.0]
//                         [--resume FOLDER]
//
//   model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level,
//                                     keep_batchnorm_fp32=args.keep_batchnorm_fp32,
//                                     loss_scale=args.loss_scale)
#include <aloft/aloft.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

using namespace aloft;

constexpr std::int64_t crop_size = 16, classes = 10;
constexpr int print_freq = 4;

struct Args {
  int epochs = 8;
  std::int64_t batch_size = 32;
  double lr = 0.1, momentum = 0.9, weight_decay = 1e-4;
  std::string opt_level = "O2";
  std::optional<amp::Flag> keep_batchnorm_fp32;
  std::optional<amp::LossScale> loss_scale;
  std::optional<Path> resume;
};

Args parse(int argc, char** argv) {
  Args args;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--epochs") args.epochs = std::stoi(argv[i + 1]);
    if (name == "--opt-level") args.opt_level = argv[i + 1];
    if (name == "--keep-batchnorm-fp32") args.keep_batchnorm_fp32 = argv[i + 1];
    if (name == "--loss-scale") args.loss_scale = argv[i + 1];
    if (name == "--resume") args.resume = argv[i + 1];
  }
  return args;
}

// Images of 0 to 255 whose colours say the class, with noise.
ArrayData images(int samples, unsigned seed) {
  std::mt19937 bits(seed);
  ArrayData data;
  data.features = 3 * crop_size * crop_size;
  for (int s = 0; s < samples; ++s) {
    const int label = static_cast<int>(bits() % classes);
    for (std::int64_t f = 0; f < data.features; ++f) {
      const auto channel = static_cast<int>(f / (crop_size * crop_size));
      const int mean = 40 + 20 * ((label * (channel + 1)) % 7 + (label + channel) % 3);
      data.values.push_back(static_cast<float>(mean) + static_cast<float>(bits() % 64) - 32);
    }
    data.labels.push_back(label);
  }
  return data;
}

// What the script's data_prefetcher does to a batch.
Tensor normalized(const Tensor& input) {
  const Tensor mean = from_floats({0.485f * 255, 0.456f * 255, 0.406f * 255}, {1, 3, 1, 1});
  const Tensor std = from_floats({0.229f * 255, 0.224f * 255, 0.225f * 255}, {1, 3, 1, 1});
  return (input - mean) / std;
}

// Computes and stores the average and current value.
struct AverageMeter {
  double val = 0, avg = 0, sum = 0;
  std::int64_t count = 0;
  void update(double value, std::int64_t n = 1) {
    val = value;
    sum += val * static_cast<double>(n);
    count += n;
    avg = sum / static_cast<double>(count);
  }
};

// The precision@k for the specified values of k, in percent.
std::vector<double> accuracy(const Tensor& output, const Tensor& target,
                             const std::vector<std::int64_t>& topk) {
  const NoGrad no_grad;
  const std::int64_t maxk = std::ranges::max(topk), batch_size = target.dim(0).max();
  const Tensor pred = slice(argsort(output, 1, true), 1, 0, maxk);
  const Tensor correct = equal(pred, reshape(target, {batch_size, 1}));
  std::vector<double> res;
  for (const std::int64_t k : topk) {
    const Tensor correct_k = sum(cast(slice(correct, 1, 0, k), DType::F32));
    res.push_back(correct_k.item() * 100.0 / static_cast<double>(batch_size));
  }
  return res;
}

// LR schedule that should yield 76% converged accuracy with batch size 256: warm-up over 5 epochs,
// a tenth of the rate behind epochs 30, 60 and 80.
scalar::ScheduleRule learning_rate(std::int64_t len_epoch) {
  return {.kind = scalar::ScheduleKind::MultiStep,
          .warmup = 5 * len_epoch,
          .milestones = {30 * len_epoch, 60 * len_epoch, 80 * len_epoch}};
}

using Net = amp::Net<models::ResNet>;

void train(Loader& train_loader, const Net& model, Optimizer& optimizer, int epoch) {
  AverageMeter losses, top1, top5;
  // switch to train mode
  model->train();
  int i = 0;
  for (auto [input, target] : train_loader) {
    ++i;
    // compute output
    const Tensor output = model(normalized(input));
    const Tensor loss = cross_entropy(output, target);

    // compute gradient and do SGD step
    optimizer.zero_grad();
    {
      auto scaled_loss = amp::scale_loss(loss, optimizer);
      scaled_loss.backward();
    }
    amp::step(optimizer);

    if (i % print_freq == 0) {
      const std::int64_t n = target.dim(0).max();
      const std::vector<double> prec = accuracy(output, target, {1, 5});
      losses.update(loss.item(), n);
      top1.update(prec[0], n);
      top5.update(prec[1], n);
      fmt::print(
          "Epoch: [{}][{}]\tLoss {:.10f} ({:.4f})\tPrec@1 {:.3f} ({:.3f})\tPrec@5 {:.3f} "
          "({:.3f})\n",
          epoch, i, losses.val, losses.avg, top1.val, top1.avg, top5.val, top5.avg);
    }
  }
}

double validate(Loader& val_loader, const Net& model) {
  AverageMeter losses, top1, top5;
  // switch to evaluate mode
  model->eval();
  const NoGrad no_grad;
  for (auto [input, target] : val_loader) {
    // compute output
    const Tensor output = model(normalized(input));
    const Tensor loss = cross_entropy(output, target);
    // measure accuracy and record loss
    const std::vector<double> prec = accuracy(output, target, {1, 5});
    const std::int64_t n = target.dim(0).max();
    losses.update(loss.item(), n);
    top1.update(prec[0], n);
    top5.update(prec[1], n);
  }
  fmt::print(" * Prec@1 {:.3f} Prec@5 {:.3f}\n", top1.avg, top5.avg);
  return top1.avg;
}

int main(int argc, char** argv) {
  const Args args = parse(argc, argv);
  manual_seed(0);
  const Shape image{3, crop_size, crop_size};
  Loader train_loader(images(512, 1), {.batch = args.batch_size, .seed = 1}, image);
  Loader val_loader(images(128, 2), {.batch = args.batch_size, .shuffle = false}, image);
  const std::int64_t len_epoch = 512 / args.batch_size;

  // create model
  models::ResNet resnet18({.classes = classes, .width = 8});

  // Scale learning rate based on global batch size
  const double lr = args.lr * static_cast<double>(args.batch_size) / 256.;
  const optim::Sgd sgd{.lr = lr,
                       .momentum = args.momentum,
                       .weight_decay = args.weight_decay,
                       .schedule = learning_rate(len_epoch)};

  // Initialize Amp. Amp accepts either values or strings for the optional override arguments.
  auto [model, optimizer] = amp::initialize(resnet18, sgd,
                                            {.opt_level = args.opt_level,
                                             .keep_batchnorm_fp32 = args.keep_batchnorm_fp32,
                                             .loss_scale = args.loss_scale});

  const Path folder = args.resume.value_or(std::filesystem::temp_directory_path() /
                                           fmt::format("aloft-imagenet-{}", getpid()));
  double best_prec1 = 0;
  {
    Checkpoints checkpoints(folder);
    // Resume from a checkpoint, where there is one.
    LoopPosition at = checkpoints.load(resnet18, optimizer).value_or(LoopPosition{});
    train_loader.seek(at.data_position);
    for (int epoch = static_cast<int>(at.step); epoch < args.epochs; ++epoch) {
      // train for one epoch
      train(train_loader, model, optimizer, epoch);

      // evaluate on validation set
      const double prec1 = validate(val_loader, model);

      // remember best prec@1 and save checkpoint
      const bool is_best = prec1 > best_prec1;
      best_prec1 = std::max(prec1, best_prec1);
      at = {epoch + 1, train_loader.position()};
      checkpoints.save(at, resnet18, optimizer);
      if (is_best) models::save_state(folder / "model_best.safetensors", resnet18);
    }
  }
  if (!args.resume) std::filesystem::remove_all(folder);
  return best_prec1 >= 60 ? 0 : 1;
}
