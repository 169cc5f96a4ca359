# catalogue_header(FOLDER MACRO)
#
# Writes aloft/catalogs/FOLDER.h into the build tree, from where it is installed with the headers of
# include/aloft: one #include for each line MACRO(stem) or MACRO(stem, ...) of src/FOLDER/catalog.inc. What a catalogue
# offers to users is so in the interface by its line. Lines of another macro are for the inside.
set(ALOFT_BUILT_INCLUDE ${PROJECT_BINARY_DIR}/include)
function(catalogue_header folder macro)
  set(catalogue ${PROJECT_SOURCE_DIR}/src/${folder}/catalog.inc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${catalogue})
  file(STRINGS ${catalogue} lines REGEX "^${macro}\\(")
  set(text "// Every header of src/${folder} that its catalog.inc offers to users; the build writes it.\n#pragma once\n\n")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^${macro}\\(([a-z0-9_]+)[,)].*" "\\1" stem "${line}")
    string(APPEND text "#include \"${folder}/${stem}.h\"\n")
  endforeach()
  # Written where it is new: what includes it is not compiled again for nothing.
  file(CONFIGURE OUTPUT ${ALOFT_BUILT_INCLUDE}/aloft/catalogs/${folder}.h CONTENT "${text}" @ONLY)
endfunction()
