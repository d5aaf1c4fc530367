//! Compiles the C part of the program in Rust, as the build script of a user's program would.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=c/in_c.c");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let include = PathBuf::from(out).join("include");
    spec::write_headers(&include).expect("the headers");
    cc::Build::new()
        .std("c11")
        .include(include)
        .file("c/in_c.c")
        .compile("in_c");
}
