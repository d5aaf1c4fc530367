//! Builds shmem-verify, which consists of programs of the tests.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result};
use task_support::process;
use task_support::workspace::Workspace;

use crate::Toolchain;
use crate::files::Prefix;

/// The name of the program.
pub const NAME: &str = "shmem-verify";
/// Its own sources: a list of programs, the function that runs them, and the table of times.
const SOURCES: &str = "crates/shmem-c/verify";
/// The directory of the programs.
const PROGRAMS: &str = "crates/shmem-c/tests/programs";
/// The C half of shmem-perf, and its files with the operations that the program times.
const LOOPS: &str = "benches/shmem-perf/c";
const LOOP_FILES: [&str; 4] = ["alone.c", "buffers.c", "collective.c", "round_trip.c"];
/// A directory in the prefix for object files, which is removed at the end.
const OBJECTS: &str = "verify-objects";

/// Builds the program as one that finds the library relative to itself.
pub fn install(workspace: &Workspace, prefix: &Prefix, tools: &Toolchain) -> Result<()> {
    let sources = workspace.root.join(SOURCES);
    let objects = prefix.path(OBJECTS);
    prefix.make_dir(OBJECTS)?;
    let compiled = compile(workspace, &listed(&sources)?, prefix, tools)?;

    let program = prefix.add(&format!("bin/{NAME}"))?;
    let version = format!("-DVERSION=\"{}\"", env!("CARGO_PKG_VERSION"));
    let mut words = flags(prefix);
    words.extend([version.into(), "-pie".into(), "-o".into(), program.into()]);
    // The loops that are timed are compiled as shmem-perf compiles them.
    let loops = workspace.root.join(LOOPS);
    words.extend(["-O2".into(), "-I".into(), loops.clone().into()]);
    words.extend(["verify.c", "performance.c"].map(|file| sources.join(file).into()));
    words.extend(LOOP_FILES.map(|file| loops.join(file).into()));
    words.extend(compiled.into_iter().map(OsString::from));
    words.extend(["-Wl,-rpath,$ORIGIN/../lib", "-lrushmem", "-lm"].map(OsString::from));
    process::run(&mut tools.compiling(words.iter().map(OsString::as_os_str)))?;

    fs::remove_dir_all(&objects).with_context(|| format!("could not remove {}", objects.display()))
}

/// Returns the names of the programs in the list, whose lines are `PROGRAM("family", name, ..)`.
fn listed(sources: &Path) -> Result<Vec<String>> {
    let list = sources.join("programs.h");
    let text =
        fs::read_to_string(&list).with_context(|| format!("could not read {}", list.display()))?;
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("PROGRAM("));
    Ok(rows
        .filter_map(|row| Some(row.split(',').nth(1)?.trim().to_owned()))
        .collect())
}

/// Compiles the programs, as many at once as there are CPUs. Their functions `main` get other
/// names. Returns the object files.
fn compile(
    workspace: &Workspace,
    names: &[String],
    prefix: &Prefix,
    tools: &Toolchain,
) -> Result<Vec<PathBuf>> {
    let compile_one = |name: &String| -> Result<PathBuf> {
        let object = prefix.path(OBJECTS).join(format!("{name}.o"));
        let source = workspace.root.join(PROGRAMS).join(format!("{name}.c"));
        let mut words = flags(prefix);
        words.extend(["-c".into(), "-DSHMEM_VERIFY".into()]);
        words.push(format!("-Dmain=verify_{name}").into());
        words.extend([source.into(), "-o".into(), object.clone().into()]);
        process::run(&mut tools.compiling(words.iter().map(OsString::as_os_str)))?;
        Ok(object)
    };
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let mut objects = Vec::new();
    for names in names.chunks(at_once) {
        let compiled: Result<Vec<PathBuf>> = thread::scope(|scope| {
            let threads: Vec<_> = names
                .iter()
                .map(|name| scope.spawn(|| compile_one(name)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("the thread does not panic"))
                .collect()
        });
        objects.extend(compiled?);
    }
    Ok(objects)
}

/// Returns the flags for all files. There are no warnings (-w), since the tests of the programs
/// have them.
fn flags(prefix: &Prefix) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["-O1", "-w", "-pthread", "-fPIE"]
        .map(OsString::from)
        .into();
    words.extend(["-I".into(), prefix.path("include").into()]);
    words.extend(["-L".into(), prefix.path("lib").into()]);
    words
}
