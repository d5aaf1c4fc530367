//! Compiles the part of fork's handling that a static program's linker finds by its C name.

fn main() {
    println!("cargo:rerun-if-changed=src/statics/fork.c");
    cc::Build::new()
        .std("c11")
        .flag("-Werror=all")
        .flag("-fvisibility=hidden")
        .file("src/statics/fork.c")
        .compile("rushmem_fork");
}
