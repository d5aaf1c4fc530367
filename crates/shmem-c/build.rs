//! Compiles the functions that need C's `long double`, and names the shared library.

fn main() {
    println!("cargo:rerun-if-changed=src/longdouble.c");
    cc::Build::new()
        .std("c11")
        .flag("-Werror=all")
        .flag("-fvisibility=hidden")
        .file("src/longdouble.c")
        .compile("rushmem_longdouble");

    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librushmem.so.1");
    // Every shmem_x jumps to pshmem_x of this library directly instead of through the PLT.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
