// fused: a small program of element-wise ops, and of sums of their results, as one call.
#pragma once

#include "ops/declared.h"

namespace aloft {

struct FusedAttrs {
  std::string program;
  static constexpr auto fields() {
    return FieldList{
        field("program", &FusedAttrs::program, "the steps, as types/step_program.h writes them")};
  }
};

// The outputs of the program on `in`; a step is an op of the table whose fusion is not Opaque.
std::vector<Tensor> fused(const std::string& program, const std::vector<Tensor>& in);

}  // namespace aloft
