#include "observe/probe/dump_text.h"

#include <utility>

#include "base/json.h"
#include "observe/probe/record.h"

namespace aloft::probe {

namespace {

using Json = nlohmann::ordered_json;

// The members of an object, as they stand in its text between its brackets.
std::string members_of(const Json& object) {
  const std::string text = json_text(object, 1);
  return text.substr(2, text.size() - 4);  // "{\n", "\n}"
}

void put_line(std::string& out, int depth) {
  out += '\n';
  out.append(static_cast<std::size_t>(depth), ' ');
}

}  // namespace

DumpText::DumpText(std::shared_ptr<const Dump> dump) : dump_(std::move(dump)) {
  const Json outline = dump_->outline();
  for (const char* key : {"data", "taps"}) {
    const auto it = outline.find(key);
    if (it == outline.end()) continue;
    rest_ += std::string(",\n \"") + key + "\": ";
    put(*it, 1);
  }
}

// Numbers of the outline are records (Dump::outline).
void DumpText::put(const Json& outline, int depth) {
  if (outline.is_number()) {
    const auto number = outline.get<std::size_t>();
    pieces_.push_back({std::exchange(rest_, {}), number / 2, number % 2 == 1, depth});
    return;
  }
  if (!outline.is_structured() || outline.empty()) return put_plain(rest_, outline);
  const bool is_object = outline.is_object();
  char before = is_object ? '{' : '[';
  for (const auto& [key, member] : outline.items()) {
    rest_ += std::exchange(before, ',');
    put_line(rest_, depth + 1);
    if (is_object) {
      put_plain(rest_, key);
      rest_ += ": ";
    }
    put(member, depth + 1);
  }
  put_line(rest_, depth);
  rest_ += is_object ? '}' : ']';
}

std::string DumpText::of(std::span<const double> all, const Step& step) const {
  constexpr std::size_t kRecord = 512;  // bytes, about
  static const Json nothing;
  Json head = dump_->head(step.tensors.empty() ? "statistics" : "tensor");
  if (!step.tensors.empty()) head["dump_data_dir"] = step.tensors;
  std::string out = "{\n" + members_of(head);
  out.reserve(out.size() + rest_.size() + pieces_.size() * kRecord);
  for (const Piece& p : pieces_) {
    out += p.before;
    const LookedAt& value = dump_->values()[dump_->value_of_record(p.record)];
    put_record(out, value, all, p.requires_grad, p.depth,
               p.record < step.added.size() ? step.added[p.record] : nothing);
  }
  out += rest_;
  if (!step.training.is_null()) out += ",\n" + members_of({{"training", step.training}});
  return out + "\n}";
}

}  // namespace aloft::probe
