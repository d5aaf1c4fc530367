//! The libraries as they are installed.
//!
//! A static library is one object file that shows the C names and nothing else. What rustc writes
//! has every Rust symbol in it, and in librushmem.a `shmem_x` as strong as `pshmem_x`; a profiling
//! tool could not define a `shmem_x` of its own. GNU ld and objcopy make one object of it in which
//! the names of the standard are weak, their twins are strong, and all others are local.
//!
//! The shared library is linked from the static library that cargo built, by a script that gives
//! each C and Fortran name a version and hides all others. rustc passes a script without versions
//! for its own shared libraries, beside which the linker allows no other.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use spec::Exports;
use task_support::process::run;

use crate::toolchain::Toolchain;

/// The prefix that the linker gives to the C library's `_Fork` in static programs (`--wrap`).
pub const WRAPPED: &str = "__wrap__Fork";

/// Makes librushmem.a of the static library that cargo built.
///
/// # Errors
/// When binutils are missing or refuse; the message shows the command.
pub fn pack(staticlib: &Path, out: &Path, tools: &Toolchain) -> Result<()> {
    let table = Exports::read();
    let mut kept = table.all();
    kept.push(WRAPPED.to_owned());
    join(staticlib, out, &kept, &table.names, tools)
}

/// Joins the sections of each kind, of which rustc makes one for each function: the list of them is
/// as large as the code.
const SECTIONS: &str = "SECTIONS {
    .text 0 : { *(.text .text.*) }
    .rodata 0 : { *(.rodata .rodata.*) }
    .data.rel.ro 0 : { *(.data.rel.ro .data.rel.ro.*) }
    .data 0 : { *(.data .data.*) }
    .bss 0 : { *(.bss .bss.*) }
    .tdata 0 : { *(.tdata .tdata.*) }
    .tbss 0 : { *(.tbss .tbss.*) }
    .gcc_except_table 0 : { *(.gcc_except_table .gcc_except_table.*) }
    .eh_frame 0 : { KEEP(*(.eh_frame)) }
}
";

/// Makes `out` of the static library that cargo built: one object with no other global names than
/// `kept`, of which some are weak, and with what these use.
///
/// # Errors
/// When binutils are missing or refuse; the message shows the command.
pub fn join(
    staticlib: &Path,
    out: &Path,
    kept: &[String],
    are_weak: &[String],
    tools: &Toolchain,
) -> Result<()> {
    let beside = |extension: &str| out.with_extension(extension);
    let object = beside("o");
    let exports = beside("exports");
    let (roots, script, weak) = (beside("roots"), beside("ld"), beside("weak"));
    write(&exports, kept)?;
    write(&weak, are_weak)?;
    write(&roots, &kept.iter().map(|name| format!("--undefined={name}")).collect::<Vec<_>>())?;
    write(&script, &[SECTIONS.to_owned()])?;

    // The members of split debug information have no note on the stack, so that ld would mark it as
    // executable.
    run(tools
        .binutil("ld")
        .args(["-r", "-z", "noexecstack", "--gc-sections", "--script"])
        .arg(&script)
        .arg(format!("@{}", roots.display()))
        .arg("--whole-archive")
        .arg(staticlib)
        .arg("-o")
        .arg(&object))?;
    run(tools
        .binutil("objcopy")
        // The LLVM plug-in of binutils fails on this bitcode.
        .args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd", "--strip-unneeded"])
        .arg(format!("--keep-global-symbols={}", exports.display()))
        .arg(format!("--weaken-symbols={}", weak.display()))
        .arg(&object))?;
    if out.exists() {
        fs::remove_file(out).with_context(|| format!("could not replace {}", out.display()))?;
    }
    run(tools.binutil("ar").arg("crs").arg(out).arg(&object))?;
    for path in [object, exports, roots, script, weak] {
        fs::remove_file(&path).with_context(|| format!("could not remove {}", path.display()))?;
    }
    Ok(())
}

fn write(path: &Path, names: &[String]) -> Result<()> {
    fs::write(path, names.join("\n") + "\n")
        .with_context(|| format!("could not write {}", path.display()))
}

/// The version of all symbols. It changes with the soname, when a program that was linked with an
/// older library would no longer work; docs/installing.md has the policy.
pub const VERSION: &str = "RUSHMEM_1";

/// The flags of the shared library for the linker.
const SHARED: [&str; 6] = [
    "-Wl,-soname,librushmem.so.1",
    // Threads run in it, and what it did to the program's static data outlives any dlclose.
    "-Wl,-z,nodelete",
    // Every shmem_x jumps to pshmem_x of this library directly instead of through the PLT.
    "-Wl,-Bsymbolic",
    // As rustc links.
    "-Wl,-z,relro,-z,now,-z,noexecstack",
    "-Wl,--gc-sections,--as-needed,-O1",
    "-Wl,--no-undefined-version",
];

/// Links librushmem.so.
///
/// # Errors
/// When the compiler is missing or refuses; the message shows the command.
pub fn link(staticlib: &Path, out: &Path, compiler: &str) -> Result<()> {
    let (script, new) = (out.with_extension("map"), out.with_extension("new"));
    let names: String = Exports::read().all().iter().map(|name| format!("  {name};\n")).collect();
    let text = format!("{VERSION} {{\nglobal:\n{names}local:\n  *;\n}};\n");
    fs::write(&script, text).with_context(|| format!("could not write {}", script.display()))?;
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words).args(["-shared", "-Wl,--whole-archive"]).arg(staticlib);
    command.arg("-Wl,--no-whole-archive").args(SHARED);
    command.arg(format!("-Wl,--version-script={}", script.display()));
    run(command.arg("-o").arg(&new).args(["-lpthread", "-ldl", "-lm"]))?;
    let placed = fs::remove_file(&script).and_then(|()| fs::rename(&new, out));
    placed.with_context(|| format!("could not place {}", out.display()))
}
