// A Plan as JSON and back. What is read is not trusted: every index, offset and size is checked
// before anything could be allocated or addressed from it.
#include "base/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "plan/plan.h"
#include "types/step_program.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr int kFormat = 2;
constexpr int kFormatWithoutStreams = 1;  // all else is the same
// Far above any machine's memory, far below where a sum of two could wrap.
constexpr std::size_t kMostBytes = std::size_t{1} << 56;

[[noreturn]] void refuse(const std::string& what) {
  throw DataError("E0640", "the text is not a usable plan")
      .saw(what)
      .advice("write the plan again with this version of Aloft");
}

json json_of(const BufferRef& r) { return json::array({r.buffer, r.type.str()}); }

json json_of(const std::vector<BufferRef>& list) {
  json out = json::array();
  for (const BufferRef& r : list) out.push_back(json_of(r));
  return out;
}

json json_of(const std::vector<NamedRef>& list) {
  json out = json::array();
  for (const NamedRef& r : list)
    out.push_back({{"name", r.name}, {"ref", json_of(r.ref)}, {"tap", r.is_tap}});
  return out;
}

// What is as it mostly is goes without saying.
void put_placement(json& out, const Placement& p) {
  out["offset"] = p.offset;
  if (p.space != Space::Device) out["space"] = name_of(p.space);
  if (p.layout != Layout::Dense) out["layout"] = name_of(p.layout);
  if (p.shard.count > 1) out["shard"] = {p.shard.index, p.shard.count};
}

json json_of(const Instruction& i) {
  json out = {{"op", i.call.op.str()},
              {"attrs", i.call.attrs.str()},
              {"kernel", i.kernel},
              {"in", json_of(i.in)},
              {"out", json_of(i.out)},
              {"scratch", i.scratch},
              {"identity", i.identity},
              {"path", i.path},
              {"file", i.file},
              {"line", i.line},
              {"phase", name_of(i.phase)},
              {"refusals", i.refusals}};
  if (i.call.form != ProductForm::Plain) out["asked_form"] = name_of(i.call.form);
  if (i.form != ProductForm::Plain) out["form"] = name_of(i.form);
  if (!i.members.empty()) out["members"] = i.members;
  if (i.stream != 0) out["stream"] = i.stream;
  if (!i.waits.empty()) out["waits"] = i.waits;
  if (i.signals >= 0) out["signals"] = i.signals;
  if (i.copy) out["copy"] = {i.copy->from, i.copy->to};
  return out;
}

json json_of(const Program& p) {
  json out = {{"name", p.name},
              {"bounds", p.bounds},
              {"inputs", json_of(p.inputs)},
              {"outputs", json_of(p.outputs)},
              {"activation_lower_bound", p.activation_lower_bound}};
  for (json* list : {&out["symbols"], &out["buffers"], &out["instructions"]}) *list = json::array();
  for (Name s : p.symbols) out["symbols"].push_back(s.str());
  for (const PlannedBuffer& b : p.buffers) {
    out["buffers"].push_back({{"name", b.name},
                              {"arena", name_of(b.arena)},
                              {"bytes", b.bytes},
                              {"first", b.first},
                              {"last", b.last}});
    put_placement(out["buffers"].back(), b.placement);
    if (b.homes > 1) out["buffers"].back()["homes"] = b.homes;
  }
  for (const Instruction& i : p.instructions) out["instructions"].push_back(json_of(i));
  return out;
}

// One of `all` by its name.
template <class E, class All>
E enumerator(const json& text, const All& all) {
  const std::string name = text.get<std::string>();
  for (const E e : all)
    if (name_of(e) == name) return e;
  refuse("'" + name + "' where a known word belongs");
}

// A value for a message. Nested values go by their kind: writing them out would recurse as deep as
// the file nests.
std::string shown(const json& j) { return j.is_structured() ? j.type_name() : j.dump(); }

std::size_t size_from(const json& j) {
  if (!j.is_number_unsigned() && !(j.is_number_integer() && j.get<std::int64_t>() >= 0))
    refuse(shown(j) + " where a size belongs");
  const auto n = j.get<std::uint64_t>();
  if (n > kMostBytes) refuse(j.dump() + " bytes");
  return n;
}

