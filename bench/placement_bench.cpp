// Offset planning on instances of memory allocation: placement_bench FILE.CAPACITY.csv ...
// Rows "id,lower,upper,size", upper excluded; the capacity is the number in the file's name. Prints
// the instance, its lower bound, what plans use by default, and the search under the capacity, with
// seconds each; exits with 1 where an instance is not met. With --write, offsets go to stdout too.
// What it found on the published instances is in docs/decisions/0007-placement-by-search.md.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "plan/lifetime.h"
#include "plan/place_search.h"

namespace {

// Nothing where a row, other than a heading, is no buffer.
std::vector<aloft::Lifetime> read_instance(const std::string& path) {
  std::ifstream file(path);
  std::vector<aloft::Lifetime> out;
  bool is_first = true;
  for (std::string line; std::getline(file, line); is_first = false) {
    long id = 0;
    int lower = 0, upper = 0;
    std::size_t bytes = 0;
    const int fields = std::sscanf(line.c_str(), "%ld,%d,%d,%zu", &id, &lower, &upper, &bytes);
    if (fields == 4 && lower >= 0 && lower < upper)
      out.push_back({lower, upper - 1, bytes});
    else if (!is_first && line.find_first_not_of(" \r") != std::string::npos)
      return {};
  }
  return out;
}

// The number in "A.1048576.csv"; that of the published instances where there is none.
std::size_t capacity_of(const std::filesystem::path& name) {
  const std::string number = name.stem().extension().string();
  const bool is_number =
      number.size() > 1 && number.find_first_not_of("0123456789", 1) == std::string::npos;
  return is_number ? std::strtoull(number.c_str() + 1, nullptr, 10) : 1048576;
}

bool run(const std::string& path, bool write) {
  constexpr std::int64_t kNodes = 6'000'000;
  const std::filesystem::path name(path);
  const std::size_t capacity = capacity_of(name);
  const std::vector<aloft::Lifetime> buffers = read_instance(path);
  if (buffers.empty()) {
    fmt::print(stderr, "{}: no rows id,lower,upper,size\n", path);
    return false;
  }
  const double start = aloft::monotonic_seconds();
  const aloft::Offsets usual = aloft::place(buffers);
  const double between = aloft::monotonic_seconds();
  const auto found = aloft::place_within(buffers, capacity, kNodes);
  const double end = aloft::monotonic_seconds();
  const bool ok = found && !aloft::find_overlap(buffers, *found);
  std::size_t peak = 0;
  for (std::size_t i = 0; ok && i < buffers.size(); ++i)
    peak = std::max(peak, (*found)[i] + buffers[i].bytes);
  fmt::print("{}: {} buffers, capacity {}, lower bound {}, usual {} in {:.2f} s, ",
             name.filename().string(), buffers.size(), capacity, usual.lower_bound, usual.peak,
             between - start);
  fmt::print("search {} in {:.2f} s\n", ok ? std::to_string(peak) : "not met", end - between);
  for (std::size_t i = 0; ok && write && i < buffers.size(); ++i)
    fmt::print("{},{},{},{},{}\n", i, buffers[i].first, buffers[i].last + 1, buffers[i].bytes,
               (*found)[i]);
  return ok && peak <= capacity;
}

}  // namespace

int main(int argc, char** argv) {
  bool write = false, ok = argc > 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--write")
      write = true;
    else
      ok &= run(argv[i], write);
  }
  return ok ? 0 : 1;
}
