#include "data/chat/operators.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "data/chat/characters.h"
#include "data/chat/methods.h"

namespace aloft::chat {
namespace {

[[noreturn]] void no_operation(std::string_view text, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b})
    if (v->is_undefined()) fail(in_quotes(v->missing_name()) + " is undefined");
  fail("no " + std::string(text) + " of " + std::string(type_name(a)) + " and " +
       std::string(type_name(b)));
}

std::int64_t checked(bool overflows, std::int64_t value) {
  if (overflows) fail("a whole number beyond 64 bits");
  return value;
}

// Python's: towards minus infinity.
std::int64_t floored(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("a division by zero");
  if (b == -1) return checked(a == INT64_MIN, a == INT64_MIN ? 0 : -a);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (std::int64_t i = 0; i < exponent; ++i)  // of 64 bits at most
    if (__builtin_mul_overflow(result, base, &result)) checked(true, 0);
  return result;
}

std::optional<Value> whole_operation(std::string_view text, std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (text == "+" || text == "-" || text == "*") {
    const bool overflows = text == "+"   ? __builtin_add_overflow(a, b, &r)
                           : text == "-" ? __builtin_sub_overflow(a, b, &r)
                                         : __builtin_mul_overflow(a, b, &r);
    return Value(checked(overflows, r));
  }
  if (text == "//") return Value(floored(a, b));
  if (text == "%") {
    if (b == 0) fail("a division by zero");
    r = b == -1 ? 0 : a % b;
    return Value(r != 0 && (r < 0) != (b < 0) ? r + b : r);
  }
  if (text == "**" && b >= 0) return Value(power(a, b));
  return std::nullopt;
}

Value number_operation(std::string_view text, const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole())
    if (auto result = whole_operation(text, a.whole(), b.whole())) return *result;
  const double x = a.number(), y = b.number();
  if (text == "+") return Value(x + y);
  if (text == "-") return Value(x - y);
  if (text == "*") return Value(x * y);
  if (text == "**") {
    const double r = std::pow(x, y);
    if (!std::isfinite(r) || (x == 0 && y < 0)) fail("a power that is no number");
    return Value(r);
  }
  if (y == 0) fail("a division by zero");
  if (text == "/") return Value(x / y);
  const double rest = std::fmod(x, y);
  const double modulus = rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  if (text == "%") return Value(modulus == 0 ? std::copysign(0.0, y) : modulus);
  return Value(std::round((x - modulus) / y));
}

// `n` times what is repeated.
Value repeated(const Value& value, std::int64_t n, Work& work) {
  n = std::max<std::int64_t>(n, 0);
  const std::int64_t weight = weight_of(value);
  if (n > kHeaviestValue || n * weight > kHeaviestValue) fail("a repetition that is too long");
  work.spend(n * weight);
  if (value.is_string()) {
    std::string out;
    for (std::int64_t i = 0; i < n; ++i) out += value.text();
    return Value(std::move(out));
  }
  std::vector<Value> items;
  for (std::int64_t i = 0; i < n; ++i)
    items.insert(items.end(), value.list().items.begin(), value.list().items.end());
  return make_list(std::move(items), value.list().kind);
}

bool is_plain_list(const Value& v) {
  return v.is_list() && (v.list().kind == ListKind::List || v.list().kind == ListKind::Tuple);
}

Value sum_of_lists(const Value& a, const Value& b, Work& work) {
  work.spend(static_cast<std::int64_t>(a.list().items.size() + b.list().items.size()));
  std::vector<Value> items = a.list().items;
  items.insert(items.end(), b.list().items.begin(), b.list().items.end());
  return make_list(std::move(items), a.list().kind);
}

// Below zero, zero or above it, as strcmp. Failure where the two have no order.
int order_of(std::string_view text, const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.whole() < b.whole() ? -1 : a.whole() > b.whole();
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number();
  if (a.is_string() && b.is_string()) return a.text().compare(b.text());
  const bool are_lists = is_plain_list(a) && is_plain_list(b) && a.list().kind == b.list().kind;
  if (!are_lists) no_operation(text, a, b);
  const auto &x = a.list().items, &y = b.list().items;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (!are_equal(x[i], y[i])) return order_of(text, x[i], y[i]);
  return x.size() < y.size() ? -1 : x.size() > y.size();
}

bool is_nan(const Value& v) { return v.is(Value::Type::Float) && std::isnan(v.number()); }

bool contains(const Value& all, const Value& one, Work& work) {
  if (all.is_string()) {
    if (!one.is_string()) no_operation("in", one, all);
    return all.text().find(one.text()) != std::string::npos;
  }
  if (all.is_dict()) return all.dict().find(one) != nullptr;
  const std::vector<Value> items = items_of(all, work);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return are_equal(item, one); });
}

// The index that Python's slices mean, from 0 to `length` (with a step below 0: one less).
std::int64_t bound(const Value& v, std::int64_t fallback, std::int64_t length, std::int64_t step) {
  if (v.is_none()) return fallback;
  if (!v.is_whole()) fail("a slice's bound is " + std::string(type_name(v)));
  const std::int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? length - 1 : length;
  const std::int64_t n = v.whole();
  return n < 0 ? std::max(lowest, std::max(n, -length - 1) + length) : std::min(n, highest);
}

