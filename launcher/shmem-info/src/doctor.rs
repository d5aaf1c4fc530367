//! `--doctor`: whether this machine, or all hosts of a job, can run a job; and if not, why and what
//! helps.
//!
//! `host` and `gids` look at the machine, `transports` at the providers and `connections` at jobs
//! that would make many, all as lists of `finding`s; `machine` has all of them. Each provider is
//! examined in a `child`, whose report is an `examination`. `job` runs short jobs, whose program is
//! `pe`, and shows their `outcome`; they compare transports with a `socket`. Reports are lines with
//! a `mark`.

mod child;
mod connections;
mod examination;
mod finding;
mod gids;
mod host;
mod job;
mod machine;
mod mark;
mod outcome;
mod pe;
mod socket;
mod timing;
mod transports;

pub use examination::report;
use finding::{Finding, Grade, verdict};
pub use job::{Examined, examine};
pub use pe::{Role, run};

/// Returns what the doctor prints of this machine, and whether a job can run on it.
pub fn this_machine(says_why: bool) -> Result<(String, bool), String> {
    let sections = machine::sections()?;
    let text: String = sections.iter().map(|section| section.text(says_why)).collect();
    let bad = sections.iter().flat_map(|section| &section.findings);
    let bad: Vec<&Finding> = bad.filter(|finding| finding.grade == Grade::Bad).collect();
    let verdict = match bad.first() {
        None => verdict(true, ": this machine can run jobs; `oshrun --doctor` tries one"),
        Some(first) => verdict(false, &format!(": repair first {first}")),
    };
    Ok((format!("{verdict}\n{text}"), bad.is_empty()))
}
