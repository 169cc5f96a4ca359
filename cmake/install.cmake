# make install: the program, one shared library, the public headers with what they include, and a
# CMake package. An outside project says find_package(aloft) and links aloft::aloft.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# All folders but the command line in one shared library: a user links one thing, and none of our
# dependencies is a dependency of his.
get_property(folders GLOBAL PROPERTY ALOFT_LIBRARIES)
list(REMOVE_ITEM folders aloft_cli)
get_property(outside GLOBAL PROPERTY ALOFT_OUTSIDE)
list(REMOVE_DUPLICATES outside)
add_library(aloft_shared SHARED)
foreach(folder IN LISTS folders)
  target_sources(aloft_shared PRIVATE $<TARGET_OBJECTS:${folder}>)
endforeach()
target_link_libraries(aloft_shared PRIVATE ${outside} OpenMP::OpenMP_CXX)
target_compile_features(aloft_shared INTERFACE cxx_std_20)
# Public headers include ours as "types/shape.h": these lie beside them in include/aloft.
target_include_directories(
  aloft_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/aloft/src>)
set_target_properties(aloft_shared PROPERTIES OUTPUT_NAME aloft EXPORT_NAME aloft
                      LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR})

# CMake puts DESTDIR before what it installs itself. Made absolute, it means one folder for all of
# it, wherever a step works.
install(CODE "if(NOT \"\$ENV{DESTDIR}\" STREQUAL \"\")
  get_filename_component(staging \"\$ENV{DESTDIR}\" ABSOLUTE)
  set(ENV{DESTDIR} \"\${staging}\")
endif()")
install(TARGETS aloft_shared EXPORT aloft LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET aloft)
  # Who builds the program can install: the library is made of the same objects.
  add_dependencies(aloft aloft_shared)
  install(TARGETS aloft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(CODE "set(from \"${PROJECT_SOURCE_DIR}\")
set(built \"${ALOFT_BUILT_INCLUDE}\")
set(to \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/aloft)
install(EXPORT aloft NAMESPACE aloft:: FILE aloft-config.cmake DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/aloft-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/aloft-config-version.cmake DESTINATION ${package_dir})

# What a user reads: recipes, the pages about what the program says and leaves, an index of the C++
# interface made from the headers.
install(DIRECTORY recipes/ DESTINATION ${CMAKE_INSTALL_DATADIR}/aloft/recipes
        FILES_MATCHING PATTERN "*.toml" PATTERN "README.md")
set(pages acc-check chat-templates check-config checkpoints compare errors exit-codes families
    find-a-nan from-apex from-mindspore from-pytorch from-transformers generate hooks listeners
    memory metrics number-types optimizers parameter-groups plan-cache port-from-pytorch precision
    probe profile redo run-directory taps tensorboard threads tokenizers trends)
list(TRANSFORM pages REPLACE "(.+)" "docs/\\1.md")
install(FILES ${pages} LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/decisions DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        FILES_MATCHING PATTERN "*.cpp" PATTERN "*.h" PATTERN "README.md")
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  install(CODE "execute_process(
    COMMAND \"${Python3_EXECUTABLE}\" -B \"${PROJECT_SOURCE_DIR}/tools/api_index\"
            \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}/api.md\"
    COMMAND_ERROR_IS_FATAL ANY)")
endif()
