// What it takes to open a folder of Hugging Face, beside reading its files alone:
// load_bench FOLDER [ROUNDS]. Each round reads every byte of the weights' files, into memory that
// it asks for and into memory that is there, and then opens the folder as `aloft generate` does:
// config.json and the index are read and checked, memory is asked for, and the weights are written
// into it, in bf16 and in f32. Prints medians of the rounds (5) and their shares of the first; one
// round before them brings the files into the page cache. The bar for a folder in bf16 that is
// opened in bf16 is 1.1.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "frontend/eager.h"
#include "infer/saved_model.h"
#include "precision/recipe.h"

namespace {

using aloft::Path;

std::vector<Path> weights_of(const Path& folder) {
  std::vector<Path> files;
  for (const Path& file : aloft::list_folder(folder))
    if (file.extension() == ".safetensors") files.push_back(file);
  return files;
}

// Every byte, into `memory`, or into some that is asked for anew, as a model's is.
double read_all(const std::vector<Path>& files, char* memory = nullptr) {
  const double start = aloft::monotonic_seconds();
  for (const Path& path : files) {
    const std::uint64_t size = aloft::size_of_file(path);
    const auto fresh = std::make_unique_for_overwrite<char[]>(memory ? 0 : size);
    char* const to = memory ? memory : fresh.get();
    const aloft::InputFile file(path);
    for (std::uint64_t at = 0; at < size;) {
      const std::size_t read = file.read_at(at, {to + at, size - at});
      if (read == 0) break;
      at += read;
    }
  }
  return aloft::monotonic_seconds() - start;
}

double opened(const Path& folder, const std::optional<aloft::PrecisionRecipe>& precision) {
  const double start = aloft::monotonic_seconds();
  const aloft::SavedModel model = aloft::open_saved_model(folder, "", false, precision);
  return aloft::monotonic_seconds() - start;
}

double median(std::vector<double> of) {
  std::ranges::sort(of);
  return of[of.size() / 2];
}

void run(const Path& folder, int rounds) {
  const std::vector<Path> files = weights_of(folder);
  double bytes = 0;
  for (const Path& file : files) bytes += static_cast<double>(aloft::size_of_file(file));
  aloft::PrecisionRecipe low;
  low.level = aloft::Level::O3;
  low.low = aloft::DType::BF16;
  std::uint64_t largest = 0;
  for (const Path& file : files) largest = std::max(largest, aloft::size_of_file(file));
  std::vector<char> memory(largest, 1);
  std::vector<double> read, again, own, wide;
  for (int i = 0; i <= rounds; ++i) {
    const double a = read_all(files), b = read_all(files, memory.data());
    const double c = opened(folder, low), d = opened(folder, std::nullopt);
    if (i == 0) continue;
    read.push_back(a), again.push_back(b), own.push_back(c), wide.push_back(d);
  }
  const double base = median(read);
  fmt::print("{}: {:.1f} MiB, medians of {} rounds\n", folder.string(), bytes / (1 << 20), rounds);
  const auto line = [&](const char* what, double seconds) {
    fmt::print("{:24} {:9.1f} ms {:8.2f} GB/s of the file {:6.2f} of reading\n", what,
               seconds * 1e3, bytes / seconds / 1e9, seconds / base);
  };
  line("reading the files", base);
  line("reading, the same memory", median(again));
  line("opened in bf16", median(own));
  line("opened in f32", median(wide));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  if (argc < 2 || rounds < 1) {
    fmt::print(stderr, "load_bench FOLDER [ROUNDS]\n");
    return 2;
  }
  aloft::use_device(aloft::cpu_device());
  try {
    run(argv[1], rounds);
  } catch (const aloft::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 3;
  }
}