// An integer in [least, most].
int index_from(const json& j, std::int64_t least, std::int64_t most) {
  if (!j.is_number_integer()) refuse(shown(j) + " where an index belongs");
  const bool huge =
      j.is_number_unsigned() &&
      j.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  const std::int64_t n = huge ? -2 : j.get<std::int64_t>();
  if (huge || n < least || n > most)
    refuse("index " + j.dump() + ", outside " + std::to_string(least) + " to " +
           std::to_string(most));
  return static_cast<int>(n);
}

constexpr int kMostShards = 1024, kMostStreams = 64, kMostHomes = 64, kMostEvents = 1 << 24;

ShardIndex shard_from(const json& j) {
  if (!j.is_array() || j.size() != 2) refuse("a shard that is not [index, count]");
  ShardIndex s;
  s.count = index_from(j[1], 2, kMostShards);
  s.index = index_from(j[0], 0, s.count - 1);
  return s;
}

Placement placement_from(const json& j) {
  Placement p;
  p.offset = size_from(j.at("offset"));
  if (j.contains("space"))
    p.space =
        enumerator<Space>(j.at("space"), std::initializer_list<Space>{Space::Device, Space::Host});
  if (j.contains("layout")) p.layout = enumerator<Layout>(j.at("layout"), kAllLayouts);
  if (j.contains("shard")) p.shard = shard_from(j.at("shard"));
  return p;
}

std::size_t room_in(const Plan& plan, const ArenaAt& at) {
  const auto arena = plan.arena_bytes.find(at);
  return arena == plan.arena_bytes.end() ? 0 : arena->second;
}

// "optimizer@1@host", as name_of() writes it.
ArenaAt arena_from(const std::string& text, int devices) {
  ArenaAt at(Arena::Parameters);
  const std::vector<std::string_view> words = split(text, '@');
  at.arena = enumerator<Arena>(json(std::string(words[0])), kAllArenas);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == name_of(Space::Host))
      at.space = Space::Host;
    else
      at.device = static_cast<int>(parse_int(words[i]).value_or(-1));
  }
  if (at.device < 0 || at.device >= devices || name_of(at) != text)
    refuse("the arena '" + text + "'");
  return at;
}

BufferRef ref_from(const json& j, const Program& p) {
  if (!j.is_array() || j.size() != 2) refuse("a reference that is not [buffer, type]");
  BufferRef r;
  r.buffer = index_from(j[0], 0, static_cast<std::int64_t>(p.buffers.size()) - 1);
  r.type = parse_tensor_type(j[1].get<std::string>());
  for (const Dim& d : r.type.shape)
    if (d.max() < 0) refuse("a negative extent: " + r.type.str());
  if (r.type.max_bytes() > p.buffers[r.buffer].bytes)
    refuse(r.type.str() + " in a buffer of " + std::to_string(p.buffers[r.buffer].bytes) +
           " bytes");
  return r;
}

std::vector<NamedRef> named_from(const json& list, const Program& p) {
  std::vector<NamedRef> out;
  for (const json& j : list)
    out.push_back({j.at("name"), ref_from(j.at("ref"), p), j.at("tap").get<bool>()});
  return out;
}

PlannedBuffer buffer_from(const json& j, const Plan& plan, int end) {
  PlannedBuffer b;
  b.name = j.at("name");
  b.arena = enumerator<Arena>(j.at("arena"), kAllArenas);
  b.bytes = size_from(j.at("bytes"));
  b.placement = placement_from(j);
  if (j.contains("homes")) b.homes = index_from(j.at("homes"), 1, kMostHomes);
  b.first = index_from(j.at("first"), 0, end);
  b.last = index_from(j.at("last"), b.first, end);
  const std::size_t room = room_in(plan, b.arena_at());
  if (b.bytes > 0 && b.placement.offset + b.bytes > room)
    refuse("buffer '" + b.name + "' ends at " + std::to_string(b.placement.offset + b.bytes) +
           " of an arena of " + std::to_string(room) + " bytes");
  return b;
}

