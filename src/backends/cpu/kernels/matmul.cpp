// matmul: few rows read B where it lies, the rest runs on the grid of tiles.
#include "backends/cpu/matmul/matmul_call.h"
#include "backends/cpu/matmul/wide_matmul.h"

namespace aloft::cpu {
namespace {

MatmulCall read(const CallSpec& call) {
  MatmulCall product;
  read_matmul(call, &product);
  return product;
}

std::optional<Refusal> accepts_few_rows(const CallSpec& call) {
  MatmulCall product;
  if (auto refusal = read_matmul(call, &product)) return refusal;
  return refuse_wide(product);
}

std::optional<Refusal> accepts_form(const CallSpec& call) {
  if (auto refusal = refuse_form(call)) return refusal;
  return read_matmul(call, nullptr);
}

}  // namespace

std::vector<Kernel> matmul_kernels() {
  return {{.name = "cpu.matmul.few_rows",
           .op = "matmul",
           .accepts = accepts_few_rows,
           .prepare = [](const CallSpec& call) { return prepare_skinny(read(call)); }},
          {.name = "cpu.matmul.split",
           .op = "matmul",
           .accepts = accepts_form,
           .prepare = [](const CallSpec& call) { return prepare_product(read(call)); },
           .forms = kFormsOfF32},
          {.name = "cpu.matmul",
           .op = "matmul",
           .accepts = [](const CallSpec& call) { return read_matmul(call, nullptr); },
           .prepare = [](const CallSpec& call) { return prepare_product(read(call)); }},
          {.name = "cpu.matmul.f64",
           .op = "matmul",
           .accepts =
               [](const CallSpec& call) { return read_matmul(call, nullptr, Precision::Double); },
           .prepare =
               [](const CallSpec& call) {
                 MatmulCall product;
                 read_matmul(call, &product, Precision::Double);
                 return prepare_wide(product);
               }}};
}

}  // namespace aloft::cpu
