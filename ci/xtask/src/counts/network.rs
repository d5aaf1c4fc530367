//! Counts the instructions that the library executes of an operation over a network until
//! libfabric's provider is called: those that a NIC waits for.
//!
//! The provider is `strict` (ci/strict-fabric), whose domain `copy` completes every operation
//! before its call returns. So no call waits, and each takes the same number of instructions unless
//! the service thread polls at the same time: the median of some calls is the same every day. Each
//! call begins with nothing in flight.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::Workspace;

/// The routines that are counted; benches/counts.c knows how to call each.
pub const ROUTINES: &[&str] = &["shmem_putmem", "shmem_getmem", "shmem_long_atomic_fetch_add"];

/// The prefix of a routine's name among the pinned numbers.
pub const PREFIX: &str = "until-provider:";
/// The functions of the provider.
const PROVIDER: &str = "strict_fi_*";

const LIBRARY: &str = "/librushmem.so.1";
const CALLS: usize = 21;
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the directory in which libfabric finds the provider that was built.
pub fn provider(workspace: &Workspace, built: &Path) -> Result<PathBuf> {
    let dir = workspace.target.join("strict-fabric");
    fs::create_dir_all(&dir)?;
    fs::copy(built, dir.join("libstrict-fi.so")).context("the provider for tests")?;
    Ok(dir)
}

/// Counts the instructions of one call of a routine by `program` to another PE until the provider
/// is called first. Returns the name among the pinned numbers, and the number.
pub fn counted(
    workspace: &Workspace,
    (prefix, provider): (&Path, &Path),
    program: &Path,
    routine: &str,
) -> Result<(String, u64)> {
    let job = CountedJob { prefix, provider, program, routine };
    let counts = until_provider(&job.parts(workspace)?);
    Ok((format!("{PREFIX}{routine}"), median(routine, counts)?))
}

/// Returns for each call the instructions until the first call of the provider.
fn until_provider(parts: &[CallgrindPart]) -> Vec<u64> {
    let mut calls = Vec::new();
    let (mut until, mut all) = (None, 0);
    for part in parts {
        all += part.own;
        if part.is_before_provider {
            if all > 0 {
                until.get_or_insert(all);
            }
        } else if all > 0 {
            calls.push(until.take().unwrap_or(all));
            all = 0;
        }
    }
    calls
}

/// A job of two PEs, the first of which calls a routine.
struct CountedJob<'a> {
    prefix: &'a Path,
    provider: &'a Path,
    program: &'a Path,
    routine: &'a str,
}

/// The counts of callgrind from one dump to the next.
struct CallgrindPart {
    /// It comes after all parts with lower numbers.
    number: u64,
    /// It ends where the provider is called, and not where the routine returns.
    is_before_provider: bool,
    /// The library's instructions.
    own: u64,
}

impl CountedJob<'_> {
    /// Returns the parts of the first PE in their order.
    fn parts(&self, workspace: &Workspace) -> Result<Vec<CallgrindPart>> {
        let CountedJob { prefix, provider, program, routine } = *self;
        let dir = workspace.target.join("counts-parts");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir)?;
        let into = |name: &str| format!("{}/{name}.%q{{SHMEM_LOCAL_ID}}", dir.display());
        let mut job = process::limited(LIMIT, prefix.join("bin/oshrun"));
        job.args(["-n", "2", "valgrind", "--tool=callgrind", "--compress-strings=no"])
            .arg(format!("--toggle-collect={routine}"))
            .arg(format!("--dump-after={routine}"))
            // Callgrind 3.19 forgets the options of a function that another one's come between.
            .arg(format!("--dump-before={PROVIDER}"))
            .arg(format!("--callgrind-out-file={}", into("out")))
            .arg(format!("--log-file={}", into("log")))
            .arg(program)
            .args([routine, &CALLS.to_string()]);
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
            let text = fs::read_to_string(&file)?;
            parts.push(CallgrindPart {
                number: name.parse().with_context(|| format!("callgrind's file {name}"))?,
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
        let part = |is_before_provider, own| CallgrindPart { number: 0, is_before_provider, own };
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
        assert_eq!(until_provider(&parts), [9, 8, 5]);
    }

    #[test]
    fn what_the_provider_takes_does_not_count() {
        let part = "summary: 18\n\nob=/lib/librushmem.so.1\nfn=shmem_putmem\n16 7\n+3 2\ncob=/x/libstrict-fi.so\n\
            cfn=strict_fi_writemsg\ncalls=1 0 \n* 5\n-1 4\n\nob=/x/libstrict-fi.so\nfn=strict_fi_writemsg\n0 5\n";
        assert_eq!(own(part), 13);
        assert_eq!(own("summary: 0\n"), 0);
    }
}
