//! The transports of this build on this machine, and what their libraries have.

use rushmem_runtime::settings::Settings;
use rushmem_runtime::setup::{Diagnosed, diagnose};
use rushmem_topology::cpus_at_once;
use rushmem_transport::setting::environment;
use rushmem_transport::{Diagnosis, Verdict};

use super::connections;
use super::finding::{Finding, Grade, Section};

/// The transport that chooses its provider by the number of connections.
const OFI: &str = "ofi";

/// A section for each transport.
pub fn sections() -> Result<Vec<Section>, String> {
    let settings = Settings::read(environment).map_err(|invalid| invalid.to_string())?;
    let all = diagnose(&settings, rushmem_providers::ALL);
    let requested = settings.transport.as_deref();
    Ok(all.into_iter().map(|one| section(one, requested)).collect())
}

/// `requested` is the transport without which no job starts.
fn section(one: Diagnosed, requested: Option<&str>) -> Section {
    let is_requested = requested == Some(one.name);
    let found = match &one.found {
        Ok(found) => found.found.to_string(),
        Err(why) => why.to_string(),
    };
    let of_many = one.parts.iter().find(|part| part.is_for_many_pairs);
    let of_many = of_many.map(|part| part.name.clone());
    let is_usable = one.parts.iter().any(|part| part.verdict == Verdict::Usable);
    let mut findings: Vec<Finding> = one.parts.into_iter().map(finding).collect();
    if one.name == OFI && is_usable {
        findings.push(connections::finding(cpus_at_once(), of_many.as_deref()));
    }
    if is_requested && findings.iter().all(|finding| finding.grade != Grade::Ok) {
        let text = format!("SHMEM_TRANSPORT is {}, and nothing of it is usable", one.name);
        let remedy = format!("unset SHMEM_TRANSPORT, or do what the notes on {} say", one.name);
        findings.insert(0, Finding::new(one.name, Grade::Bad, text).remedy(remedy));
    }
    findings.extend(one.registered.map(|registered| match registered {
        Ok(registered) => Finding::ok("memory", registered.to_string()),
        Err(why) => Finding::new("memory", Grade::Warning, why.to_string()),
    }));
    Section { title: format!("transport {}: {found}", one.name), findings }
}

fn finding(of: Diagnosis) -> Finding {
    let grade = if of.verdict == Verdict::Usable { Grade::Ok } else { Grade::Note };
    let text = match of.verdict {
        // A refusal says by whom.
        Verdict::Usable | Verdict::Refused => of.reason,
        other => format!("{other}: {}", of.reason),
    };
    Finding { name: of.name, grade, text, remedy: of.remedy }
}
