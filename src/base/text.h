// Small text functions: splitting, name patterns, numbers in and out. ASCII; the locale is never
// asked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aloft {

// "a,,b" by ',' gives {"a", "", "b"}; "" gives {""}. The views point into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string_view trim(std::string_view text);  // spaces, tabs, line ends
std::string lower(std::string_view text);
// Letters, digits and '_', not beginning with a digit.
bool is_identifier(std::string_view text);

// Whether `pattern` matches the whole of `text`. '*' stands for any run of characters, dots
// included ("h.*.attn.*"), '?' for one character; everything else for itself. Linear in the text
// for each '*', whatever the pattern.
bool glob_match(std::string_view pattern, std::string_view text);
bool glob_match_any(std::span<const std::string> patterns, std::string_view text);

// The whole of `text` as a number, in C's notation, or nothing ("", "1x", " 1", out of range).
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

std::string human_bytes(std::uint64_t bytes);                // "17 B", "1.50 MiB"
std::string human_count(double count);                       // "950", "124M", "1.24k"
std::string human_seconds(double seconds);                   // "12 s", "3:07", "2:03:07"
std::string grouped(std::int64_t value);                     // "-12,345,678"
std::string counted(std::int64_t n, std::string_view what);  // "1 step", "1,200 steps"
std::string shortest(double value);  // parses back to the same double; "nan", "inf"

// `text` fit for a message: quoted, control and non-ASCII bytes as \xNN, cut after `limit` bytes.
std::string in_quotes(std::string_view text, std::size_t limit = 80);

}  // namespace aloft
