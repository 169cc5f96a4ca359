find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the checkout, so that two checkouts share one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros ${CCACHE})
endif()
