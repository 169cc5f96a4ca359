// Records of dumps as msprobe writes them, made up.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace aloft::compare {

using Json = nlohmann::ordered_json;

inline Json tensor(std::vector<int> shape, double norm, const char* dtype = "torch.float32") {
  return {{"type", "torch.Tensor"}, {"dtype", dtype},        {"shape", shape},
          {"Max", norm / 2},        {"Min", -norm / 2},      {"Mean", 0},
          {"Norm", norm},           {"requires_grad", true}, {"underflowed", 0}};
}

inline Json forward(Json in, Json out, Json parameters = Json::object()) {
  return {{"input_args", Json::array({std::move(in)})},
          {"input_kwargs", Json::object()},
          {"output", Json::array({std::move(out)})},
          {"parameters", std::move(parameters)}};
}

}  // namespace aloft::compare
