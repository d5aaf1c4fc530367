//! Counts the instructions that the library adds to an operation over a network: its own ones of a
//! call, without those of libfabric's provider.
//!
//! The provider is `strict` (ci/strict-fabric), whose domain `copy` completes every operation
//! before its call returns. So nobody waits, and a call takes the same number of instructions each
//! time but when the service thread comes in between: the median of some calls does not depend on
//! the day. Each call begins with nothing in flight. What a NIC waits for are those until the
//! provider is called first, which are pinned by themselves.
//!
//! Threads that each have a private context take no lock of each other's, so that a call takes as
//! many instructions beside other threads as alone: the largest median of several threads is pinned
//! beside that of one. valgrind runs one thread at a time, so this shows a longer path, but no time
//! that is spent waiting.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::Workspace;

/// The routines that are counted, by their default and by a private context; benches/counts.c knows
/// how to call each.
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

/// The prefix of a routine's name among the pinned numbers: of a whole call, and until the provider
/// is called.
const PREFIX: &str = "network:";
const UNTIL_PROVIDER: &str = "until-provider:";
/// The functions of the provider.
const PROVIDER: &str = "strict_fi_*";

const LIBRARY: &str = "/librushmem.so.1";
const CALLS: usize = 21;
const THREADS: usize = 4;
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the directory in which libfabric finds the provider that was built.
pub fn provider(workspace: &Workspace, built: &Path) -> Result<PathBuf> {
    let dir = workspace.target.join("strict-fabric");
    fs::create_dir_all(&dir)?;
    fs::copy(built, dir.join("libstrict-fi.so")).context("the provider for tests")?;
    Ok(dir)
}

/// Instructions of one call of a routine by `program` to another PE, and those until the provider
/// is called first, with their names among the pinned numbers.
pub fn counted(
    workspace: &Workspace,
    (prefix, provider): (&Path, &Path),
    program: &Path,
    routine: &str,
) -> Result<[(String, u64); 2]> {
    let options = [format!("--dump-before={PROVIDER}")];
    let job = CountedJob { prefix, provider, program, routine, threads: None };
    let calls = calls(&job.parts(workspace, &options)?);
    let (until, all) = calls.into_iter().unzip();
    Ok([
        (format!("{UNTIL_PROVIDER}{routine}"), median(routine, until)?),
        (format!("{PREFIX}{routine}"), median(routine, all)?),
    ])
}

/// Returns for each call the instructions until the first call of the provider, and all of them.
fn calls(parts: &[CallgrindPart]) -> Vec<(u64, u64)> {
    let mut calls = Vec::new();
    let (mut until, mut all) = (None, 0);
    for part in parts {
        all += part.own;
        if part.is_before_provider {
            if all > 0 {
                until.get_or_insert(all);
            }
        } else if all > 0 {
            calls.push((until.take().unwrap_or(all), std::mem::take(&mut all)));
        }
    }
    calls
}

/// Counts the instructions of the thread with the largest median, where several threads at once
/// each put on a private context.
pub fn in_threads(
    workspace: &Workspace,
    (prefix, provider): (&Path, &Path),
    program: &Path,
) -> Result<(String, u64)> {
    let routine = "shmem_ctx_putmem_nbi";
    let job = CountedJob { prefix, provider, program, routine, threads: Some(THREADS) };
    let mut threads: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for part in job.parts(workspace, &["--separate-threads=yes".to_owned()])? {
        // A thread that did not call meanwhile has none.
        if part.own > 0 {
            threads.entry(part.thread).or_default().push(part.own);
        }
    }
    let medians: Result<Vec<u64>> = threads.into_values().map(|all| median(routine, all)).collect();
    let medians = medians?;
    if medians.len() != THREADS {
        bail!("callgrind saw {} threads instead of {THREADS}", medians.len());
    }
    let most = medians.into_iter().max().unwrap_or(0);
    Ok((format!("{PREFIX}{THREADS}-threads:{routine}"), most))
}

/// A job of two PEs, the first of which calls a routine.
struct CountedJob<'a> {
    prefix: &'a Path,
    provider: &'a Path,
    program: &'a Path,
    routine: &'a str,
    threads: Option<usize>,
}

/// The counts of callgrind from one dump to the next.
struct CallgrindPart {
    /// It comes after all parts with lower numbers.
    number: u64,
    thread: String,
    /// It ends where the provider is called, and not where the routine returns.
    is_before_provider: bool,
    /// The library's instructions.
    own: u64,
}

impl CountedJob<'_> {
    /// Returns the parts of the first PE in their order, of a run with these options of callgrind's
    /// beside the usual ones.
    fn parts(&self, workspace: &Workspace, options: &[String]) -> Result<Vec<CallgrindPart>> {
        let CountedJob { prefix, provider, program, routine, threads } = *self;
        let dir = workspace.target.join("counts-parts");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir)?;
        let into = |name: &str| format!("{}/{name}.%q{{SHMEM_LOCAL_ID}}", dir.display());
        let mut job = process::limited(LIMIT, prefix.join("bin/oshrun"));
        job.args(["-n", "2", "valgrind", "--tool=callgrind", "--compress-strings=no"])
            .arg(format!("--toggle-collect={routine}"))
            .arg(format!("--dump-after={routine}"))
            .arg(format!("--callgrind-out-file={}", into("out")))
            .arg(format!("--log-file={}", into("log")))
            .args(options)
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
        let mut parts = Vec::new();
        for file in fs::read_dir(&dir)? {
            let file = file?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(name) = name.strip_prefix("out.0.") else { continue };
            let (number, thread) = name.split_once('-').unwrap_or((name, ""));
            let text = fs::read_to_string(&file)?;
            parts.push(CallgrindPart {
                number: number.parse().with_context(|| format!("callgrind's file {name}"))?,
                thread: thread.to_owned(),
                is_before_provider: text.contains("\ndesc: Trigger: --dump-before="),
                own: own(&text),
            });
        }
        parts.sort_by_key(|part| part.number);
        Ok(parts)
    }
}

fn median(routine: &str, mut counts: Vec<u64>) -> Result<u64> {
    counts.sort_unstable();
    if counts.len() < CALLS {
        bail!("callgrind saw {} calls of {routine} instead of {CALLS}", counts.len());
    }
    Ok(counts[counts.len() / 2])
}

/// Returns the instructions in a part of callgrind's output that are the library's. A line of costs
/// that follows `calls=` repeats what the callee took.
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
    fn a_call_ends_where_the_routine_returns() {
        let part = |is_before_provider, own| CallgrindPart {
            number: 0,
            thread: String::new(),
            is_before_provider,
            own,
        };
        // The second call goes to the provider twice, the third one never; other calls of the
        // library go there between them.
        let parts = [
            part(true, 0),
            part(true, 9),
            part(false, 2),
            part(true, 0),
            part(true, 8),
            part(true, 1),
            part(false, 3),
            part(false, 5),
            part(false, 0),
        ];
        assert_eq!(calls(&parts), [(9, 11), (8, 12), (5, 5)]);
    }

    #[test]
    fn what_the_provider_takes_does_not_count() {
        let part = "summary: 18\n\nob=/lib/librushmem.so.1\nfn=shmem_putmem\n16 7\n+3 2\ncob=/x/libstrict-fi.so\n\
            cfn=strict_fi_writemsg\ncalls=1 0 \n* 5\n-1 4\n\nob=/x/libstrict-fi.so\nfn=strict_fi_writemsg\n0 5\n";
        assert_eq!(own(part), 13);
        assert_eq!(own("summary: 0\n"), 0);
    }
}
