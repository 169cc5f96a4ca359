// What two sides say, held against each other, kind by kind.
#pragma once

#include <string>
#include <vector>

#include "observe/config_check/finding.h"
#include "observe/config_check/side.h"

namespace aloft::config_check {

// Of each a finding where both sides say something of the kind; none where one says nothing.
Section check_environment(const Side& a, const Side& b);  // env
Section check_packages(const Side& a, const Side& b);     // pip
Section check_settings(const Side& a, const Side& b);     // hyperparameters
Section check_batches(const Side& a, const Side& b);      // dataset
Section check_weights(const Side& a, const Side& b);      // weights
Section check_random(const Side& a, const Side& b);       // random

// All of them, in msprobe's order; those that have nothing to say are left out.
std::vector<Section> check_sides(const Side& a, const Side& b);

// The variables of the environment that a run depends on, by all their names.
std::vector<std::string> known_variables();

}  // namespace aloft::config_check
