#include "data/tokenizers/parts/expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

// Long runs (a text of spaces alone) need more than the 32 KiB that PCRE2 has at hand.
constexpr std::size_t kStackStart = std::size_t{32} << 10, kStackMost = std::size_t{8} << 20;

std::string words_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct MatchSpace::Inside {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kStackStart, kStackMost, nullptr);

  Inside() { pcre2_jit_stack_assign(context, nullptr, stack); }
  ~Inside() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

MatchSpace::MatchSpace() : inside_(std::make_unique<Inside>()) {}
MatchSpace::~MatchSpace() = default;

struct Expression::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Expression::Expression(std::string_view pattern, const JsonPlace& place)
    : pattern_(pattern), code_(std::make_unique<Code>()) {
  const std::string written = in_pcre2(pattern, place);
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written.data()), written.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!code_->code)
    place.refuse(in_quotes(pattern) + ": " + words_of(error), "a regular expression");
  // Without a compiler for this processor the expression is interpreted.
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

bool Expression::find(std::string_view text, std::size_t from, MatchSpace& space,
                      Match& match) const {
  const int found =
      pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                  PCRE2_NO_UTF_CHECK, space.inside_->data, space.inside_->context);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0)
    throw unusable(pattern_, "a text of " + std::to_string(text.size()) + " bytes", words_of(found),
                   "an expression that finds its way in it");
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(space.inside_->data);
  match = {ends[0], ends[1]};
  return true;
}

std::size_t Expression::next_character(std::string_view text, std::size_t from) {
  return from < text.size() ? from + utf8::step(text, from).length : from + 1;
}

}  // namespace aloft::parts
