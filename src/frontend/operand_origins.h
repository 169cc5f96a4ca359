// What an op's operands are to whoever called the traced function: a refusal names its arguments.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/error.h"
#include "graph/graph.h"

namespace aloft {

// What a program's inputs are called in messages, by their nodes: "argument 1, [0].mask".
using InputTitles = std::map<std::uint32_t, std::string>;

// Of a value that is an input, is computed from inputs, or is a variable's: "argument 1, [0].mask",
// "computed from argument 0", "head.weight". Empty for any other.
std::string origin_of(const Graph& graph, ValueId value, const InputTitles& titles);

// Adds a line for each operand that has an origin: "in 1: argument 1, [0].mask".
void add_origins(Error& refusal, const Graph& graph, std::span<const ValueId> operands,
                 const InputTitles& titles);

}  // namespace aloft