// A fused call's attribute is text that a kernel will read: it must be a program of the call's
// operands with the call's results.
void check_program(const CallSpec& call) {
  if (call.op != Name(kFusedOp)) return;
  const AttrValue* program = call.attrs.find("program");
  const auto* text = program != nullptr ? std::get_if<std::string>(program) : nullptr;
  if (text == nullptr) refuse("a fused call without a program");
  const StepProgram parsed = parse_step_program(*text, static_cast<int>(call.in.size()));
  if (parsed.out.size() != call.out.size()) refuse("a fused call with other results: " + *text);
}

Instruction instruction_from(const json& j, const Program& p, int threads) {
  Instruction i;
  i.call.op = j.at("op").get<std::string>();
  const std::string attrs = j.at("attrs");
  if (!attrs.empty()) i.call.attrs = parse_attrs(attrs);
  i.call.threads = threads;
  for (const json& r : j.at("in")) i.in.push_back(ref_from(r, p));
  for (const json& r : j.at("out")) i.out.push_back(ref_from(r, p));
  for (const BufferRef& r : i.in) i.call.in.push_back(r.type);
  for (const BufferRef& r : i.out) i.call.out.push_back(r.type);
  check_program(i.call);
  if (j.contains("asked_form"))
    i.call.form = enumerator<ProductForm>(j.at("asked_form"), kAllProductForms);
  if (j.contains("form")) i.form = enumerator<ProductForm>(j.at("form"), kAllProductForms);
  i.kernel = j.at("kernel");
  i.refusals = j.at("refusals").get<std::vector<std::string>>();
  i.scratch = index_from(j.at("scratch"), -1, static_cast<std::int64_t>(p.buffers.size()) - 1);
  i.identity = j.at("identity");
  if (j.contains("members")) i.members = j.at("members").get<std::vector<std::string>>();
  i.path = j.at("path");
  i.file = j.at("file");
  i.line = index_from(j.at("line"), 0, std::numeric_limits<int>::max());
  i.phase = enumerator<Phase>(
      j.at("phase"), std::initializer_list<Phase>{Phase::Forward, Phase::Backward, Phase::Update});
  if (j.contains("stream")) i.stream = index_from(j.at("stream"), 0, kMostStreams);
  if (j.contains("waits"))
    for (const json& event : j.at("waits")) i.waits.push_back(index_from(event, 0, kMostEvents));
  if (j.contains("signals")) i.signals = index_from(j.at("signals"), 0, kMostEvents);
  if ((i.call.op == Name(kCopyOp)) != j.contains("copy")) refuse("a copy that is none");
  if (j.contains("copy")) {
    const json& copy = j.at("copy");
    if (!copy.is_array() || copy.size() != 2) refuse("a copy that is not [from, to]");
    i.copy = Copy{size_from(copy[0]), size_from(copy[1])};
  }
  return i;
}

Program program_from(const json& j, const Plan& plan) {
  Program p;
  p.name = j.at("name");
  for (const json& s : j.at("symbols")) p.symbols.emplace_back(s.get<std::string>());
  constexpr std::int64_t kMostBound = std::numeric_limits<int>::max();
  for (const json& bound : j.at("bounds")) p.bounds.push_back(index_from(bound, 0, kMostBound));
  if (p.bounds.size() != p.symbols.size()) refuse("symbols and bounds that differ in number");
  const json& instructions = j.at("instructions");
  const int end = static_cast<int>(instructions.size());
  for (const json& b : j.at("buffers")) p.buffers.push_back(buffer_from(b, plan, end));
  for (const json& i : instructions) p.instructions.push_back(instruction_from(i, p, plan.threads));
  p.inputs = named_from(j.at("inputs"), p);
  p.outputs = named_from(j.at("outputs"), p);
  p.activation_lower_bound = size_from(j.at("activation_lower_bound"));
  return p;
}

