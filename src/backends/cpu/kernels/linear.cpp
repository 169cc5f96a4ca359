// linear: x weight^T + bias, the bias added before the one rounding. Few rows read the weight where
// it lies, the rest runs on the grid of tiles.
#include "backends/cpu/matmul/matmul_call.h"
#include "backends/cpu/matmul/wide_matmul.h"

namespace aloft::cpu {
namespace {

MatmulCall read(const CallSpec& call) {
  MatmulCall product;
  read_linear(call, &product);
  return product;
}

std::optional<Refusal> accepts_few_rows(const CallSpec& call) {
  MatmulCall product;
  if (auto refusal = read_linear(call, &product)) return refusal;
  return refuse_wide(product);
}

std::optional<Refusal> accepts_form(const CallSpec& call) {
  if (auto refusal = refuse_form(call)) return refusal;
  return read_linear(call, nullptr);
}

}  // namespace

std::vector<Kernel> linear_kernels() {
  return {{.name = "cpu.linear.few_rows",
           .op = "linear",
           .accepts = accepts_few_rows,
           .prepare = [](const CallSpec& call) { return prepare_skinny(read(call)); }},
          {.name = "cpu.linear.split",
           .op = "linear",
           .accepts = accepts_form,
           .prepare = [](const CallSpec& call) { return prepare_product(read(call)); },
           .forms = kFormsOfF32},
          {.name = "cpu.linear",
           .op = "linear",
           .accepts = [](const CallSpec& call) { return read_linear(call, nullptr); },
           .prepare = [](const CallSpec& call) { return prepare_product(read(call)); }},
          {.name = "cpu.linear.f64",
           .op = "linear",
           .accepts =
               [](const CallSpec& call) { return read_linear(call, nullptr, Precision::Double); },
           .prepare =
               [](const CallSpec& call) {
                 MatmulCall product;
                 read_linear(call, &product, Precision::Double);
                 return prepare_wide(product);
               }}};
}

}  // namespace aloft::cpu
