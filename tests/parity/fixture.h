// Fixtures made by the outside judges (tools/judge), and the measure they are compared with.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

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
// Infinite where shapes differ or a difference is not finite.
double error_of(const HostArray& got, const HostArray& want);

}  // namespace aloft::parity
