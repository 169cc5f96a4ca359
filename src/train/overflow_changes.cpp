#include "train/overflow_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/json_number.h"
#include "base/text.h"
#include "frontend/amp.h"
#include "frontend/description.h"
#include "frontend/programs.h"
#include "frontend/random.h"
#include "observe/probe/operands.h"
#include "observe/probe/overflow.h"
#include "observe/probe/record.h"
#include "ops/evaluate.h"
#include "precision/recipe_words.h"
#include "train/overflow_origin.h"
#include "train/recorded_run.h"
#include "train/step_maker.h"

namespace aloft {

namespace {

using Json = nlohmann::ordered_json;

std::vector<std::int64_t> index_of(const std::vector<std::int64_t>& shape, std::int64_t flat) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = shape[axis] > 0 ? flat % shape[axis] : 0;
    flat /= std::max<std::int64_t>(shape[axis], 1);
  }
  return index;
}

// --- the values that made it

// The element of an operand that the result's element is made of, where there is just one: of a
// product, or of a sum, there is none, whatever the shapes.
std::optional<double> element_for(const HostArray& operand, const HostArray& result,
                                  std::int64_t at) {
  if (operand.values.empty() || operand.rank() > result.rank()) return std::nullopt;
  const int lead = result.rank() - operand.rank();
  for (int d = 0; d < operand.rank(); ++d)
    if (operand.shape[d] != 1 && operand.shape[d] != result.shape[lead + d]) return std::nullopt;
  return operand[BroadcastIndex(operand.shape, result.shape)(at)];
}

Json largest_of(const HostArray& a) {
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (std::abs(a[i]) > std::abs(a[at])) at = i;
  return {{"value", json_number(a[at])}, {"index", index_of(a.shape, at)}};
}

// In double, and rounded nowhere: whether the number is beyond the type's end, or none at all.
std::optional<double> meant(const OverflowOrigin::Call& call, std::size_t result, std::int64_t at) {
  constexpr double kMostFlops = 2e9;  // seconds
  const OpDef* op = find_op(call.op);
  if (!op) return std::nullopt;
  std::vector<TensorType> in, out;
  for (const HostArray& a : call.in) in.push_back({a.dtype, Shape::of(a.shape)});
  for (const HostArray& a : call.out) out.push_back({a.dtype, Shape::of(a.shape)});
  if (op->cost(call.attrs, in, out).flops > kMostFlops) return std::nullopt;
  return evaluate_op(*op, call.attrs, call.in)[result][at];
}

Json values_of(const OverflowOrigin::Call& call, std::size_t result) {
  const HostArray& made = call.out[result];
  const OpDef* const op = find_op(call.op);
  const bool is_elementwise = op && op->fusion == Fusion::Elementwise;
  std::int64_t at = 0;
  while (at < made.numel() && std::isfinite(static_cast<double>(made[at]))) ++at;
  if (at == made.numel()) return nullptr;
  Json values = {{"index", index_of(made.shape, at)}, {"value", json_number(made[at])}};
  if (const auto exact = meant(call, result, at)) values["in_double"] = json_number(*exact);
  if (is_float(made.dtype)) values["largest_of_type"] = edges_of(made.dtype).largest;
  values["operands"] = Json::array();
  for (const HostArray& operand : call.in) {
    if (!is_float(operand.dtype) || operand.values.empty()) continue;
    Json one = {{"type", std::string(name_of(operand.dtype)) + Shape::of(operand.shape).str()},
                {"largest", largest_of(operand)}};
    if (const auto there = element_for(operand, made, at); there && is_elementwise)
      one["there"] = json_number(*there);
    values["operands"].push_back(std::move(one));
  }
  return values;
}

// --- why it has its type

}  // namespace

