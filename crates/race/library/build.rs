//! Sets the name of the shared library, and that it is never unloaded: the runtime keeps pointers
//! to its functions, and one of them runs at exit.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librushmem-race.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
