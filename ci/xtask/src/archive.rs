//! Static libraries as they are installed: one object file that shows the C names and nothing else.
//!
//! What rustc writes has every Rust symbol in it, and in librushmem.a `shmem_x` as strong as
//! `pshmem_x`; a profiling tool could not define a `shmem_x` of its own. GNU ld and objcopy make
//! one object of it in which the names of the standard are weak, their twins are strong, and all
//! others are local.

use std::fs;
use std::path::Path;

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

    // Split debug information lies in members that say nothing of the stack, which ld takes for a
    // wish that it be executable.
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
        // Bitcode that binutils' LLVM plug-in chokes on.
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
