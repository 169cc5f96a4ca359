// What an empty parallel region costs: OMP_NUM_THREADS=2 OMP_WAIT_POLICY=active|passive
// regions_bench
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

double region_us() {
  const auto begin = std::chrono::steady_clock::now();
#pragma omp parallel
  {
    asm volatile("" ::: "memory");  // or the region is left out
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

int main() {
  constexpr int kWarm = 1000;
  constexpr int kTimes = 20'000;
  for (int i = 0; i < kWarm; ++i) region_us();
  std::vector<double> us(kTimes);
  for (double& u : us) u = region_us();
  std::sort(us.begin(), us.end());
  std::printf("an empty region: median %.1f us, 99 of 100 below %.1f us\n", us[kTimes / 2],
              us[kTimes - kTimes / 100]);
}
