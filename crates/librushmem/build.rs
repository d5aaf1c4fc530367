//! Compiles what stable Rust cannot say, as the build script of rushmem-c does, and names the
//! shared library.

const SOURCES: [&str; 3] = [
    "../shmem-c/src/longdouble.c",
    "../shmem-c/src/fortran/quad.c",
    "../shmem-c/src/fortran/units.c",
];

fn main() {
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .std("c11")
        .flag("-Werror=all")
        .flag("-fvisibility=hidden")
        .files(SOURCES)
        .compile("rushmem_in_c");

    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librushmem.so.1");
    // Threads run in it, and what it did to the program's static data outlives any dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Every shmem_x jumps to pshmem_x of this library directly instead of through the PLT.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
