#include "backends/cpu/conv/wide_conv.h"

#include <algorithm>

#include "backends/cpu/parallel.h"

namespace aloft::cpu {
namespace {

// Calls f(place in y's plane, place in x's plane) for every pair that a tap of the window joins.
template <class F>
void for_each_pair(const ConvSpec& s, std::int64_t tap_row, std::int64_t tap_column, const F& f) {
  for (std::int64_t r = 0; r < s.out_height; ++r) {
    const std::int64_t i = r * s.stride[0] - s.padding[0] + tap_row * s.dilation[0];
    if (i < 0 || i >= s.height) continue;
    for (std::int64_t c = 0; c < s.out_width; ++c) {
      const std::int64_t j = c * s.stride[1] - s.padding[1] + tap_column * s.dilation[1];
      if (j >= 0 && j < s.width) f(r * s.out_width + c, i * s.width + j);
    }
  }
}

// Calls f(place in the window, row, column) for every tap.
template <class F>
void for_each_tap(const ConvSpec& s, const F& f) {
  for (std::int64_t r = 0; r < s.kernel_height; ++r)
    for (std::int64_t c = 0; c < s.kernel_width; ++c) f(r * s.kernel_width + c, r, c);
}

const double* doubles(const void* p) { return static_cast<const double*>(p); }

}  // namespace

void WideConv::forward(const ConvPointers& p, std::int64_t image, std::int64_t out) const {
  const ConvSpec& s = spec_;
  const std::int64_t area = s.out_height * s.out_width;
  double* y = static_cast<double*>(p.result) + (image * s.out + out) * area;
  std::fill_n(y, area, s.bias ? doubles(p.bias)[out] : 0.0);
  for (std::int64_t i = 0; i < in_of_group(); ++i) {
    const std::int64_t in = out / out_of_group() * in_of_group() + i;
    const double* x = doubles(p.first) + (image * s.in + in) * s.height * s.width;
    const double* w = doubles(p.second) + (out * in_of_group() + i) * window();
    for_each_tap(s, [&](std::int64_t tap, std::int64_t row, std::int64_t column) {
      for_each_pair(s, row, column,
                    [&](std::int64_t to, std::int64_t from) { y[to] += w[tap] * x[from]; });
    });
  }
}

void WideConv::grad_input(const ConvPointers& p, std::int64_t image, std::int64_t in) const {
  const ConvSpec& s = spec_;
  const std::int64_t plane = s.height * s.width;
  double* dx = static_cast<double*>(p.result) + (image * s.in + in) * plane;
  std::fill_n(dx, plane, 0.0);
  for (std::int64_t o = 0; o < out_of_group(); ++o) {
    const std::int64_t out = in / in_of_group() * out_of_group() + o;
    const double* dy = doubles(p.first) + (image * s.out + out) * s.out_height * s.out_width;
    const double* w = doubles(p.second) + (out * in_of_group() + in % in_of_group()) * window();
    for_each_tap(s, [&](std::int64_t tap, std::int64_t row, std::int64_t column) {
      for_each_pair(s, row, column,
                    [&](std::int64_t from, std::int64_t to) { dx[to] += w[tap] * dy[from]; });
    });
  }
}

void WideConv::grad_weight(const ConvPointers& p, std::int64_t images, std::int64_t out,
                           std::int64_t in) const {
  const ConvSpec& s = spec_;
  double* dw = static_cast<double*>(p.result) + (out * in_of_group() + in) * window();
  std::fill_n(dw, window(), 0.0);
  const std::int64_t channel = out / out_of_group() * in_of_group() + in;
  for (std::int64_t n = 0; n < images; ++n) {
    const double* x = doubles(p.first) + (n * s.in + channel) * s.height * s.width;
    const double* dy = doubles(p.second) + (n * s.out + out) * s.out_height * s.out_width;
    for_each_tap(s, [&](std::int64_t tap, std::int64_t row, std::int64_t column) {
      for_each_pair(s, row, column,
                    [&](std::int64_t at_y, std::int64_t at_x) { dw[tap] += dy[at_y] * x[at_x]; });
    });
  }
}

void WideConv::run(const ConvPointers& p, std::int64_t images) const {
  const ConvSpec& s = spec_;
  const std::int64_t pixels = s.out_height * s.out_width * window();
  if (s.kind == ConvKind::GradWeight) {
    const std::int64_t in = in_of_group();
    parallel_for(s.out * in, images * pixels, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) grad_weight(p, images, t / in, t % in);
    });
    return;
  }
  const bool is_forward = s.kind == ConvKind::Forward;
  const std::int64_t made = is_forward ? s.out : s.in;
  const std::int64_t read = is_forward ? in_of_group() : out_of_group();
  parallel_for(images * made, read * pixels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      is_forward ? forward(p, t / made, t % made) : grad_input(p, t / made, t % made);
  });
}

}  // namespace aloft::cpu
