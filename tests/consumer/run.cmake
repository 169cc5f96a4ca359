# cmake -D build=DIR -D source=DIR -D compiler=c++ [-D sanitize=address] -P run.cmake
# Installs the build tree into a fresh prefix, then configures, builds and runs the outside project.
set(prefix ${build}/consumer/prefix)
file(REMOVE_RECURSE ${build}/consumer)
function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
# What the program's target builds is all that is installed: nothing is missing after `make build`.
execute_process(COMMAND ninja -C ${build} -t inputs aloft OUTPUT_VARIABLE inputs
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT inputs MATCHES "libaloft[.]so")
  message(FATAL_ERROR "the target aloft does not build the shared library that is installed")
endif()
step(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})
foreach(file share/aloft/recipes/gpt-cpp.toml share/aloft/recipes/README.md share/doc/aloft/metrics.md
        share/doc/aloft/api.md share/doc/aloft/number-types.md share/doc/aloft/examples/mlp.cpp)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
# What the installed pages link to is installed.
file(GLOB pages ${prefix}/share/doc/aloft/*.md ${prefix}/share/doc/aloft/examples/*.md
     ${prefix}/share/aloft/recipes/*.md)
foreach(page IN LISTS pages)
  get_filename_component(folder ${page} DIRECTORY)
  file(READ ${page} text)
  string(REGEX REPLACE "`[^`\n]*`" "" text "${text}")  # a function's declaration is no link
  string(REGEX REPLACE "[][;]" "|" text "${text}")  # which a list takes for its own
  string(REGEX MATCHALL "[|]\\([^)#: \n]+[#)]" links "${text}")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "^..(.+).$" "\\1" link "${link}")
    if(NOT EXISTS ${folder}/${link})
      message(FATAL_ERROR "${page} links to ${link}, which is not installed")
    endif()
  endforeach()
endforeach()

# A package is made below DESTDIR: the same files, all of them there, named as by CMake or by make,
# absolute or from the folder where one stands; and nothing anywhere else.
file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/*)
get_filename_component(tree ${source}/../.. ABSOLUTE)
function(expect_staged stage)
  file(GLOB_RECURSE staged RELATIVE ${stage}/opt/aloft ${stage}/*)
  if(NOT staged STREQUAL installed)
    message(FATAL_ERROR "below ${stage}/opt/aloft are\n${staged}\ninstead of\n${installed}")
  endif()
endfunction()
set(work ${build}/consumer/work)
file(MAKE_DIRECTORY ${work})
set(with_cmake ${CMAKE_COMMAND} --install ${build} --prefix /opt/aloft)
step(${CMAKE_COMMAND} -E env DESTDIR=${work}/absolute ${with_cmake} OUTPUT_QUIET)
expect_staged(${work}/absolute)
step(${CMAKE_COMMAND} -E env DESTDIR=relative ${with_cmake} WORKING_DIRECTORY ${work} OUTPUT_QUIET)
expect_staged(${work}/relative)
file(GLOB made RELATIVE ${work} ${work}/*)
if(NOT made STREQUAL "absolute;relative")
  message(FATAL_ERROR "beside the packages there are: ${made}")
endif()
# make's own line, on this build tree.
file(READ ${tree}/Makefile makefile)
string(REPLACE "cmake --install build " "${CMAKE_COMMAND} --install ${build} " makefile "${makefile}")
file(WRITE ${work}/Makefile "${makefile}")
step(make -s -o build install DESTDIR=${work}/make PREFIX=/opt/aloft WORKING_DIRECTORY ${work}
     OUTPUT_QUIET)
expect_staged(${work}/make)

set(flags "")
if(sanitize)
  set(flags "-fsanitize=${sanitize}")  # its runtime comes first in the program, not in a library
endif()
step(${CMAKE_COMMAND} -S ${source} -B ${build}/consumer/build -G Ninja
     -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_FLAGS=${flags})
step(${CMAKE_COMMAND} --build ${build}/consumer/build)
step(${build}/consumer/build/consumer)
step(${build}/consumer/build/own_model)
step(${build}/consumer/build/write_text)