nlohmann::ordered_json overflow_decision(const std::vector<DecisionRecord>& decisions,
                                         const Json& first) {
  const std::string op = first.value("op", ""), module = first.value("module", ""),
                    phase = first.value("phase", "");
  for (const bool by_module : {false, true})  // a fused call is decided as what lies in its module
    for (const DecisionRecord& d : decisions)
      if (d.decision.applies && d.path.str() == module && name_of(d.phase) == phase &&
          (by_module || d.op.str() == op))
        return {{"op", d.op.str()},
                {"type", std::string(recipe_word(d.decision.store))},
                {"computed_in", std::string(recipe_word(d.decision.compute))},
                {"reason", in_recipe_words(text_of(d.decision.reason))}};
  return nullptr;
}

namespace {

// --- changes

struct Change {
  std::string text;   // as a recipe has it
  std::string means;  // what it costs
  PrecisionRecipe precision;
};

std::string in_list(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& w : words) quoted.push_back("\"" + w + "\"");
  return "[" + join(quoted, ", ") + "]";
}

Change wide_layer(const PrecisionRecipe& now, const std::string& module) {
  PrecisionRecipe p = now;
  p.fp32_layers.emplace_back(listed_layer(module));
  return {"precision.fp32_layers = " + in_list(p.fp32_layers),
          "this layer computes in fp32: its products take as long as fp32's, and what it keeps for "
          "the backward pass twice the bytes",
          p};
}

Change denied_op(const PrecisionRecipe& now, const std::string& op) {
  PrecisionRecipe p = now;
  p.deny_ops.push_back(op);
  return {"precision.deny_ops = " + in_list(p.deny_ops),
          "every " + op + " of the model computes in fp32", p};
}

Change in_bf16(const PrecisionRecipe& now) {
  PrecisionRecipe p = now;
  p.low = DType::BF16;
  p.forward = p.backward = std::nullopt;
  p.fp16_layers.clear();
  p.scale = ScalePolicy::Auto;
  return {fmt::format("precision.level = \"{}:bf16\"", name_of(now.level)),
          "the range of fp32, and 8 bits of a number instead of 11; no loss scale is needed", p};
}

Change lower_scale(const PrecisionRecipe& now, double scale) {
  PrecisionRecipe p = now;
  if (p.scale != ScalePolicy::Fixed) p.scale = ScalePolicy::Dynamic;
  p.scale_values = scalar::dynamic_scaler();
  p.scale_values.init = static_cast<float>(scale);
  return {fmt::format("precision.loss_scale = {{ kind = \"dynamic\", init = {:g} }}", scale),
          fmt::format("gradients below {:.1e} become 0 in fp16; a dynamic scale comes down to this "
                      "by itself, a skipped step for each half",
                      std::ldexp(1.0, -25) / scale),
          p};
}

Change all_in_fp32() {
  return {"precision = \"O0\"",
          "everything in fp32: as slow and as large as that is; where this does not help either, "
          "the numbers are too large for any type: look at the learning rate and the data",
          PrecisionRecipe{}};
}

class Trying {
 public:
  Trying(RecordedRun& run, const Json& found) : run_(run), first_(found.at("first")) {
    scale_ = found.value("loss_scale", 1.0);
    for (const VariablePtr& v : variables_of(run.session().model(), *run.session().optimizer))
      values_[v->name.str()] = {v->type, v->bytes()};
    random_ = random_numbers();
  }

  Json all() {
    Json tried = Json::array();
    const PrecisionRecipe& now = run_.session().recipe.precision;
    const std::string type = first_.value("dtype", ""), phase = first_.value("phase", "");
    const bool is_low = type != "torch.float32", is_f16 = type == "torch.float16";
    if (is_low && first_.contains("module")) {
      const std::string op = first_["op"].get<std::string>();
      add_if_it_acts(tried, wide_layer(now, first_["module"].get<std::string>()));
      // A cast goes where what it feeds is decided: no list of ops has it.
      if (op != "cast") add_if_it_acts(tried, denied_op(now, op));
    }
    if (is_f16) tried.push_back(outcome(in_bf16(now)));
    if (phase != name_of(Phase::Forward) && scale_ > 1) tried.push_back(lower_scales(now));
    if (now.level != Level::O0) tried.push_back(outcome(all_in_fp32()));
    return tried;
  }

