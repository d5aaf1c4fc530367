//! How many instructions the library adds to an operation over a network: its own ones of a call, without those of libfabric's
//! provider.
//!
//! The provider is `strict` (ci/strict-fabric), whose domain `copy` completes every operation before its call returns. So nobody
//! waits, and a call takes the same number of instructions each time but when the service thread comes in between: the median
//! of some calls does not depend on the day. Each call begins with nothing in flight.
//!
//! Threads that each have a private context take no lock of each other's, so that a call takes as many instructions beside other
//! threads as alone: the largest median of several threads is pinned beside that of one. valgrind runs one thread at a time, so
//! this shows a longer path, but no time that is spent waiting.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use workbench::process;
use workbench::workspace::Workspace;

/// The routines that are counted, by their default and by a private context; benches/counts.c knows how to call each.
pub const ROUTINES: &[&str] = &[
    "shmem_putmem",
    "shmem_putmem_nbi",
    "shmem_getmem",
    "shmem_long_atomic_fetch_add",
    "shmem_ctx_putmem",
    "shmem_ctx_putmem_nbi",
    "shmem_ctx_getmem",
    "shmem_ctx_long_atomic_fetch_add",
];

/// What precedes a routine's name among the pinned numbers.
const PREFIX: &str = "network:";

const LIBRARY: &str = "/librushmem.so.1";
const CALLS: usize = 21;
const THREADS: usize = 4;
const LIMIT: Duration = Duration::from_secs(120);
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// Builds the provider; the folder in which libfabric finds it.
pub fn provider(workspace: &Workspace) -> Result<PathBuf> {
    process::run(
        process::limited(BUILD_LIMIT, "cargo")
            .args(["build", "--quiet", "--release", "-p", "strict-fabric"])
            .current_dir(&workspace.root),
    )?;
    let folder = workspace.target.join("strict-fabric");
    fs::create_dir_all(&folder)?;
    let built = workspace.target.join("release/libstrict_fabric.so");
    fs::copy(&built, folder.join("libstrict-fi.so")).context("the provider for tests")?;
    Ok(folder)
}

/// Instructions of one call of a routine by `program` to another PE, and its name among the pinned numbers.
pub fn counted(
    workspace: &Workspace,
    (prefix, provider): (&Path, &Path),
    program: &Path,
    routine: &str,
) -> Result<(String, u64)> {
    let mut parts = parts(workspace, (prefix, provider), program, routine, None)?;
    let all = parts.values_mut().flat_map(std::mem::take).collect();
    Ok((format!("{PREFIX}{routine}"), median(routine, all)?))
}

/// The same of the thread with the largest median, where some threads at once each put on a private context.
pub fn in_threads(
    workspace: &Workspace,
    (prefix, provider): (&Path, &Path),
    program: &Path,
) -> Result<(String, u64)> {
    let routine = "shmem_ctx_putmem_nbi";
    let parts = parts(workspace, (prefix, provider), program, routine, Some(THREADS))?;
    let medians: Result<Vec<u64>> =
        parts.into_values().filter(|all| !all.is_empty()).map(|all| median(routine, all)).collect();
    let medians = medians?;
    if medians.len() != THREADS {
        bail!("callgrind saw {} threads instead of {THREADS}", medians.len());
    }
    let most = medians.into_iter().max().unwrap_or(0);
    Ok((format!("{PREFIX}{THREADS}-threads:{routine}"), most))
}

/// The own instructions of what callgrind counted from one dump to the next, by the number of the thread.
fn parts(
    workspace: &Workspace,
    (prefix, provider): (&Path, &Path),
    program: &Path,
    routine: &str,
    threads: Option<usize>,
) -> Result<BTreeMap<String, Vec<u64>>> {
    let folder = workspace.target.join("counts-parts");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let into = |name: &str| format!("{}/{name}.%q{{SHMEM_LOCAL_ID}}", folder.display());
    let mut job = process::limited(LIMIT, prefix.join("bin/oshrun"));
    job.args(["-n", "2", "valgrind", "--tool=callgrind", "--compress-strings=no"])
        .arg(format!("--toggle-collect={routine}"))
        .arg(format!("--dump-after={routine}"))
        .arg(format!("--callgrind-out-file={}", into("out")))
        .arg(format!("--log-file={}", into("log")))
        .args(threads.map(|_| "--separate-threads=yes"))
        .arg(program)
        .args([routine, &CALLS.to_string()])
        .args(threads.map(|threads| threads.to_string()));
    for (name, value) in [
        ("FI_PROVIDER_PATH", provider.to_str().context("the path is no UTF-8")?),
        ("SHMEM_TRANSPORT", "ofi"),
        ("SHMEM_OFI_PROVIDER", "strict"),
        ("SHMEM_OFI_DOMAIN", "copy"),
        ("SHMEM_AMOS", "network"),
        ("SHMEM_ONNODE", "off"),
        ("SHMEM_SYMMETRIC_SIZE", "1m"),
    ] {
        job.env(name, value);
    }
    process::run(&mut job)?;
    let mut parts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for part in fs::read_dir(&folder)? {
        let part = part?.path();
        let name = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("out.0.") {
            continue;
        }
        let thread = name.split_once('-').map_or("", |(_, thread)| thread);
        let count = own(&fs::read_to_string(&part)?);
        // Of what follows the last call, and of threads that did not call meanwhile.
        if count > 0 {
            parts.entry(thread.to_owned()).or_default().push(count);
        }
    }
    Ok(parts)
}

fn median(routine: &str, mut counts: Vec<u64>) -> Result<u64> {
    counts.sort_unstable();
    if counts.len() < CALLS {
        bail!("callgrind saw {} calls of {routine} instead of {CALLS}", counts.len());
    }
    Ok(counts[counts.len() / 2])
}

/// The instructions in a part of callgrind's output that are the library's. A line of costs that follows `calls=` repeats what the
/// callee took.
fn own(part: &str) -> u64 {
    let (mut object, mut is_callee, mut all) = ("", false, 0);
    for line in part.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        } else if line.starts_with("calls=") {
            is_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse().ok());
            if !std::mem::take(&mut is_callee) && object.ends_with(LIBRARY) {
                all += cost.unwrap_or(0);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_provider_takes_does_not_count() {
        let part = "summary: 18\n\nob=/lib/librushmem.so.1\nfn=shmem_putmem\n16 7\n+3 2\ncob=/x/libstrict-fi.so\n\
            cfn=strict_fi_writemsg\ncalls=1 0 \n* 5\n-1 4\n\nob=/x/libstrict-fi.so\nfn=strict_fi_writemsg\n0 5\n";
        assert_eq!(own(part), 13);
        assert_eq!(own("summary: 0\n"), 0);
    }
}
