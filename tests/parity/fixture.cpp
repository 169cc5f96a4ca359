#include "parity/fixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <vector>

namespace aloft::parity {
namespace {

std::vector<char> read_bytes(const std::string& path) {
  std::ifstream file("tests/fixtures/" + path, std::ios::binary);
  if (!file) throw std::runtime_error("no fixture tests/fixtures/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

DType dtype_of(const std::string& name) {
  if (name == "F64") return DType::F64;
  if (name == "F32") return DType::F32;
  if (name == "I64") return DType::I64;
  throw std::runtime_error("fixture of type " + name);
}

}  // namespace

Json read_json(const std::string& path) { return Json::parse(read_bytes(path)); }

Arrays read_arrays(const std::string& path) {
  const std::vector<char> bytes = read_bytes(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const char* data = bytes.data() + sizeof header + header;
  const Json info = Json::parse(bytes.data() + sizeof header, data);
  Arrays arrays;
  for (const auto& [name, entry] : info.items()) {
    if (name == "__metadata__") continue;
    HostArray a = HostArray::zeros(dtype_of(entry.at("dtype")),
                                   entry.at("shape").get<std::vector<std::int64_t>>());
    load_bytes(a, data + entry.at("data_offsets").at(0).get<std::size_t>());
    arrays.emplace(name, std::move(a));
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