StateSlot slot_from(const json& j, const Plan& plan, std::unordered_set<Name>& ids) {
  StateSlot s;
  s.name = j.at("name").get<std::string>();
  s.id = j.contains("id") ? Name(j.at("id").get<std::string>()) : s.name;
  if (!ids.insert(s.id).second) refuse("two variables with the id '" + s.id.str() + "'");
  s.type = parse_tensor_type(j.at("type").get<std::string>());
  if (!s.type.shape.is_constant()) refuse("a variable of symbolic shape: " + s.name.str());
  s.cls = enumerator<StateClass>(
      j.at("class"), std::initializer_list<StateClass>{StateClass::Parameter, StateClass::Optimizer,
                                                       StateClass::Gradient, StateClass::Buffer,
                                                       StateClass::Control});
  s.requires_grad = j.at("requires_grad").get<bool>();
  s.is_norm = j.at("is_norm").get<bool>();
  s.arena = arena_of(s.cls);
  s.parts.clear();
  if (j.contains("parts"))
    for (const json& part : j.at("parts")) s.parts.push_back(placement_from(part));
  else
    s.parts.push_back(placement_from(j));
  for (std::size_t k = 0; k < s.parts.size(); ++k) {
    const ShardIndex shard = s.parts[k].shard;
    if (shard.index != static_cast<int>(k) || shard.count != static_cast<int>(s.parts.size()))
      refuse("parts of '" + s.name.str() + "' that are not all of them, in their order");
    const std::size_t room = room_in(plan, s.arena_at(k)), bytes = s.range(k).bytes;
    if (bytes > room || s.parts[k].offset > room - bytes)
      refuse("variable '" + s.name.str() + "' lies outside its arena");
  }
  if (s.parts.empty()) refuse("variable '" + s.name.str() + "' lies nowhere");
  return s;
}

Plan read_plan(const json& j) {
  if (!j.is_object() || !j.contains("aloft_plan")) refuse("no \"aloft_plan\"");
  const json& format = j.at("aloft_plan");
  if (format != kFormat && format != kFormatWithoutStreams) refuse("format " + shown(format));
  Plan plan;
  plan.backend = j.at("backend");
  plan.threads = index_from(j.at("threads"), 1, 4096);
  plan.choices = j.at("choices").get<std::map<std::string, std::string>>();
  for (const auto& [name, bytes] : j.at("arenas").items())
    plan.arena_bytes[arena_from(name, kMostShards)] = size_from(bytes);
  std::unordered_set<Name> ids;
  for (const json& s : j.at("state")) plan.state.push_back(slot_from(s, plan, ids));
  for (const json& p : j.at("programs")) plan.programs.push_back(program_from(p, plan));
  return plan;
}

}  // namespace

std::string to_json(const Plan& plan, int indent) {
  json out = {{"aloft_plan", kFormat},   {"backend", plan.backend}, {"threads", plan.threads},
              {"choices", plan.choices}, {"state", json::array()},  {"programs", json::array()}};
  out["arenas"] = json::object();
  for (const auto& [arena, bytes] : plan.arena_bytes) out["arenas"][name_of(arena)] = bytes;
  for (const StateSlot& s : plan.state) {
    out["state"].push_back({{"name", s.name.str()},
                            {"type", s.type.str()},
                            {"class", name_of(s.cls)},
                            {"requires_grad", s.requires_grad},
                            {"is_norm", s.is_norm}});
    json& slot = out["state"].back();
    if (s.id != s.name) slot["id"] = s.id.str();
    if (s.parts.size() == 1) put_placement(slot, s.parts[0]);
    for (std::size_t k = 0; s.parts.size() > 1 && k < s.parts.size(); ++k)
      put_placement(slot["parts"][k], s.parts[k]);
  }
  for (const Program& p : plan.programs) out["programs"].push_back(json_of(p));
  // A path of a user's source file may hold any bytes.
  return json_text(out, indent);
}

Plan plan_from_json(std::string_view text) {
  Plan plan;
  try {
    const json value = parse_json(text);
    if (value.is_discarded()) refuse(std::string(json_problem(text)));
    plan = read_plan(value);
    verify(plan);
  } catch (const json::exception& e) {
    refuse(e.what());
  } catch (const DataError&) {
    throw;
  } catch (const Error& e) {  // a type or attribute that does not parse, or a broken plan
    refuse(e.headline());
  }
  return plan;
}

}  // namespace aloft
