//! Builds shmem-verify, which consists of programs of the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::process;
use crate::workspace::Workspace;
use anyhow::{Context, Result};

use super::Toolchain;
use super::files::Prefix;

/// The name of the program.
pub const NAME: &str = "shmem-verify";
/// Its own sources: a list of programs, the function that runs them, and the table of times; and
/// its man page.
pub const SOURCES: &str = "launcher/shmem-verify";
/// The directory of the programs.
const PROGRAMS: &str = "crates/shmem-c/tests/programs";
/// The C half of shmem-perf, and its files with the operations that the program times.
const LOOPS: &str = "launcher/shmem-perf/c";
const LOOP_FILES: [&str; 4] = ["alone.c", "buffers.c", "collective.c", "round_trip.c"];
/// A directory in the prefix for object files, which is removed at the end.
const OBJECTS: &str = "verify-objects";

/// Builds the program as one that finds the library relative to itself.
pub fn install(workspace: &Workspace, prefix: &Prefix, tools: &Toolchain) -> Result<()> {
    let sources = workspace.root.join(SOURCES);
    let objects = prefix.path(OBJECTS);
    prefix.make_dir(OBJECTS)?;
    let compiled = compile_programs(workspace, &listed(&sources)?, prefix, tools)?;

    let program = prefix.add(&format!("bin/{NAME}"))?;
    let mut compiler = compiler(prefix, tools);
    compiler.arg(format!("-DVERSION=\"{}\"", env!("CARGO_PKG_VERSION")));
    compiler.args(["-pie", "-o"]).arg(program);

    // The loops that are timed are compiled as shmem-perf compiles them.
    let loops = workspace.root.join(LOOPS);
    compiler.args(["-O2", "-I"]).arg(&loops);
    for file in ["verify.c", "performance.c"] {
        compiler.arg(sources.join(file));
    }
    for file in LOOP_FILES {
        compiler.arg(loops.join(file));
    }
    compiler.args(compiled);
    compiler.args(["-Wl,-rpath,$ORIGIN/../lib", "-lrushmem", "-lm"]);
    process::run(&mut compiler)?;

    fs::remove_dir_all(&objects).with_context(|| format!("could not remove {}", objects.display()))
}

/// Returns the names of the programs in the list, whose lines are `PROGRAM("family", name, ..)`.
fn listed(sources: &Path) -> Result<Vec<String>> {
    let list = sources.join("programs.h");
    let text =
        fs::read_to_string(&list).with_context(|| format!("could not read {}", list.display()))?;

    let mut names = Vec::new();
    for line in text.lines() {
        // The list has comments and blank lines, too.
        let Some(row) = line.strip_prefix("PROGRAM(") else {
            continue;
        };
        let name = row.split(',').nth(1).context("a program has a name")?;
        names.push(name.trim().to_owned());
    }
    Ok(names)
}

/// Compiles the programs, as many at once as there are CPUs. Returns the object files.
fn compile_programs(
    workspace: &Workspace,
    names: &[String],
    prefix: &Prefix,
    tools: &Toolchain,
) -> Result<Vec<PathBuf>> {
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let mut objects = Vec::new();
    for names in names.chunks(at_once) {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for name in names {
                threads.push(scope.spawn(|| compile_program(workspace, name, prefix, tools)));
            }
            for thread in threads {
                objects.push(thread.join().expect("the thread does not panic")?);
            }
            anyhow::Ok(())
        })?;
    }
    Ok(objects)
}

/// Compiles one program. Its function `main` gets another name, since all programs become one.
/// Returns the object file.
fn compile_program(
    workspace: &Workspace,
    name: &str,
    prefix: &Prefix,
    tools: &Toolchain,
) -> Result<PathBuf> {
    let object = prefix.path(OBJECTS).join(format!("{name}.o"));
    let source = workspace.root.join(PROGRAMS).join(format!("{name}.c"));
    let mut compiler = compiler(prefix, tools);
    compiler.args(["-c", "-DSHMEM_VERIFY"]);
    compiler.arg(format!("-Dmain=verify_{name}"));
    compiler.arg(source).arg("-o").arg(&object);
    process::run(&mut compiler)?;
    Ok(object)
}

/// Returns the compiler with the flags for all files. It prints no warnings (-w), since the tests
/// compile the programs with warnings.
fn compiler(prefix: &Prefix, tools: &Toolchain) -> Command {
    let mut compiler = tools.compiler();
    compiler.args(["-O1", "-w", "-pthread", "-fPIE"]);
    compiler.arg("-I").arg(prefix.path("include"));
    compiler.arg("-L").arg(prefix.path("lib"));
    compiler
}
