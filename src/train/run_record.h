// run.json: the resolved recipe, versions, machine, and what the compiler decided.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "frontend/optimizer.h"
#include "frontend/programs.h"
#include "passes/casting_emitter.h"
#include "plan/plan.h"
#include "sources/run_data.h"
#include "train/session.h"

namespace aloft {

// What is known when a run begins: recipe, versions, machine, data, and what the compiler decided
// (`programs` is null in eager mode). `copy`: bytes of the state's copy for checkpoints; 0: there
// is none.
nlohmann::json run_record(const Session& session, const RunData& data, const Programs* programs,
                          const std::string& machine, std::size_t copy = 0);

// The variables of the environment that a run depends on (observe/config_check/variables.inc), of
// those that are set here.
nlohmann::json environment_record();

// What a checkpoint's manifest says of the run, however far it is: model, recipe, precision, data.
void describe_run(CheckpointMeta& meta, const Session& session, const nlohmann::json& data_record);

// Arena sizes, peak, and the bytes alive after each instruction of a program.
nlohmann::json memory_record(const Plan& plan, const std::string& program);

// Which parameters decay: {"decayed": names, "not_decayed": names}.
nlohmann::json decay_record(const Optimizer& optimizer);

// One entry a distinct (path, op, phase): chosen types and reason.
nlohmann::json decisions_record(const std::vector<DecisionRecord>& decisions);

// What was asked for products of f32 other than plain ones ("bf16x6"), and how many calls of the
// program split them or stay plain; null where nothing was asked.
nlohmann::json f32_products_record(const Plan& plan, const std::string& name);

}  // namespace aloft
