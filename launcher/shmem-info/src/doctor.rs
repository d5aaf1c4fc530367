//! `--doctor`: reports whether this machine, or all hosts of a job, can run a job; if not, also the
//! reason, and a remedy if one is known.
//!
//! `host` examines the machine, and `transports` the providers, each in a process of its own
//! (`examination`); both return lists of findings (`finding`). `job` runs short jobs of the program
//! `pe` and jobs of `shmem-perf`, and shows the `outcome` of each and the `times` of operations.

mod examination;
mod finding;
mod host;
mod job;
mod outcome;
mod pe;
mod times;
mod transports;

pub use examination::report;
use finding::{Finding, Grade, verdict};
pub use job::{Examined, examine};
pub use pe::{Role, run};

/// Returns the doctor's report on this machine, and true if a job can run on it. With `says_why`,
/// the report gives the reason for each part of a transport that is not used.
pub fn this_machine(says_why: bool) -> Result<(String, bool), String> {
    let sections = transports::with_host()?;
    let text: String = sections
        .iter()
        .map(|section| section.text(says_why))
        .collect();
    let bad: Vec<&Finding> = sections
        .iter()
        .flat_map(|section| &section.findings)
        .filter(|finding| finding.grade == Grade::Bad)
        .collect();
    let verdict = match bad.first() {
        None => verdict(
            true,
            ": this machine can run jobs; `oshrun --doctor` tries one",
        ),
        Some(first) => verdict(false, &format!(": repair first {first}")),
    };
    Ok((format!("{verdict}\n{text}"), bad.is_empty()))
}
