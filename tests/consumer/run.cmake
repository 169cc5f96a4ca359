# cmake -D build=DIR -D source=DIR -D compiler=c++ -P run.cmake
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
foreach(file share/aloft/recipes/gpt-cpp.toml share/doc/aloft/metrics.md share/doc/aloft/api.md)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
step(${CMAKE_COMMAND} -S ${source} -B ${build}/consumer/build -G Ninja
     -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${compiler})
step(${CMAKE_COMMAND} --build ${build}/consumer/build)
step(${build}/consumer/build/consumer)
