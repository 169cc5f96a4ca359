#include "data/chat/filters.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "data/chat/characters.h"
#include "data/chat/methods.h"
#include "data/chat/operators.h"
#include "data/chat/tests.h"
#include "data/chat/value_text.h"

namespace aloft::chat {
namespace {

Value absolute(const Value& value, const Given& given, Work&) {
  given.none();
  return is_true(Value(value.is_number() && value.number() < 0)) ? with_sign("-", value)
                                                                 : with_sign("+", value);
}

template <Case letters>
Value change_case(const Value& value, const Given& given, Work& work) {
  given.none();
  return Value(in_case(to_text(value, work), letters));
}

Value default_value(const Value& value, const Given& given, Work&) {
  const auto values = given.by_names({"default_value", "boolean"}, 0);
  const bool is_missing = value.is_undefined() || (truth_or(values[1], false) && !is_true(value));
  if (!is_missing) return value;
  return values[0] ? *values[0] : Value("");
}

Value first(const Value& value, const Given& given, Work& work) {
  given.none();
  const std::vector<Value> items = items_of(value, work);
  return items.empty() ? Value(Undefined{"the first of an empty sequence"}) : items.front();
}

Value last(const Value& value, const Given& given, Work& work) {
  given.none();
  if (value.is_list() && value.list().kind == ListKind::Iterator)
    fail("last of an iterator: the filter `list` makes a list of it");
  const std::vector<Value> items = items_of(value, work);
  return items.empty() ? Value(Undefined{"the last of an empty sequence"}) : items.back();
}

Value to_float(const Value& value, const Given& given, Work&) {
  if (value.is_undefined()) fail(in_quotes(value.missing_name()) + " is undefined");
  const Value* fallback = given.by_names({"default"}, 0)[0];
  if (value.is_number()) return Value(value.number());
  if (value.is_string())
    if (const auto x = parse_double(stripped(value.text(), Side::Both, nullptr))) return Value(*x);
  return fallback ? *fallback : Value(0.0);
}

Value to_whole(const Value& value, const Given& given, Work&) {
  if (value.is_undefined()) fail(in_quotes(value.missing_name()) + " is undefined");
  const Value* fallback = given.by_names({"default"}, 0)[0];
  std::optional<double> x;
  if (value.is_whole()) return Value(value.whole());
  if (value.is_string()) {
    const std::string text = stripped(value.text(), Side::Both, nullptr);
    if (const auto n = parse_int(text)) return Value(*n);
    x = parse_double(text);
  }
  if (value.is(Value::Type::Float)) x = value.number();
  if (x && std::abs(*x) < 0x1p63) return Value(static_cast<std::int64_t>(*x));
  return fallback ? *fallback : Value(std::int64_t{0});
}

Value indent(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"width", "first", "blank"}, 0);
  const bool is_text = values[0] && values[0]->is_string();
  const std::int64_t width = is_text ? 0 : whole_or(values[0], 4, given);
  if (width > 256) fail("indent by more than 256 characters");
  const std::string by =
      is_text ? values[0]->text()
              : std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  const std::string text = to_text(value, work) + "\n";
  const bool is_blank_too = truth_or(values[2], false);
  std::string out;
  bool is_first = true;
  for (const std::string_view line : lines_of(text)) {
    work.spend(1 + static_cast<std::int64_t>(by.size() / 32));
    if (!is_first) out += "\n";
    const bool is_indented = is_first ? truth_or(values[1], false) : !line.empty() || is_blank_too;
    if (is_indented) out += by;
    out += line;
    is_first = false;
  }
  return Value(std::move(out));
}

Value items(const Value& value, const Given& given, Work& work) {
  given.none();
  std::vector<Value> all;
  if (!value.is_undefined()) {
    if (!value.is_dict()) fail("items of " + std::string(type_name(value)));
    work.spend(static_cast<std::int64_t>(value.dict().items.size()));
    for (const auto& [k, v] : value.dict().items) all.push_back(make_list({k, v}, ListKind::Tuple));
  }
  return make_list(std::move(all), ListKind::Iterator);
}

// "a.b.0": the items of items; `fallback` of those that are not there, unless it is null or none.
Value by_path(Value value, const Value& path, const Value* fallback = nullptr) {
  const auto step = [&](const Value& key) {
    value = item_of(value, key);
    if (value.is_undefined() && fallback && !fallback->is_none()) value = *fallback;
  };
  if (path.is_whole()) {
    step(path);
    return value;
  }
  if (!path.is_string()) fail("an attribute's name is " + std::string(type_name(path)));
  for (const std::string_view part : split(path.text(), '.')) {
    const auto n = parse_int(part);
    step(n && *n >= 0 ? Value(*n) : Value(part));
  }
  return value;
}

