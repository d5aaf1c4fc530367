//! Compiles the functions that need C's `long double` or a number of 128 bits, and names the shared
//! library.

const SOURCES: [&str; 2] = ["src/longdouble.c", "src/quad.c"];

fn main() {
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .std("c11")
        .flag("-Werror=all")
        .flag("-fvisibility=hidden")
        .files(SOURCES)
        .compile("rushmem_arithmetic");

    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librushmem.so.1");
    // Every shmem_x jumps to pshmem_x of this library directly instead of through the PLT.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
