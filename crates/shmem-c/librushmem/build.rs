//! Compiles the C sources of rushmem-c as its build script does, and sets `cfg(librushmem)` for the
//! Rust sources.

const SOURCES: [&str; 3] = [
    "../src/longdouble.c",
    "../src/fortran/quad.c",
    "../src/fortran/units.c",
];

fn main() {
    println!("cargo:rustc-cfg=librushmem");
    println!("cargo:rustc-check-cfg=cfg(librushmem)");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .std("c11")
        .flag("-Werror=all")
        .flag("-fvisibility=hidden")
        .files(SOURCES)
        .compile("rushmem_in_c");
}