Value join_items(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"d", "attribute"}, 0);
  const std::string between = values[0] ? to_text(*values[0], work) : "";
  std::string out;
  bool is_first = true;
  for (const Value& v : items_of(value, work)) {
    work.spend(1 + static_cast<std::int64_t>(between.size() / 32));
    if (!is_first) out += between;
    is_first = false;
    out += to_text(values[1] && !values[1]->is_none() ? by_path(v, *values[1]) : v, work);
  }
  return Value(std::move(out));
}

Value length(const Value& value, const Given& given, Work&) {
  given.none();
  return Value(length_of(value));
}

Value list(const Value& value, const Given& given, Work& work) {
  given.none();
  return make_list(items_of(value, work));
}

Value map(const Value& value, const Given& given, Work& work) {
  std::vector<Value> out;
  const std::vector<Value> all = is_true(value) ? items_of(value, work) : std::vector<Value>();
  if (given.plain().empty()) {
    const auto values = given.by_names({"attribute", "default"}, 1);
    for (const Value& v : all) out.push_back(by_path(v, *values[0], values[1]));
    return make_list(std::move(out), ListKind::Iterator);
  }
  const std::string name = text_or(&given.plain()[0], "", given);
  const Filter* filter = find_filter(name);
  if (!filter) fail("map with the filter " + in_quotes(name) + ", which is not done here");
  const Given rest = given.behind(1, name);
  if (name == "map") fail("map of map is not done here");
  for (const Value& v : all) {
    work.spend(weight_of(v));
    out.push_back(filter->apply(v, rest, work));
  }
  return make_list(std::move(out), ListKind::Iterator);
}

// select, reject, and those by an attribute.
template <bool is_kept, bool has_attribute>
Value choose(const Value& value, const Given& given, Work& work) {
  const std::vector<Value>& plain = given.plain();
  const std::size_t first = has_attribute ? 1 : 0;
  if (plain.size() < first) fail(given.called() + "() lacks the attribute's name");
  const Test* test = nullptr;
  if (plain.size() > first) {
    const std::string name = text_or(&plain[first], "", given);
    test = find_test(name);
    if (!test) fail("the test " + in_quotes(name) + " is not done here");
  }
  const Given rest = given.behind(first + 1, given.called());
  std::vector<Value> out;
  if (is_true(value))
    for (const Value& v : items_of(value, work)) {
      const Value looked_at = has_attribute ? by_path(v, plain[0]) : v;
      work.spend(weight_of(looked_at));
      if ((test ? test->holds(looked_at, rest, work) : is_true(looked_at)) == is_kept)
        out.push_back(v);
    }
  return make_list(std::move(out), ListKind::Iterator);
}

// What things are put in order by: `attribute` of them, or they themselves; letters of either case
// are the same, where that is asked for.
Value order_key(const Value& value, const Value* attribute, bool has_cases) {
  const bool is_whole = !attribute || attribute->is_none();
  const Value key = is_whole ? value : by_path(value, *attribute);
  return has_cases || !key.is_string() ? key : Value(in_case(key.text(), Case::Lower));
}

struct Keyed {
  Value key, value;
};

std::vector<Keyed> keyed(const Value& value, const Value* attribute, bool has_cases, Work& work) {
  std::vector<Keyed> all;
  for (Value& v : items_of(value, work))
    all.push_back({order_key(v, attribute, has_cases), std::move(v)});
  return all;
}

// Stable in both directions, as Python's.
Value in_order(std::vector<Keyed> all, bool is_reversed, Work& work) {
  std::stable_sort(all.begin(), all.end(), [&](const Keyed& a, const Keyed& b) {
    return is_reversed ? compare("<", b.key, a.key, work) : compare("<", a.key, b.key, work);
  });
  std::vector<Value> out;
  for (Keyed& k : all) out.push_back(std::move(k.value));
  return make_list(std::move(out));
}

Value sort(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"reverse", "case_sensitive", "attribute"}, 0);
  return in_order(keyed(value, values[2], truth_or(values[1], false), work),
                  truth_or(values[0], false), work);
}

