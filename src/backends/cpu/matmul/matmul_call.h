// Reads a matmul or linear call: shapes, transposes and symbols become one batched product.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/cpu/matmul/matmul_grid.h"
#include "runtime/kernel.h"
#include "types/call.h"

namespace aloft::cpu {

struct MatmulCall {
  MatmulSpec spec;  // at the symbols' bounds
  Extent batch, m, k;
  int bias = -1;  // index among the inputs, or none
  MatmulActual actual(const RunArgs& args) const {
    return {batch.at(args.symbols), m.at(args.symbols), k.at(args.symbols)};
  }
};

// What a kernel computes in: f32, of operands up to f32; or double, of f64.
enum class Precision : std::uint8_t { Single, Double };

// Why the call cannot be read (a type, a symbol inside a row), or nullopt. What was read goes to
// `into` unless it is null.
std::optional<Refusal> read_matmul(const CallSpec& call, MatmulCall* into,
                                   Precision precision = Precision::Single);
std::optional<Refusal> read_linear(const CallSpec& call, MatmulCall* into,
                                   Precision precision = Precision::Single);

// Why a call runs on no kernel for products of f32 in other forms: it does not ask for one, or
// there are no bf16 matrix units here, where the same product runs in plain f32.
std::optional<Refusal> refuse_form(const CallSpec& call);

// Few enough rows, and one matrix B stored plainly, for skinny_matmul.h; else why not.
std::optional<Refusal> refuse_wide(const MatmulCall& call);

// The same product, B read once where it lies. Only where refuse_wide has nothing to say.
std::unique_ptr<Prepared> prepare_skinny(const MatmulCall& call);

// A prepared product of inputs 0 and 1 (and the bias) into output 0.
std::unique_ptr<Prepared> prepare_product(const MatmulCall& call);

}  // namespace aloft::cpu
