//! Examines a transport, or one of its parts, in a process of its own. A library that it opens may
//! crash or hang, so the doctor runs each examination in a child of its own.

use std::process::Command;
use std::time::Duration;

use rushmem_runtime::settings::Settings;
use rushmem_runtime::setup::{diagnose, on_this_machine};
use rushmem_transport::setting::environment;
use rushmem_transport::{Diagnosis, Verdict};
use serde::{Deserialize, Serialize};

use super::child;
use super::finding::{Finding, Grade};
use super::mark;

/// The time for which an examination may take. A provider takes up to a second, on a busy machine
/// longer.
const LIMIT: Duration = Duration::from_secs(20);

/// The report of a process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Examination {
    /// The findings of the transport on this machine, or why it is unavailable.
    pub found: String,
    pub parts: Vec<ExaminedPart>,
    /// The part of a heap that it registers.
    pub memory: Option<Finding>,
}

/// A part of a transport. A job may use it if its grade is [`Grade::Ok`].
#[derive(Debug, Serialize, Deserialize)]
pub struct ExaminedPart {
    pub finding: Finding,
    /// Jobs whose nodes would connect many pairs of PEs use it before others.
    pub is_for_many_pairs: bool,
}

/// Prints the examination of a transport, or of one of its parts, for [`examine`].
pub fn report(transport: &str, part: Option<&str>) -> Result<String, String> {
    child::prepare();
    let settings = Settings::read(environment).map_err(|invalid| invalid.to_string())?;
    let provider = rushmem_providers::ALL.iter().find(|provider| provider.name == transport);
    let provider = provider.ok_or_else(|| format!("there is no transport {transport}"))?;
    let found = match on_this_machine(&settings, provider) {
        Ok(found) => found.found.to_string(),
        Err(why) => why.to_string(),
    };
    let diagnosed = diagnose(&settings, provider, part);
    let memory = diagnosed.registered.map(|registered| match registered {
        Ok(registered) => Finding::ok("memory", registered.to_string()),
        Err(why) => Finding::new("memory", Grade::Warning, why.to_string()),
    });
    let parts = diagnosed.parts.into_iter().map(ExaminedPart::of).collect();
    Ok(mark::line(&Examination { found, parts, memory }))
}

/// Examines a transport, or one of its parts, in a child.
///
/// # Errors
/// If the child crashes or hangs; what it does, as the predicate of a sentence.
pub fn examine(transport: &str, part: Option<&str>) -> Result<Examination, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("cannot be examined: {error}"))?;
    let mut command = Command::new(program);
    command.arg("--doctor-transport").arg(transport).args(part);
    let text = child::printed(&mut command, LIMIT)?;
    text.lines().find_map(mark::read).ok_or_else(|| "reports nothing".to_owned())
}

impl ExaminedPart {
    fn of(of: Diagnosis) -> ExaminedPart {
        let grade = if of.verdict == Verdict::Usable { Grade::Ok } else { Grade::Unused };
        let finding = Finding { name: of.name, grade, text: of.reason, remedy: of.remedy };
        ExaminedPart { finding, is_for_many_pairs: of.is_for_many_pairs }
    }
}