 private:
  // A change behind which the same call overflows in the same type has changed nothing of it.
  void add_if_it_acts(Json& tried, const Change& change) {
    Json first;
    Json said = outcome(change, &first);
    // By what it does and where: with all that is looked at its name is another one.
    constexpr const char* kSame[] = {"op", "module", "phase", "dtype"};
    const bool is_same = first.is_object() && std::ranges::all_of(kSame, [&](const char* key) {
                           return first.value(key, "") == first_.value(key, "");
                         });
    if (!is_same) tried.push_back(std::move(said));
  }

  // The largest power of two of some that works, of at most 1 in 2^24.
  Json lower_scales(const PrecisionRecipe& now) {
    Json last;
    for (double scale = std::exp2(std::floor(std::log2(scale_ / 4)));
         scale >= std::max(1.0, scale_ / 0x1p24); scale /= 4) {
      last = outcome(lower_scale(now, scale));
      if (last.at("works") == true) return last;
    }
    return last.is_null() ? outcome(lower_scale(now, 1)) : last;
  }

  // `found`: what is not finite under it, where one asks.
  Json outcome(const Change& change, Json* found = nullptr) {
    Json said = {{"change", change.text}, {"means", change.means}};
    try {
      Json first = first_with(change.precision);
      said["works"] = first.is_null();
      if (!first.is_null()) said["instead"] = probe::overflow_text(first);
      if (found) *found = std::move(first);
    } catch (const Error& e) {
      if (e.exit_code() == ExitCode::Internal) throw;
      said["works"] = false;
      said["instead"] = "it cannot be: " + e.headline();
    }
    return said;
  }

  // The first value of the step that is not finite, under that precision; null: all are.
  Json first_with(const PrecisionRecipe& precision) {
    Recipe recipe = run_.session().recipe;
    recipe.precision = precision;
    Session session = open_session(recipe, run_.data().facts(recipe), {});
    const auto runner = make_runner(session);
    make_values(session);
    hand_over(session);
    runner->start();
    set_random_numbers(random_);
    begin_draws();
    StepMaker maker(*session.optimizer, recipe.train.accumulate, units_an_example(recipe));
    const auto examples = run_.data().training(recipe, run_.position(), 0);
    maker.make(*runner, *examples, run_.step());
    const Programs& programs = *runner->programs();
    const std::string name = Runner::program_of(look_at(recipe.probe, run_.step()), recipe.probe);
    const auto all = programs.output<double>(name, kAllStatistics);
    const auto read = all.read();
    return probe::OverflowFinder(*programs.plan().find(name)).first({read.data(), read.size()});
  }

  // What the recorded run had before the step: a parameter from what is trained of it. A loss scale
  // is the recipe's own.
  void hand_over(Session& session) const {
    for (const VariablePtr& v : variables_of(session.model(), *session.optimizer)) {
      const std::string name = v->name.str();
      if (name.starts_with("scaler.")) continue;
      std::string own = name;
      if (own.starts_with(amp::kMasterPrefix)) own = own.substr(amp::kMasterPrefix.size());
      for (const std::string& from : {name, std::string(amp::kMasterPrefix) + own, own}) {
        const auto it = values_.find(from);
        if (it == values_.end() || it->second.first.shape != v->type.shape) continue;
        const bool is_same = it->second.first == v->type;
        if (!is_same && !(is_float(it->second.first.dtype) && is_float(v->type.dtype))) continue;
        write(*v, it->second.first, it->second.second);
        break;
      }
    }
  }

  static void write(Variable& v, const TensorType& type, const std::vector<std::byte>& bytes) {
    if (type == v.type) return v.buffer->write_from(bytes);
    HostArray values = HostArray::zeros(type.dtype, type.shape.max_extents());
    load_bytes(values, bytes.data());
    values.dtype = v.type.dtype;
    round_to_dtype(values);
    std::vector<std::byte> own(v.type.max_bytes());
    store_bytes(values, own.data());
    v.buffer->write_from(own);
  }

