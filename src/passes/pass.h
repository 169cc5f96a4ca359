// A pass: a free function plus a record. The pipeline does the rest: checks the order when it is
// built, verifies after each pass, times, dumps the text form.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "passes/remark.h"
#include "plan/kernel_choice.h"
#include "types/capability.h"

namespace aloft {

struct DecisionRecord;  // passes/casting_emitter.h

// What a graph may contain; each pass says what it needs and what it makes of it.
enum class Form {
  Traced,          // in logical types: f32 until a precision policy decides
  Cast,            // every node has the types that its precision policy decides
  Differentiated,  // no `gradients` node is left
  Fused,           // rewritten to the ops that run
  Executable,      // every op has a kernel
};

constexpr std::string_view name_of(Form f) {
  constexpr std::string_view names[] = {"traced", "cast", "differentiated", "fused", "executable"};
  return names[static_cast<int>(f)];
}

struct PassContext {
  Form form = Form::Traced;  // of the graph that comes in: passes that give no more are left out
  Capability capability;
  ChooseKernel choose;  // of the back end that the plan is for
  int threads = 1;
  int streams = 1;              // of the device
  int input_homes = 1;          // of each input (PlannedBuffer::homes)
  bool has_host_space = false;  // the device reaches memory of the host that its kernels do not
  std::vector<std::string> optional_taps = {};       // patterns that may mean nothing
  std::vector<DecisionRecord>* decisions = nullptr;  // where given, precision decisions go there
};

// Which calls the plan's back end has kernels for; empty where the context names none.
inline std::function<bool(const CallSpec&)> taker(const PassContext& context) {
  if (!context.choose) return {};
  return [&context](const CallSpec& call) { return !context.choose(call).kernel.empty(); };
}

struct PassReport {
  bool changed = false;
  std::vector<Remark> remarks = {};
};

struct Pass {
  std::string_view name, summary;
  Form needs;                 // at least this form
  std::optional<Form> gives;  // nullopt: keeps the form
  bool keeps_bits;            // results are the same to the bit, the sign of a zero aside
  PassReport (*run)(Graph&, const PassContext&);
  bool on_request = false;  // runs only where PipelineOptions::also names it
};

extern const Pass insert_casts;
extern const Pass mark_taps;
extern const Pass differentiate_pass;
extern const Pass measure_layers;
extern const Pass fuse_head;
extern const Pass fuse_head_gradient;
extern const Pass fuse_embedding_gradient;
extern const Pass fuse_norm;
extern const Pass simplify;
extern const Pass cse;
extern const Pass dce;
extern const Pass expand_bodies;
extern const Pass recompute_elementwise;
extern const Pass fuse_elementwise;
extern const Pass hoist_updates;
extern const Pass take_statistics;

// Removes what nothing reads; shared by passes that leave dead nodes behind. True if any was.
bool remove_dead(Graph& graph);

}  // namespace aloft
