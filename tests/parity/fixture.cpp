#include "parity/fixture.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <vector>

#include "files/safetensors.h"

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

}  // namespace aloft::parity
