// What an op of Aloft's takes, and what the same call takes in the other run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "observe/compare/difference.h"
#include "observe/compare/pairing.h"

namespace aloft::compare {

// Whether one of the two is an op of Aloft's. Its dump has what the op takes as far as somebody
// looked at it, and other programs may cut their work otherwise.
bool is_of_ops(const Entry& npu, const Entry& bench);
// Whether it is a tensor that such a call takes.
bool is_operand(const Entry& npu, const Entry& bench, const Record& r);

// Pairs the operands of such calls, of one size alone. Two ops have them at the same places, a sum
// or product in either order. Beside a function of another program, whose order may be another, as
// many of a size belong together as both have: one is the other one, of several those that are the
// same within what low types and training make of them. `pairs` has all records of `npu`, `taken`
// those of `bench` that have their partners.
void pair_operands(const Entry& npu, const Entry& bench, std::vector<RecordPair>& pairs,
                   std::set<const Record*>& taken);

// Of what a function gives, what it was given in both runs: "; what it takes agrees: Norm 23.3 (0),
// 4.51 (1)"; "" where the dumps have nothing of it in common.
std::string operand_remark(const std::vector<Compared>& all, const Compared& first);

}  // namespace aloft::compare