Value sort_dict(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"case_sensitive", "by", "reverse"}, 0);
  const std::string by = text_or(values[1], "key", given);
  if (!value.is_dict()) fail("dictsort of " + std::string(type_name(value)));
  if (by != "key" && by != "value") fail("dictsort by neither \"key\" nor \"value\"");
  std::vector<Keyed> all;
  for (const auto& [k, v] : value.dict().items)
    all.push_back({order_key(by == "key" ? k : v, nullptr, truth_or(values[0], false)),
                   make_list({k, v}, ListKind::Tuple)});
  return in_order(std::move(all), truth_or(values[2], false), work);
}

// The first of those that are the same.
Value unique(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"case_sensitive", "attribute"}, 0);
  std::vector<Value> keys, out;
  for (Keyed& k : keyed(value, values[1], truth_or(values[0], false), work)) {
    const Value all = make_list(keys);
    if (compare("in", k.key, all, work)) continue;
    keys.push_back(k.key);
    out.push_back(std::move(k.value));
  }
  return make_list(std::move(out), ListKind::Iterator);
}

template <bool is_least>
Value extreme(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"case_sensitive", "attribute"}, 0);
  std::vector<Keyed> all = keyed(value, values[1], truth_or(values[0], false), work);
  if (all.empty()) return Undefined{"the extreme of an empty sequence"};
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (compare(is_least ? "<" : ">", all[i].key, all[best].key, work)) best = i;
  return all[best].value;
}

Value replace(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"old", "new", "count"}, 2);
  const bool is_all = !values[2] || values[2]->is_none();
  return Value(replaced(to_text(value, work), to_text(*values[0], work), to_text(*values[1], work),
                        is_all ? -1 : whole_or(values[2], -1, given), work));
}

Value reverse(const Value& value, const Given& given, Work& work) {
  given.none();
  if (value.is_string()) return slice_of(value, Value(), Value(), Value(std::int64_t{-1}), work);
  std::vector<Value> all = items_of(value, work);
  std::reverse(all.begin(), all.end());
  return make_list(std::move(all), ListKind::Iterator);
}

Value string(const Value& value, const Given& given, Work& work) {
  given.none();
  return Value(to_text(value, work));
}

Value tojson(const Value& value, const Given& given, Work& work) {
  const auto values = given.by_names({"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonForm form;
  form.is_ascii = truth_or(values[0], false);
  form.is_sorted = truth_or(values[3], false);
  if (values[1] && !values[1]->is_none()) {
    form.is_broken = true;
    form.between = ",";
    form.indent = values[1]->is_string()
                      ? values[1]->text()
                      : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                                        whole_or(values[1], 0, given), 0, 64)),
                                    ' ');
    if (form.indent.size() > 32) fail("tojson with an indentation of more than 32 characters");
  }
  if (values[2] && !values[2]->is_none()) {
    const std::vector<Value> pair = items_of(*values[2], work);
    if (pair.size() != 2) fail("tojson takes two separators");
    form.between = text_or(&pair[0], "", given);
    form.behind_key = text_or(&pair[1], "", given);
    if (form.between.size() + form.behind_key.size() > 32)
      fail("tojson with separators of more than 32 characters");
  }
  return Value(to_json(value, form, work));
}

Value trim(const Value& value, const Given& given, Work& work) {
  const Value* set = given.by_names({"chars"}, 0)[0];
  const bool is_space = !set || set->is_none();
  const std::string chars = is_space ? "" : text_or(set, "", given);
  return Value(stripped(to_text(value, work), Side::Both, is_space ? nullptr : &chars));
}

constexpr Filter kFilters[] = {
    {"abs", absolute},
    {"capitalize", change_case<Case::Capital>},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", sort_dict},
    {"first", first},
    {"float", to_float},
    {"indent", indent},
    {"int", to_whole},
    {"items", items},
    {"join", join_items},
    {"last", last},
    {"length", length},
    {"list", list},
    {"lower", change_case<Case::Lower>},
    {"map", map},
    {"max", extreme<false>},
    {"min", extreme<true>},
    {"reject", choose<false, false>},
    {"rejectattr", choose<false, true>},
    {"replace", replace},
    {"reverse", reverse},
    {"select", choose<true, false>},
    {"selectattr", choose<true, true>},
    {"sort", sort},
    {"string", string},
    {"tojson", tojson},
    {"trim", trim},
    {"unique", unique},
    {"upper", change_case<Case::Upper>},
};

}  // namespace

const Filter* find_filter(std::string_view name) {
  const auto found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                  [&](auto& f) { return f.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}

std::string names_of_filters() {
  std::string out;
  for (const Filter& f : kFilters) out += (out.empty() ? "" : ", ") + std::string(f.name);
  return out;
}

}  // namespace aloft::chat
