//! Compiles the C half of the program in Rust, as that of any user would.

fn main() {
    println!("cargo:rerun-if-changed=c/in_c.c");
    cc::Build::new()
        .std("c11")
        .include("../../crates/shmem-c/include")
        .file("c/in_c.c")
        .compile("in_c");
}
