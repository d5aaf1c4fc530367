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

use crate::Answer;
pub use examination::report;
use finding::{Finding, Grade, Section, verdict};
pub use job::{Examined, examine};
pub use pe::{Role, run};
use rushmem_system::host::host_name;
use serde::Serialize;

/// Returns the doctor's report on this machine. With `says_why`, it gives the reason for each part
/// of a transport that is not used.
pub fn this_machine(says_why: bool) -> Result<Answer, String> {
    let sections = transports::with_host()?;
    let mut text = String::new();
    for section in &sections {
        text += &section.text(says_why);
    }

    if let Some(first) = first_bad(&sections) {
        let verdict = verdict(false, &format!(": repair first {first}"));
        return Ok(Answer {
            text: format!("{verdict}\n{text}"),
            is_ok: false,
        });
    }

    let verdict = verdict(
        true,
        ": this machine can run jobs; `oshrun --doctor` tries one",
    );
    let next = to_verify("oshrun -n 4 shmem-verify");
    Ok(Answer {
        text: format!("{verdict}\n{text}{next}"),
        is_ok: true,
    })
}

/// Returns the findings on this machine as JSON, without names and addresses of hosts.
pub fn findings_as_json() -> Result<Answer, String> {
    let host = host_name();
    let mut sections = transports::with_host()?;
    for section in &mut sections {
        *section = section.without_hosts(&host);
    }

    let is_ok = first_bad(&sections).is_none();
    let report = MachineReport {
        ok: is_ok,
        sections,
    };
    let text = serde_json::to_string_pretty(&report).expect("plain data");
    Ok(Answer {
        text: text + "\n",
        is_ok,
    })
}

/// The report on a machine in JSON.
#[derive(Serialize)]
struct MachineReport {
    ok: bool,
    sections: Vec<Section>,
}

fn first_bad(sections: &[Section]) -> Option<&Finding> {
    sections
        .iter()
        .flat_map(|section| &section.findings)
        .find(|finding| finding.grade == Grade::Bad)
}

/// Returns the last lines of a report: the command that verifies the library.
fn to_verify(command: &str) -> String {
    format!("\nto verify the library with values:\n  {command}\n")
}
