# cmake -D source=DIR -D build=DIR -D compiler=c++ -P without_test_tools.cmake
# The program is configured where neither GoogleTest nor benchmark is installed; the same tree gets its
# tests once they are; and whoever demands tests without them is told.
set(tree ${build}/without_test_tools)
file(REMOVE_RECURSE ${tree})
set(configure ${CMAKE_COMMAND} -S ${source} -B ${tree} -G Ninja -D CMAKE_CXX_COMPILER=${compiler})
set(absent -D CMAKE_DISABLE_FIND_PACKAGE_GTest=ON -D CMAKE_DISABLE_FIND_PACKAGE_benchmark=ON)

function(expect_tests wanted)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} -N --test-dir ${tree} OUTPUT_VARIABLE listed)
  string(REGEX MATCH "Total Tests: ([0-9]+)" ignored "${listed}")
  set(found OFF)
  if(CMAKE_MATCH_1 GREATER 0)
    set(found ON)
  endif()
  if(NOT found STREQUAL wanted)
    message(FATAL_ERROR "tests: ${found}, wanted: ${wanted}\n${listed}")
  endif()
endfunction()

execute_process(COMMAND ${configure} ${absent} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
expect_tests(OFF)
execute_process(COMMAND ${configure} -D ALOFT_TESTS=ON OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE code)
if(code EQUAL 0 OR NOT said MATCHES "GTest")
  message(FATAL_ERROR "tests without GoogleTest are configured: ${code}\n${said}")
endif()
execute_process(COMMAND ${configure} -U CMAKE_DISABLE_FIND_PACKAGE_* -D ALOFT_TESTS=ON -D ALOFT_BENCH=ON
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
expect_tests(ON)
file(REMOVE_RECURSE ${tree})
