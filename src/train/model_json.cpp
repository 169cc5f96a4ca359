#include "train/model_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace aloft {

using nlohmann::json;

json json_of(const models::Gpt2Config& c) {
  return {{"family", "gpt2"},   {"layers", c.layers},    {"heads", c.heads},
          {"dim", c.dim},       {"vocab", c.vocab},      {"context", c.context},
          {"hidden", c.hidden}, {"dropout", c.dropout},  {"bias", c.bias},
          {"tied", c.tied},     {"norm_eps", c.norm_eps}};
}

models::Gpt2Config model_of_json(const json& j) {
  try {
    if (j.at("family") != "gpt2")
      throw DataError("E0642", "the model is of another family").saw(j.at("family").dump());
    models::Gpt2Config c;
    j.at("layers").get_to(c.layers);
    j.at("heads").get_to(c.heads);
    j.at("dim").get_to(c.dim);
    j.at("vocab").get_to(c.vocab);
    j.at("context").get_to(c.context);
    j.at("hidden").get_to(c.hidden);
    j.at("dropout").get_to(c.dropout);
    j.at("bias").get_to(c.bias);
    j.at("tied").get_to(c.tied);
    j.at("norm_eps").get_to(c.norm_eps);
    return c;
  } catch (const json::exception& e) {
    throw DataError("E0642", "the model's description is damaged").saw(e.what());
  }
}

}  // namespace aloft