Value missing_item(const Value& value, const std::string& name) {
  return Undefined{std::string(type_name(value)) + "." + name};
}

std::optional<Value> found_item(const Value& value, const Value& key) {
  if (value.is_dict()) {
    const Value* found = value.dict().find(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_whole() || (!value.is_string() && !value.is_list())) return std::nullopt;
  if (value.is_list() &&
      (value.list().kind == ListKind::View || value.list().kind == ListKind::Iterator))
    return std::nullopt;
  const std::int64_t length = length_of(value);
  const std::int64_t n = key.whole() < 0 ? key.whole() + length : key.whole();
  if (n < 0 || n >= length) return std::nullopt;
  if (value.is_list()) return value.list().items[static_cast<std::size_t>(n)];
  const std::string_view text = value.text();
  const std::size_t begin = place_of_character(text, static_cast<std::size_t>(n));
  const std::string_view rest = text.substr(begin);
  return Value(rest.substr(0, place_of_character(rest, 1)));
}

void need_defined(const Value& value) {
  if (value.is_undefined()) fail(in_quotes(value.missing_name()) + " is undefined");
}

}  // namespace

Value operation(std::string_view text, const Value& a, const Value& b, Work& work) {
  if (a.is_number() && b.is_number()) return number_operation(text, a, b);
  if (text == "%" && a.is_string()) fail("text % values is not done here: join the parts with ~");
  if (text == "+" && a.is_string() && b.is_string()) {
    work.spend(weight_of(a) + weight_of(b));
    return Value(a.text() + b.text());
  }
  if (text == "+" && is_plain_list(a) && is_plain_list(b) && a.list().kind == b.list().kind)
    return sum_of_lists(a, b, work);
  if (text == "*" && (a.is_string() || is_plain_list(a)) && b.is_whole())
    return repeated(a, b.whole(), work);
  if (text == "*" && (b.is_string() || is_plain_list(b)) && a.is_whole())
    return repeated(b, a.whole(), work);
  no_operation(text, a, b);
}

Value with_sign(std::string_view text, const Value& value) {
  need_defined(value);
  if (!value.is_number()) fail("a sign before " + std::string(type_name(value)));
  if (value.is_whole()) {
    const std::int64_t n = value.whole();
    return Value(text == "-" ? checked(n == INT64_MIN, n == INT64_MIN ? 0 : -n) : n);
  }
  return Value(text == "-" ? -value.number() : value.number());
}

bool compare(std::string_view text, const Value& a, const Value& b, Work& work) {
  work.spend(weight_of(b) + (a.is_string() ? weight_of(a) : 1));
  if (text == "==" || text == "!=") return are_equal(a, b) == (text == "==");
  if (text == "in") return contains(b, a, work);
  if (text == "not in") return !contains(b, a, work);
  need_defined(a);
  need_defined(b);
  const int order = order_of(text, a, b);
  if (is_nan(a) || is_nan(b)) return false;
  if (text == "<") return order < 0;
  if (text == "<=") return order <= 0;
  return text == ">" ? order > 0 : order >= 0;
}

Value item_of(const Value& value, const Value& key) {
  need_defined(value);
  if (value.is(Value::Type::Namespace) && key.is_string()) return attribute_of(value, key.text());
  if (auto found = found_item(value, key)) return *found;
  if (!key.is_string()) {
    if (key.is_undefined()) return missing_item(value, key.missing_name());
    return missing_item(value, key.is_whole() ? std::to_string(key.whole()) : "[...]");
  }
  if (const Value method = method_of(value, key.text()); !method.is_undefined()) return method;
  return missing_item(value, key.text());
}

Value attribute_of(const Value& value, std::string_view name) {
  need_defined(value);
  if (const Value method = method_of(value, name); !method.is_undefined()) return method;
  if (value.is_dict())
    if (const Value* found = value.dict().find(Value(name))) return *found;
  if (value.is(Value::Type::Namespace))
    if (const Value* found = value.space().find(name)) return *found;
  return missing_item(value, std::string(name));
}

Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step,
               Work& work) {
  need_defined(value);
  const bool is_list = value.is_list() && value.list().kind != ListKind::View &&
                       value.list().kind != ListKind::Iterator;
  if (!value.is_string() && !is_list) fail("a slice of " + std::string(type_name(value)));
  if (!step.is_none() && !step.is_whole()) fail("a slice's step is no whole number");
  const std::int64_t stride = step.is_none() ? 1 : step.whole();
  if (stride == 0) fail("a slice with a step of 0");
  const std::vector<Value> items = items_of(value, work);
  const auto length = static_cast<std::int64_t>(items.size());
  const std::int64_t first = bound(begin, stride < 0 ? length - 1 : 0, length, stride);
  const std::int64_t last = bound(end, stride < 0 ? -1 : length, length, stride);
  std::vector<Value> taken;
  const bool is_forward = stride > 0;
  for (std::int64_t i = first; is_forward ? i < last : i > last;) {
    taken.push_back(items[static_cast<std::size_t>(i)]);
    if (__builtin_add_overflow(i, stride, &i)) break;
  }
  if (is_list) return make_list(std::move(taken), value.list().kind);
  std::string text;
  for (const Value& c : taken) text += c.text();
  return Value(std::move(text));
}

}  // namespace aloft::chat
