//! Compiles fork.c: the function that runs in place of `_Fork` in a static program, where the
//! linker option `--wrap=_Fork` calls it by its name in C.

fn main() {
    println!("cargo:rerun-if-changed=src/statics/fork.c");
    cc::Build::new()
        .std("c11")
        .flag("-Werror=all")
        .flag("-fvisibility=hidden")
        .file("src/statics/fork.c")
        .compile("rushmem_fork");
}
