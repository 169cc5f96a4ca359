// apex's words for functions and ops that run in a type, where O1 governs: decorators, ops by name,
// and a block in which nothing is cast. The model says of each in which type it came out.
//
//   amp.register_float_function(torch, "matmul")
//   @amp.half_function
//   def gate(x, y): ...
//   with amp.disable_casts(): ...
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <map>

using namespace aloft;

std::map<std::string, std::string> types;  // of results, by what they are

Tensor note(const char* what, const Tensor& result) {
  types[what] = name_of(result.dtype());
  fmt::print("{:<38}{}\n", what, types[what]);
  return result;
}

struct Model : nn::Module {
  nn::Linear linear{*this, "linear", 8, 8};

  Tensor operator()(Operand input) const {
    return call(input, [&](const Tensor& x) {  // f32
      const Tensor y = note("a layer at O1", linear(x));
      note("a product, registered as float", matmul(x, x));
      note("softmax, registered as half", softmax(x));
      note("a sum of f16 and f32, promoted", y + x);

      const auto gate = [](const Tensor& a, const Tensor& b) { return sigmoid(a) * b; };
      note("half_function", amp::half_function(gate)(x, y));
      note("float_function", amp::float_function(gate)(y, y));
      note("promote_function", amp::promote_function(gate)(y, x));

      const amp::disable_casts off;  // until the end of the block
      return note("the layer behind disable_casts", linear(x));
    });
  }
};

int main() {
  manual_seed(1);
  amp::Options options{.opt_level = "O1", .verbosity = 0};
  amp::register_float_function(options, "matmul");
  amp::register_half_function(options, "softmax");
  amp::register_promote_function(options, "add");  // which adds in the wider type anyway
  try {
    amp::register_promote_function(options, "softmax");
    return 1;
  } catch (const UserError& error) {
    fmt::print("refused: {}\n\n", error.what());
  }

  Model network;
  const auto model = amp::initialize(network, options);
  model(full({8, 8}, 0.5));
  const std::map<std::string, std::string> wanted = {
      {"a layer at O1", "f16"},
      {"a product, registered as float", "f32"},
      {"softmax, registered as half", "f16"},
      {"a sum of f16 and f32, promoted", "f32"},
      {"half_function", "f16"},
      {"float_function", "f32"},
      {"promote_function", "f32"},
      {"the layer behind disable_casts", "f32"},
  };
  return types == wanted ? 0 : 1;
}
