// MindSpore's precision by lists: what is low, or what is f32, in a network of three kinds of
// layers, compiled and op by op. Both lists at once are refused, as there.
//
//   ms.set_context(mode=ms.PYNATIVE_MODE)
//   net = amp.custom_mixed_precision(net, black_list=amp.get_black_list() + [nn.Dense])
#include <aloft/aloft.h>
#include <aloft/mindspore.h>
#include <fmt/format.h>

#include <map>

using namespace aloft;

using Types = std::map<std::string, std::string>;

struct Network : nn::Module {
  nn::Linear dense{*this, "dense", 8, 8};
  nn::LayerNorm norm{*this, "norm", 8};
  Types* types = nullptr;  // of results, for those who ask

  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) {
      const Tensor a = note("dense", dense(t)), b = note("relu", relu(a));
      return note("softmax", softmax(note("norm", norm(b))));
    });
  }

 private:
  Tensor note(const char* what, const Tensor& t) const {
    if (types) (*types)[what] = name_of(t.dtype());
    return t;
  }
};

template <class Prepare>
Types types_of(const char* form, Prepare prepare) {
  Types types;
  Network network;
  network.types = &types;
  const auto net = prepare(network);
  net(full({2, 8}, 0.5));
  fmt::print("{:<28}", form);
  for (const auto& [what, type] : types) fmt::print("{} {:<6}", what, type);
  fmt::print("\n");
  return types;
}

int main() {
  ms::set_context({.mode = ms::PYNATIVE_MODE, .device_target = "CPU"});
  manual_seed(1);
  const auto white = types_of("white list of dense", [](Network& n) {
    return amp::custom_mixed_precision(n, {.white_list = amp::List{amp::layer<nn::Linear>()}});
  });
  amp::List more = amp::get_white_list();
  more.push_back(amp::op("softmax"));
  const auto longer = types_of("O1's list and softmax", [&](Network& n) {
    return amp::custom_mixed_precision(n, {.white_list = more}, DType::BF16);
  });
  amp::List black = amp::get_black_list();
  black.push_back(amp::op("relu"));
  const auto others = types_of("O2's black list and relu", [&](Network& n) {
    return amp::custom_mixed_precision(n, {.black_list = black});
  });
  const auto level = types_of("auto_mixed_precision, auto",
                              [](Network& n) { return amp::auto_mixed_precision(n, "auto"); });
  bool refused = false;
  try {
    Network network;
    amp::custom_mixed_precision(network, {.white_list = more, .black_list = black});
  } catch (const UserError& error) {
    refused = true;
    fmt::print("refused: {}\n", error.what());
  }
  const bool as_wanted = white.at("dense") == "f16" && white.at("relu") == "f32" &&
                         white.at("softmax") == "f32" && longer.at("dense") == "bf16" &&
                         longer.at("softmax") == "bf16" && longer.at("norm") == "f32" &&
                         others.at("dense") == "f16" && others.at("relu") == "f32" &&
                         others.at("softmax") == "f16" && level.at("dense") == "f16" &&
                         level.at("softmax") == "f32" && refused;
  return as_wanted ? 0 : 1;
}
