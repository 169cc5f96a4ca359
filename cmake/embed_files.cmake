# cmake -D output=FILE.cpp -D namespace=NAME -D "files=name=path;..." -P embed_files.cmake
#
# Writes a source that holds each file as `std::string_view name()`: what a report needs travels
# inside the program, and its html, css and js stay files that an editor understands.
set(text "// Generated from files by cmake/embed_files.cmake.\n#include <string_view>\n\nnamespace ${namespace} {\n")
foreach(entry IN LISTS files)
  string(REGEX MATCH "^([A-Za-z0-9_]+)=(.*)$" whole "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "static const unsigned char ${name}_bytes[] = {\n${bytes}};\n"
         "std::string_view ${name}() {\n"
         "  return {reinterpret_cast<const char*>(${name}_bytes), sizeof(${name}_bytes)};\n}\n")
endforeach()
string(APPEND text "}  // namespace ${namespace}\n")
file(WRITE "${output}" "${text}")
