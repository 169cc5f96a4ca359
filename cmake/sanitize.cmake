if(ALOFT_SANITIZE)
  add_compile_options(-fsanitize=${ALOFT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ALOFT_SANITIZE})
endif()
