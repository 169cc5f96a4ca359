// Made-up data for the examples: ten prototypes of 784 numbers, and noisy copies of them.
#pragma once

#include <aloft/aloft.h>

#include <random>

inline aloft::ArrayData noisy_prototypes(int samples, float noise = 2.0f) {
  constexpr int kFeatures = 784, kClasses = 10;
  std::mt19937 bits(1);
  const auto uniform = [&] { return static_cast<float>(bits() >> 8) * 0x1p-24f - 0.5f; };
  std::vector<float> prototypes(kClasses * kFeatures);
  for (float& v : prototypes) v = uniform();
  aloft::ArrayData data;
  data.features = kFeatures;
  for (int s = 0; s < samples; ++s) {
    const int label = static_cast<int>(bits() % kClasses);
    for (int f = 0; f < kFeatures; ++f)
      data.values.push_back(prototypes[label * kFeatures + f] + noise * uniform());
    data.labels.push_back(label);
  }
  return data;
}
