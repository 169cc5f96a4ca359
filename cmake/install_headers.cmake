# Runs at install time with `from` (the source tree), `built` (headers that the build writes) and `to`
# (the include folder): copies include/aloft/*.h and, to aloft/src/, every header of ours that they
# reach. Following the includes keeps the installed set exactly what the public headers need, with no
# list to forget.
cmake_minimum_required(VERSION 3.25)
file(GLOB public RELATIVE ${from}/include ${from}/include/aloft/*.h)
set(todo ${public})

set(seen)
while(todo)
  list(POP_FRONT todo header)
  if(header IN_LIST seen)
    continue()
  endif()
  list(APPEND seen ${header})
  get_filename_component(folder ${header} DIRECTORY)
  if(EXISTS ${from}/src/${header})
    set(path ${from}/src/${header})
    file(INSTALL ${path} DESTINATION ${to}/aloft/src/${folder})
  elseif(EXISTS ${from}/include/${header})
    set(path ${from}/include/${header})
    file(INSTALL ${path} DESTINATION ${to}/${folder})
  elseif(EXISTS ${built}/${header})
    set(path ${built}/${header})
    file(INSTALL ${path} DESTINATION ${to}/${folder})
  else()
    continue()  # of the C++ library
  endif()
  file(STRINGS ${path} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<]")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[^\"<]*[\"<]([^\">]+)[\">].*" "\\1" header "${line}")
    list(APPEND todo ${header})
  endforeach()
endwhile()
