// Pages that need nothing else: html with places that scripts, styles and data are put into.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace aloft {

// JSON inside a <script> element. In JSON '<' occurs in strings alone, where \u003c is the same
// character and cannot end the element or open a comment.
std::string json_for_script(std::string_view json);

// The page with each placeholder, such as "{{data}}", replaced; all are there, in this order. They
// are looked for in the page alone: what is put in may contain anything.
std::string fill_page(
    std::string_view page,
    std::span<const std::pair<std::string_view, std::string_view>> placeholders_and_contents);

}  // namespace aloft
