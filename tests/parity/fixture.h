// Fixtures made by the outside judges (tools/judge), and the measure they are compared with.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ops/host_array.h"

namespace aloft::parity {

using Json = nlohmann::json;
using Arrays = std::map<std::string, HostArray>;

// `path` is below tests/fixtures; tests run in the repository's root.
Json read_json(const std::string& path);
Arrays read_arrays(const std::string& path);

// NAME.json's "cases" and NAME.safetensors.
struct Fixture {
  Json info;
  Arrays arrays;
  explicit Fixture(const std::string& name)
      : info(read_json(name + ".json")), arrays(read_arrays(name + ".safetensors")) {}
  const Json& cases() const { return info.at("cases"); }
};

// Largest difference over the largest magnitude of `want` (of `got` where `want` is all zero).
// Infinite where shapes differ or a difference is not finite, as the two below.
double error_of(const HostArray& got, const HostArray& want);
// The length of the difference over that of `want`: sees a row that is wrong.
double norm_error(const HostArray& got, const HostArray& want);
// The worst element: its difference over its own magnitude and what its row and its column lead one
// to expect, the product of their root mean squares over that of `want` (rows along the last axis).
// A gradient of weights is a sum of products of a row's and a column's numbers, and its rounding
// errors are of that size: a small row is judged as a small one, however large another is. What has
// one row or one column is judged by its root mean square.
double element_error(const HostArray& got, const HostArray& want);

double root_mean_square(const HostArray& a);

// What every judge of a gradient must notice, with names for messages: zeros in its place, twice
// it, its negative, and numbers of its length drawn without regard to it. Of these the part along
// `right` is taken away, which a draw has by chance, and of few numbers much.
std::vector<std::pair<std::string, HostArray>> wrong_gradients(const HostArray& right);
// What a judge of low precision must notice besides: the largest element doubled among right ones,
// and its row as zeros.
std::vector<std::pair<std::string, HostArray>> wrong_elements(const HostArray& right);

// Judges a run in bf16 or f16 by what PyTorch's own runs in that type are off by, tensor by tensor.
// Two runs that round at places of their own are off by errors of one distribution: what is twice
// as far off in the norm, or has an element that is three times as far off as PyTorch's worst, was
// computed wrongly.
class LowJudge {
 public:
  static constexpr double kNorm = 2, kElement = 3;
  // No limit of a norm is above this, however far off PyTorch's own runs are. A gradient of zeros
  // is off by 1, as a doubled one is, and what has nothing to do with the right one is off by more:
  // within a limit L its cosine with the right one is at least sqrt(1 - L * L), 0.71 here.
  static constexpr double kMostNorm = 0.7;

  // `expected`: a model's expected.json.
  LowJudge(const Json& expected, DType low);
  double own_norm_error(const std::string& name) const { return norm_.at(name); }
  // "", or by which measure `got` is too far off. `norm_cap` bounds the limit of the norm.
  std::string problem(const std::string& name, const HostArray& got, const HostArray& want,
                      double norm_cap = kMostNorm) const;
  // The norm alone, which may be off by `limit`, or by what `problem` allows, and kMostNorm at
  // most.
  std::string norm_problem(const std::string& name, const HostArray& got, const HostArray& want,
                           double limit) const;
  // The loss is a mean of `rows` cross entropies. Each is off by the error of its logits times
  // (p - y), whose length is at most sqrt(2); errors of rows are independent, and 3.5 deviations
  // are allowed.
  double loss_limit(const HostArray& logits, const HostArray& loss, std::int64_t rows) const;

 private:
  std::map<std::string, double> norm_, element_;
};

}  // namespace aloft::parity
