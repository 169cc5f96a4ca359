#include "parity/fixture.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <vector>

#include "files/safetensors.h"
#include "scalar/philox.h"

namespace aloft::parity {
Json read_json(const std::string& path) {
  std::ifstream file("tests/fixtures/" + path);
  if (!file) throw std::runtime_error("no fixture tests/fixtures/" + path);
  return Json::parse(file);
}

Arrays read_arrays(const std::string& path) {
  Arrays arrays;
  const Safetensors file = Safetensors::open("tests/fixtures/" + path);
  for (const TensorView& t : file.tensors()) {
    std::vector<std::int64_t> shape;
    for (const Dim& d : t.type.shape) shape.push_back(d.max());
    HostArray a = HostArray::zeros(t.type.dtype, std::move(shape));
    load_bytes(a, t.bytes.data());
    arrays.emplace(t.name, std::move(a));
  }
  return arrays;
}

double error_of(const HostArray& got, const HostArray& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.shape != want.shape) return kInfinite;
  double difference = 0, magnitude = 0;
  for (std::int64_t i = 0; i < want.numel(); ++i) {
    const double d = std::abs(got[i] - want[i]);
    if (!std::isfinite(d)) return kInfinite;
    difference = std::max(difference, d);
    magnitude = std::max(magnitude, std::abs(want[i]));
  }
  return magnitude > 0 ? difference / magnitude : difference;
}

double root_mean_square(const HostArray& a) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) sum += a[i] * a[i];
  return a.numel() > 0 ? std::sqrt(sum / static_cast<double>(a.numel())) : 0;
}

namespace {

// got - want; all infinite where shapes differ or a difference is not finite.
HostArray difference_of(const HostArray& got, const HostArray& want) {
  HostArray d = want;
  d.dtype = DType::F64;
  bool is_finite = got.shape == want.shape;
  for (std::int64_t i = 0; is_finite && i < want.numel(); ++i) {
    d[i] = got[i] - want[i];
    is_finite = std::isfinite(double{d[i]});
  }
  if (!is_finite)
    for (HostNumber& x : d.values) x = std::numeric_limits<double>::infinity();
  return d;
}

std::string beyond(const char* measure, double error, double limit) {
  if (error <= limit) return "";
  return std::string(measure) + " is off by " + std::to_string(error) + ", limit " +
         std::to_string(limit);
}

}  // namespace

double norm_error(const HostArray& got, const HostArray& want) {
  const double off = root_mean_square(difference_of(got, want)), size = root_mean_square(want);
  return size > 0 ? off / size : off;
}

double element_error(const HostArray& got, const HostArray& want) {
  const HostArray d = difference_of(got, want);
  const double rms = root_mean_square(want);
  const std::int64_t columns = want.shape.empty() ? 1 : want.shape.back();
  const std::int64_t rows = columns > 0 ? want.numel() / columns : 0;
  std::vector<double> of_row(rows), of_column(columns);
  for (std::int64_t i = 0; i < want.numel(); ++i) {
    const double square = want[i] * want[i];
    of_row[i / columns] += square / static_cast<double>(columns);
    of_column[i % columns] += square / static_cast<double>(rows);
  }
  const bool is_matrix = rms > 0 && rows > 1 && columns > 1;
  double worst = 0;
  for (std::int64_t i = 0; i < want.numel(); ++i) {
    const double expected =
        is_matrix ? std::sqrt(of_row[i / columns] * of_column[i % columns]) / rms : rms;
    const double scale = std::abs(want[i]) + expected;
    worst = std::max(worst, std::abs(d[i]) / (scale > 0 ? scale : rms > 0 ? rms : 1));
  }
  return worst;
}

std::vector<std::pair<std::string, HostArray>> wrong_gradients(const HostArray& right) {
  HostArray zeros = right, doubled = right, negative = right, unrelated = right;
  double along = 0;
  for (std::int64_t i = 0; i < right.numel(); ++i) {
    zeros[i] = 0;
    doubled[i] = 2 * right[i];
    negative[i] = -right[i];
    unrelated[i] = scalar::normal(scalar::RandomKey{4, 0, 0, 0}, i);
    along += unrelated[i] * right[i];
  }
  const double rms = root_mean_square(right);
  along /= static_cast<double>(right.numel()) * rms * rms;
  for (std::int64_t i = 0; i < right.numel(); ++i) unrelated[i] -= along * right[i];
  const double scale = rms / root_mean_square(unrelated);
  for (HostNumber& x : unrelated.values) x = scale * x;
  return {{"zeros", std::move(zeros)},
          {"doubled", std::move(doubled)},
          {"of the other sign", std::move(negative)},
          {"unrelated numbers", std::move(unrelated)}};
}

std::vector<std::pair<std::string, HostArray>> wrong_elements(const HostArray& right) {
  HostArray doubled = right, cut = right;
  const auto most = std::max_element(right.values.begin(), right.values.end(),
                                     [](double a, double b) { return std::abs(a) < std::abs(b); });
  const std::int64_t at = most - right.values.begin(), row = right.numel() / right.shape[0];
  doubled[at] = 2 * right[at];
  std::fill_n(cut.values.begin() + at / row * row, row, HostNumber(0));
  return {{"one element doubled", std::move(doubled)}, {"one row of zeros", std::move(cut)}};
}

LowJudge::LowJudge(const Json& expected, DType low) {
  const std::string of = low == DType::F16 ? "torch_fp16_" : "torch_bf16_";
  norm_ = expected.at(of + "norm_error").get<std::map<std::string, double>>();
  element_ = expected.at(of + "element_error").get<std::map<std::string, double>>();
}

std::string LowJudge::problem(const std::string& name, const HostArray& got, const HostArray& want,
                              double norm_cap) const {
  const std::string norm =
      beyond("the norm", norm_error(got, want), std::min(kNorm * norm_.at(name), norm_cap));
  if (!norm.empty()) return norm;
  return beyond("an element", element_error(got, want), kElement * element_.at(name));
}

std::string LowJudge::norm_problem(const std::string& name, const HostArray& got,
                                   const HostArray& want, double limit) const {
  return beyond("the norm", norm_error(got, want),
                std::min(std::max(limit, kNorm * norm_.at(name)), kMostNorm));
}

double LowJudge::loss_limit(const HostArray& logits, const HostArray& loss,
                            std::int64_t rows) const {
  const double of_a_logit = norm_.at("logits") * root_mean_square(logits);
  return 3.5 * std::sqrt(2) * of_a_logit / std::sqrt(static_cast<double>(rows)) / loss[0];
}

}  // namespace aloft::parity
