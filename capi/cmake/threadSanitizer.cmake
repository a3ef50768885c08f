# Has cargo instrument the library, and Rust's standard library in it, for ThreadSanitizer: `cargo` and NBBS_CARGO_FLAGS.
# The runtime is the program's. One that is older than nightly Rust has __tsan_memcpy and its kin by their plain names only,
# under which it sees them anyway.
set(cargo "${CMAKE_COMMAND}" -E env RUSTUP_TOOLCHAIN=nightly
    "RUSTFLAGS=-Zsanitizer=thread -Zexternal-clangrt -Cllvm-args=-tsan-instrument-memintrinsics=0 $ENV{RUSTFLAGS}" "${CARGO}")
string(APPEND NBBS_CARGO_FLAGS " -Zbuild-std")
if(NOT NBBS_CARGO_FLAGS MATCHES "--target")
    execute_process(COMMAND "${CARGO}" -vV OUTPUT_VARIABLE host)
    string(REGEX REPLACE ".*host: ([^\n]+).*" "\\1" host "${host}")
    string(APPEND NBBS_CARGO_FLAGS " --target=${host}")
endif()
