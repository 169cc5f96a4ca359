# aloft_library(NAME SOURCES a.cpp ... USES base types ... [LINK fmt::fmt ...])
#
# One target a folder: aloft_<NAME>. USES is the complete list of our folders that it may include,
# which tests/conventions checks against ARCHITECTURE.md's table. LINK names outside libraries.
function(aloft_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINK;DEFINES" ${ARGN})
  add_library(aloft_${name} STATIC ${ARG_SOURCES})
  target_include_directories(aloft_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  foreach(folder IN LISTS ARG_USES)
    target_link_libraries(aloft_${name} PUBLIC aloft_${folder})
  endforeach()
  target_link_libraries(aloft_${name} PUBLIC ${ARG_LINK})
  target_compile_definitions(aloft_${name} PRIVATE ${ARG_DEFINES})
  set_property(GLOBAL APPEND PROPERTY ALOFT_LIBRARIES aloft_${name})
  set_property(GLOBAL APPEND PROPERTY ALOFT_OUTSIDE ${ARG_LINK})
endfunction()

# aloft_test(NAME SOURCES a_test.cpp ... USES base ... [LABELS fast])
#
# One GoogleTest program a target; ctest runs it whole, as NAME.
function(aloft_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;USES;LABELS;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  foreach(folder IN LISTS ARG_USES)
    target_link_libraries(${name} PRIVATE aloft_${folder})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest aloft_test_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  # Tests share the processor with one another: a thread that waits must not spin.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
                                          ENVIRONMENT OMP_WAIT_POLICY=passive
                                          SKIP_RETURN_CODE 77)
endfunction()