  RecordedRun& run_;
  const Json& first_;
  double scale_ = 1;
  std::map<std::string, std::pair<TensorType, std::vector<std::byte>>> values_;
  std::array<std::int64_t, 3> random_ = {};
};

// The call as an entry of "found" has its first.
Json described(const OverflowOrigin::Call& call, const Instruction& i) {
  const HostArray& made = call.out[call.result];
  Json out = {{"name", i.identity}, {"op", i.call.op.str()}, {"instruction", call.instruction}};
  out["program"] = call.program;
  out["micro_batch"] = call.micro_batch;
  out["result"] = call.result;
  out["module"] = probe::module_of(i);
  if (!i.members.empty()) out["stands_for"] = i.members;
  out["phase"] = name_of(i.phase);
  out["dtype"] = probe::torch_name(made.dtype);
  out["shape"] = made.shape;
  return out;
}

// Whether the file names the same call: a program is told by its instruction, an eager call by its
// name, or by being one that the instruction stands for.
bool is_named(const Json& first, const OverflowOrigin::Call& call, const Instruction& i,
              const std::string& program) {
  if (first.contains("instruction"))
    return call.program == program && first["instruction"] == call.instruction;
  const std::string name = first.value("call", "");
  return i.identity == name || std::ranges::find(i.members, name) != i.members.end();
}

// Of a call that gives several what the file names, if that is not finite.
std::size_t named_result(const Json& first, const OverflowOrigin::Call& call) {
  const auto result = first.value("result", call.result);
  return result < call.out.size() && !is_finite(call.out[result]) ? result : call.result;
}

std::string joined(const Json& index) {
  std::string text;
  for (const Json& at : index) text += (text.empty() ? "" : ", ") + at.dump();
  return text;
}

std::string shown(const Json& v) {
  return v.is_string() ? v.get<std::string>() : fmt::format("{:.6g}", v.get<double>());
}

// Whether the element itself would have had room.
bool is_within(const Json& v) {
  return v.contains("in_double") && v.contains("largest_of_type") && v["in_double"].is_number() &&
         std::abs(v["in_double"].get<double>()) < v["largest_of_type"].get<double>();
}

}  // namespace

nlohmann::ordered_json overflow_changes(const Path& run, const Json& found,
                                        const std::vector<Override>& overrides) {
  const Json& first = found.at("first");
  RecordedRun recorded(run, found.at("step").get<std::int64_t>(), overrides);
  recorded.go_to_step();
  Json asked = found, seen = first;
  Trying trying(recorded, asked);  // of the state before the step
  OverflowOrigin origin;
  const StateBytes state = recorded.state();
  {
    const Observing looking(recorded.programs().device(), origin);
    recorded.make_step();
  }
  recorded.set_state(state);
  // What all operands say beats what those said that were looked at.
  Json added = {{"first", nullptr}, {"decision", nullptr}, {"values", nullptr}};
  if (const auto& call = origin.found()) {
    const auto& programs = recorded.programs();
    const Instruction& i = programs.plan()
                               .find(call->program)
                               ->instructions.at(static_cast<std::size_t>(call->instruction));
    const ProbeSection& probe = recorded.session().recipe.probe;
    const std::string name = Runner::program_of(look_at(probe, recorded.step()), probe);
    // An eager step has all that its ops took, and calls of which a compiled one has others.
    const bool is_sure = first.contains("call") && first.at("operands_are_finite") == true;
    const bool is_it = is_sure || is_named(first, *call, i, name);
    seen["operands_are_finite"] = is_it;
    if (!is_it) added["origin"] = asked["first"] = described(*call, i);
    added["values"] = values_of(*call, is_it ? named_result(first, *call) : call->result);
  } else {
    seen["operands_are_finite"] = false;
  }
  added["first"] = seen;
  added["decision"] = overflow_decision(recorded.programs().decisions("train"), asked.at("first"));
  added["tried"] = trying.all();
  return added;
}

