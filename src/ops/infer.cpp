#include "ops/infer.h"

#include <algorithm>

#include "base/error.h"

namespace aloft {

std::string place_of(const Where& w) {
  std::string s;
  if (w.file) s = w.file.str() + ":" + std::to_string(w.line);
  if (w.path) s += (s.empty() ? "" : " ") + ("(" + w.path.str() + ")");
  return s;
}

void Infer::fail(std::string_view headline, std::string_view need, std::string_view advice,
                 std::string_view code) const {
  UserError e{std::string(code), op_.str() + ": " + std::string(headline)};
  if (const std::string place = place_of(where_); !place.empty()) e.add_line("at", place);
  for (int i = 0; i < count() && i < 8; ++i) e.add_line("in " + std::to_string(i), in_[i].str());
  e.add_line("need", need);
  if (!advice.empty()) e.add_line("try", advice);
  throw e;
}

void Infer::need_count(int least, int most) const {
  if (count() >= least && count() <= most) return;
  fail("wrong number of operands: " + std::to_string(count()),
       least == most ? std::to_string(least)
                     : std::to_string(least) + " to " + std::to_string(most));
}

void Infer::need_rank(int i, int least, int most) const {
  const int rank = in_[i].shape.rank();
  if (rank >= least && rank <= most) return;
  fail("operand " + std::to_string(i) + " has rank " + std::to_string(rank),
       least == most ? "rank " + std::to_string(least)
                     : "rank " + std::to_string(least) + " to " + std::to_string(most));
}

void Infer::need_float(int i) const {
  if (!is_float(dtype(i)))
    fail("operand " + std::to_string(i) + " is " + std::string(name_of(dtype(i))),
         "a floating-point tensor", "cast it first");
}

void Infer::need_integer(int i) const {
  if (is_float(dtype(i)))
    fail("operand " + std::to_string(i) + " is " + std::string(name_of(dtype(i))),
         "an integer tensor", "cast it to i32 first");
}

void Infer::need_same_dtype(int i, int j) const {
  if (dtype(i) == dtype(j)) return;
  const bool is_prepared =
      (is_low(dtype(i)) && dtype(j) == DType::F32) || (is_low(dtype(j)) && dtype(i) == DType::F32);
  fail("operands " + std::to_string(i) + " and " + std::to_string(j) + " have different types",
       "the same element type",
       is_prepared
           ? "cast one of them; a model whose weights amp::initialize stores in a low type is "
             "called by what that gave, net(x)"
           : "cast one of them");
}

void Infer::need_shape(int i, const Shape& shape) const {
  if (this->shape(i) != shape)
    fail("operand " + std::to_string(i) + " has shape " + this->shape(i).str(), shape.str());
}

void Infer::need_same_shape(int i, int j) const { need_shape(j, shape(i)); }

int Infer::axis(int i, std::int64_t a) const {
  const int n = normal_axis(a, shape(i).rank());
  if (n < 0)
    fail("axis " + std::to_string(a) + " is out of range",
         "an axis from " + std::to_string(-shape(i).rank()) + " to " +
             std::to_string(shape(i).rank() - 1));
  return n;
}

std::vector<int> Infer::axes(int i, const std::vector<std::int64_t>& list) const {
  std::vector<int> out;
  out.reserve(list.size());
  for (std::int64_t a : list) out.push_back(axis(i, a));
  if (list.empty())
    for (int a = 0; a < shape(i).rank(); ++a) out.push_back(a);
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    fail("an axis is named twice", "distinct axes");
  return out;
}

Shape Infer::broadcast(const Shape& a, const Shape& b) const {
  Shape out;
  const int rank = std::max(a.rank(), b.rank());
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const Dim da = ia < 0 ? Dim(1) : a[ia], db = ib < 0 ? Dim(1) : b[ib];
    if (!(da == db) && !(da == Dim(1)) && !(db == Dim(1)))
      fail("shapes " + a.str() + " and " + b.str() + " do not broadcast",
           "dimensions that are equal or 1, aligned at the back; got " + da.str() + " and " +
               db.str());
    out.dims().push_back(da == Dim(1) ? db : da);
  }
  return out;
}

}  // namespace aloft
