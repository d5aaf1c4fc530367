//! Decides how `mem` accesses symmetric memory: by instructions that are opaque to the compiler,
//! unless none are written for the processor, or Miri or ThreadSanitizer has to see the accesses.

use std::env;

fn main() {
    let target = |key: &str| env::var(format!("CARGO_CFG_{key}")).unwrap_or_default();
    let race_detector = target("SANITIZE")
        .split(',')
        .any(|sanitizer| sanitizer == "thread");
    let has_instructions = ["x86_64", "aarch64"].contains(&target("TARGET_ARCH").as_str());
    let is_miri = env::var_os("CARGO_CFG_MIRI").is_some();

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(opaque, race_detector)");

    if race_detector {
        println!("cargo::rustc-cfg=race_detector");
    } else if has_instructions && !is_miri {
        println!("cargo::rustc-cfg=opaque");
    }
}
