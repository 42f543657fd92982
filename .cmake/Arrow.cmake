# libstarling_arrow.so from rl/data/arrow/*.cpp: the only thing that includes or links Apache Arrow. Programs load it when they first read Parquet or Arrow (docs/adr/0033).
file(GLOB arrow_roots ${STARLING_WHEELS}/pyarrow-26.0.1-*/pyarrow)
if(NOT arrow_roots)
  message(FATAL_ERROR "Apache Arrow is not in ${STARLING_WHEELS}: run .ci/fetch_wheels.sh cpu (or make deps), or configure with -DSTARLING_RL=OFF")
endif()
list(GET arrow_roots 0 arrow_root)
file(GLOB arrow_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/rl/data/arrow/*.cpp)
add_library(starling_arrow MODULE ${arrow_sources} ${CMAKE_SOURCE_DIR}/rl/data/json_text.cpp)
target_compile_options(starling_arrow PRIVATE "SHELL:-idirafter ${arrow_root}/include")
set_target_properties(starling_arrow PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  INSTALL_RPATH "$ORIGIN/starling/arrow")
target_link_options(starling_arrow PRIVATE -Wl,--exclude-libs,ALL)
target_link_libraries(starling_arrow PRIVATE rl_weights runtime ${arrow_root}/libparquet.so.2600 ${arrow_root}/libarrow.so.2600)
