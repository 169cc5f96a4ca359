// Runs a fuzz target without a fuzzer: every file of a folder, and fixed mutations of each. The
// same inputs on every machine, so a failure here can be repeated.
//   fuzz_NAME FOLDER MUTATIONS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

// One small change: a byte, a bit, a cut, a repeat, a number's extreme, or a piece of another seed.
void mutate(std::string& input, const std::vector<std::string>& seeds, std::mt19937& random) {
  auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const std::size_t at = below(input.size() + 1), length = below(16) + 1;
  const std::string& other = seeds[below(seeds.size())];
  static const std::string extremes[] = {std::string(8, '\xff'),
                                         std::string(8, '\0'),
                                         std::string("\xff\xff\xff\xff\xff\xff\xff\x7f"),
                                         "-1",
                                         "99999999999999999999",
                                         "nan"};
  switch (random() % 7) {
    case 0:
      input.insert(at, 1, static_cast<char>(random()));
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(random());
      break;
    case 2:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
      break;
    case 3:
      input.erase(std::min(at, input.size()), length);
      break;
    case 4:
      input.insert(at, input.substr(at, length));
      break;
    case 5: {
      const std::string& e = extremes[random() % std::size(extremes)];
      input.replace(at, random() % 2 ? e.size() : 0, e);
      break;
    }
    default:
      input.insert(at, other.substr(below(other.size()), length * 2));
      break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::string> seeds;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) seeds.push_back(aloft::read_file(file));
  if (seeds.empty()) return 2;
  const int mutations = std::atoi(argv[2]);
  std::mt19937 random(1);
  run("");
  for (const std::string& seed : seeds) {
    run(seed);
    for (int i = 0; i < mutations; ++i) {
      std::string input = seed;
      for (unsigned n = random() % 6 + 1; n > 0; --n) mutate(input, seeds, random);
      run(input);
    }
  }
  std::printf("%zu seeds, %d mutations each\n", seeds.size(), mutations);
}