namespace {
// "mul" of "h.0/mul#0", which a fused op computes with others.
std::string op_in_name(const std::string& name) {
  const std::size_t begin = name.rfind('/') + 1;  // 0 where there is none
  return name.substr(begin, name.find_first_of(".#", begin) - begin);
}
}  // namespace

nlohmann::ordered_json untried_changes(const Json& first) {
  Json all = Json::array();
  const std::string type = first.value("dtype", ""), op = first.value("op", "");
  if (op.empty() || type == "torch.float32" || type == "torch.float64") return all;
  const auto add = [&](const Change& c) {
    all.push_back({{"change", c.text}, {"means", c.means}});
  };
  const PrecisionRecipe plain;  // what the program has beside it, it knows
  if (const std::string module = first.value("module", ""); !module.empty())
    add(wide_layer(plain, module));
  const std::string denied = op == "fused" ? op_in_name(first.value("name", "")) : op;
  if (denied != "cast" && !denied.empty()) add(denied_op(plain, denied));
  if (type != "torch.float16") return all;
  all.push_back({{"change", "precision.level with \":bf16\" behind the level"},
                 {"means", in_bf16(plain).means}});
  if (first.value("phase", "") != name_of(Phase::Forward))
    all.push_back({{"change", "precision.loss_scale with a smaller init"},
                   {"means", "where there is a loss scale: smaller gradients become 0 in fp16"}});
  return all;
}

std::string untried_changes_text(const Json& decision, const Json& not_tried) {
  std::string text;
  if (!decision.is_null())
    text += fmt::format("  {}, because: {}\n", decision.at("type").get<std::string>(),
                        decision.at("reason").get<std::string>());
  for (const Json& change : not_tried)
    text += fmt::format("  not tried: {}\n    {}\n", change.at("change").get<std::string>(),
                        change.at("means").get<std::string>());
  return text;
}

std::string overflow_changes_text(const Json& added) {
  std::string text;
  if (added.contains("origin")) {
    const Json& o = added["origin"];
    text += fmt::format(
        "  made once more, with all that each op takes looked at, it is not finite first in\n"
        "    {}: {} ({}, {}, micro-batch {}): what it took is finite\n",
        o.at("name").get<std::string>(), o.at("op").get<std::string>(),
        o.at("phase").get<std::string>(),
        o.at("dtype").get<std::string>().substr(sizeof("torch.") - 1),
        o.at("micro_batch").get<std::int64_t>());
  } else if (added.at("first").at("operands_are_finite") == false) {
    text += "  made once more, every op that gives what is not finite takes such values\n";
  }
  if (const Json& d = added.at("decision"); !d.is_null())
    text += fmt::format("  {}, because: {}\n", d.at("type").get<std::string>(),
                        d.at("reason").get<std::string>());
  if (const Json& v = added.at("values"); !v.is_null()) {
    text += fmt::format("  the first such element, [{}], is {}", joined(v.at("index")),
                        shown(v.at("value")));
    if (v.contains("in_double")) text += "; in double it is " + shown(v["in_double"]);
    if (v.contains("largest_of_type"))
      text += ", and the type ends at " + shown(v["largest_of_type"]);
    if (is_within(v)) text += ": a number that the op computes on the way is beyond it";
    text += "\n";
    for (const Json& o : v.at("operands")) {
      text += fmt::format("    of {}: the largest is {} at [{}]", o.at("type").get<std::string>(),
                          shown(o.at("largest").at("value")), joined(o.at("largest").at("index")));
      if (o.contains("there")) text += ", there it is " + shown(o["there"]);
      text += "\n";
    }
  }
  text += "  tried on the same step, with its parameters, batch and random numbers:\n";
  for (const Json& t : added.at("tried")) {
    text += fmt::format("    {} {}\n      {}\n", t.at("works") == true ? "works:" : "does not:",
                        t.at("change").get<std::string>(), t.at("means").get<std::string>());
    if (t.contains("instead")) text += fmt::format("      {}\n", t["instead"].get<std::string>());
  }
  return text;
}

}  // namespace aloft
