// Models made, trained, saved, loaded and dropped, again and again, in one process: what it holds
// of memory and descriptors must not grow.
//   faults_api_soak SECONDS
// Prints what it saw, and ends with 1 where something grew: by more than kAllowed between the end
// of the first third and the end, or by a descriptor.
#include <aloft/aloft.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

using namespace aloft;

namespace {

constexpr std::int64_t kAllowed = 8 << 20;  // bytes; the allocator's own, however long it lasts
constexpr int kWarmUp = 12;                 // rounds at least before anything is compared
constexpr int kFeatures = 24, kClasses = 5, kBatch = 8;

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

ArrayData some_samples(unsigned seed) {
  std::mt19937 bits(seed);
  ArrayData data;
  data.features = kFeatures;
  for (int s = 0; s < 5 * kBatch + 3; ++s) {
    for (int f = 0; f < kFeatures; ++f)
      data.values.push_back(static_cast<float>(bits() >> 8) * 0x1p-24f);
    data.labels.push_back(static_cast<int>(bits() % kClasses));
  }
  return data;
}

const char* level(int round) {
  constexpr const char* kLevels[] = {"O0", "O1:bf16", "O2:bf16", "O2:fp16"};
  return kLevels[round % std::size(kLevels)];
}

// One compiled step, on whole batches and a part of one; the file of its state read into a second
// model.
void compiled(int round, const Path& folder) {
  Loader loader(some_samples(1), {.batch = kBatch});
  models::Mlp model({kFeatures, 32, kClasses}, relu);
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, level(round));
  auto step = compile([&net = net, &opt = opt](Tensor x, Tensor label) {
    return minimize(cross_entropy(net(x), label), opt);
  });
  for (const auto& [x, label] : loader) step(x, label);
  const Path file = folder / "state.safetensors";
  models::save_state(file, model);
  models::Mlp other({kFeatures, 32, kClasses}, relu);
  models::load_state(Safetensors::open(file), other);
}

void eager(int round) {
  Loader loader(some_samples(2), {.batch = kBatch});
  models::Mlp model({kFeatures, 16, kClasses}, gelu);
  auto [net, opt] = amp::initialize(model, optim::Momentum{.lr = 0.02}, level(round));
  for (const auto& [x, label] : loader) minimize(cross_entropy(net(x), label), opt);
}

void scaled(int) {
  Loader loader(some_samples(3), {.batch = kBatch});
  models::Mlp model({kFeatures, 16, kClasses}, relu);
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3, .clip_norm = 1.0}, "O1:fp16");
  amp::GradScaler scaler(opt);
  for (const auto& [x, label] : loader) {
    const Tensor loss = cross_entropy(net(x), label);
    scaler.scale(loss).backward();
    scaler.step(loss);
    scaler.update();
  }
}

// Calls that are refused leave nothing behind either.
void refused(int) {
  const Tensor a = from_floats(std::vector<float>(6), {2, 3}), b = from_floats({1, 2}, {2});
  for (const bool traced : {false, true}) {
    try {
      if (traced)
        compile([](Tensor x, Tensor y) { return x + y; })(a, b);
      else
        a + b;
    } catch (const Error&) {
      continue;
    }
    throw InternalError("a wrong call is accepted");
  }
  try {
    Safetensors::open("/dev/null");
  } catch (const Error&) {
    return;
  }
  throw InternalError("an empty file is taken for tensors");
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const Path folder =
      std::filesystem::temp_directory_path() / ("aloft-api-soak-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  int round = 0;
  std::int64_t bytes = 0, files = 0;
  for (; passed() < seconds || round <= 2 * kWarmUp; ++round) {
    manual_seed(static_cast<std::uint64_t>(round));
    compiled(round, folder);
    eager(round);
    scaled(round);
    refused(round);
    if (round == kWarmUp || passed() < seconds / 3) {
      bytes = resident_bytes();
      files = descriptors();
    }
  }
  std::filesystem::remove_all(folder);
  const std::int64_t grown = resident_bytes() - bytes, more = descriptors() - files;
  fmt::print("{} rounds: {} KiB, {} more; {} descriptors, {} more\n", round, bytes >> 10,
             grown >> 10, files, more);
  return grown > kAllowed || more > 0 ? 1 : 0;
}
