#include "infer/model_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace aloft {

using nlohmann::json;

json json_of(const models::Gpt2Config& c) {
  return {{"family", "gpt2"},   {"layers", c.layers},    {"heads", c.heads},
          {"dim", c.dim},       {"vocab", c.vocab},      {"context", c.context},
          {"hidden", c.hidden}, {"dropout", c.dropout},  {"bias", c.bias},
          {"tied", c.tied},     {"norm_eps", c.norm_eps}};
}

namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw DataError("E0642", "the model's description is damaged").saw(what);
}

// A conversion of JSON's would take 1.5 for 1 and -1 for a very large number.
void take(const json& j, const char* key, std::int64_t least, std::int64_t most,
          std::int64_t& into) {
  const json& v = j.at(key);
  if (!v.is_number_integer() || v < least || v > most)
    damaged(fmt::format("{} is {}, not a whole number from {} to {}", key, v.dump(), least, most));
  v.get_to(into);
}

void take(const json& j, const char* key, double least, double most, double& into) {
  const json& v = j.at(key);
  if (!v.is_number() || !(v.get<double>() >= least && v.get<double>() <= most))
    damaged(fmt::format("{} is {}, not a number from {} to {}", key, v.dump(), least, most));
  v.get_to(into);
}

}  // namespace

models::Gpt2Config model_of_json(const json& j) {
  if (j.is_null())
    throw DataError("E0642", "the checkpoint does not describe its model")
        .saw("none, as a program of its own saves it (Checkpoints)")
        .need("one that `aloft train` saved")
        .advice("read its model.safetensors by models::load_state() in that program");
  try {
    if (j.at("family") != "gpt2")
      throw DataError("E0642", "the model is of another family")
          .saw(in_quotes(j.at("family").dump()));
    models::Gpt2Config c;
    take(j, "layers", 1, 1000, c.layers);
    take(j, "heads", 1, 1024, c.heads);
    take(j, "dim", 1, 65536, c.dim);
    take(j, "vocab", 1, 1 << 24, c.vocab);
    take(j, "context", 1, 1 << 20, c.context);
    take(j, "hidden", 0, 1 << 20, c.hidden);
    take(j, "dropout", 0.0, 0.99, c.dropout);
    take(j, "norm_eps", 1e-12, 1.0, c.norm_eps);
    j.at("bias").get_to(c.bias);
    j.at("tied").get_to(c.tied);
    if (c.dim % c.heads != 0) damaged(fmt::format("{} heads do not divide {}", c.heads, c.dim));
    return c;
  } catch (const json::exception& e) {
    damaged(e.what());
  }
}

}  // namespace aloft
