# ALOFT_SANITIZE names the sanitizers; a finding ends the program, so that a test fails on it.
if(ALOFT_SANITIZE)
  set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")
  add_compile_options(-fsanitize=${ALOFT_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ALOFT_SANITIZE})
endif()
