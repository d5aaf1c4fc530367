//! Names the shared library, which stays loaded: it hands out its functions, and watches the exit.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librushmem-race.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
