// Regions of torch.autocast: one within another, one that takes casts back, a function that runs in
// a type of its own (custom_fwd), and gradients, which come in the types of what they are of.
//
//   with torch.autocast("cpu", dtype=torch.bfloat16):
//       a = x @ w                                      # bf16
//       with torch.autocast("cpu", enabled=False):
//           b = x @ w                                  # float32
#include <aloft/aloft.h>
#include <fmt/format.h>

using namespace aloft;

bool as_wanted = true;

Tensor note(const char* what, const Tensor& t, DType wanted) {
  fmt::print("{:<44}{}\n", what, name_of(t.dtype()));
  as_wanted = as_wanted && t.dtype() == wanted;
  return t;
}

int main() {
  manual_seed(1);
  nn::Sequential layer;
  layer.add<nn::Linear>(4, 4);
  const Tensor x = full({2, 4}, 0.5);
  // torch.amp.custom_fwd(cast_inputs=torch.float32): a function that wants its precision.
  const auto exact =
      amp::custom_fwd([](const Tensor& a) { return matmul(a, swap_axes(a, 0, 1)); }, DType::F32);

  note("outside", layer(x), DType::F32);
  Tensor loss;
  {
    const amp::autocast outer;  // bf16, as torch's on a CPU
    const Tensor y = note("in a region", layer(x), DType::BF16);
    {
      const amp::autocast inner({.dtype = DType::F16});
      note("in a region of f16 within it", layer(x), DType::F16);
      const amp::autocast off({.enabled = false});
      note("behind a region that is not enabled", layer(x), DType::F32);
      as_wanted = as_wanted && !amp::is_autocast_enabled();
    }
    note("in the outer one again", layer(x), DType::BF16);
    note("of a function with custom_fwd", exact(y), DType::F32);
    note("a sum, which is f32 in every region", sum(y), DType::F32);
    loss = mean(square(cast(y, DType::F32)));
  }
  // custom_bwd has no counterpart: backward() runs each op's gradient in the types of the op, in
  // whatever region it is called.
  const amp::autocast region({.dtype = DType::F16});
  loss.backward();
  note("the gradient of the f32 weight", grad_of(layer.parameters()[0]), DType::F32);
  return as_wanted ? 0 : 1;
}
