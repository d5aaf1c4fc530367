//! The transports of this build on this machine, and what their libraries have.

use rushmem_runtime::settings::Settings;
use rushmem_topology::cpus_at_once;
use rushmem_transport::Provider;
use rushmem_transport::setting::environment;

use super::connections;
use super::examination::{Examination, ExaminedPart, examine};
use super::finding::{Finding, Grade, Section};

/// The transport that chooses its provider by the number of connections.
const OFI: &str = "ofi";

/// Returns a section for each transport.
pub fn sections() -> Result<Vec<Section>, String> {
    let settings = Settings::read(environment).map_err(|invalid| invalid.to_string())?;
    let requested = settings.transport.as_deref();
    let all = rushmem_providers::ALL.iter();
    Ok(all.map(|provider| section(provider.name, examined(provider), requested)).collect())
}

/// Examines a transport and each of its parts, each in a process of its own.
fn examined(provider: &Provider) -> Examination {
    let mut all = examine(provider.name, None).unwrap_or_else(|fate| {
        let finding = Finding::new(
            provider.name,
            Grade::Warning,
            format!("its library {fate} when it is opened"),
        )
        .remedy("SHMEM_TRANSPORT=tcp works without it");
        let parts = vec![ExaminedPart { finding, is_for_many_pairs: false }];
        Examination { found: "unknown".to_owned(), parts, memory: None }
    });
    if provider.parts.is_none() {
        return all;
    }
    let parts = std::mem::take(&mut all.parts);
    for part in parts {
        if part.finding.grade != Grade::Ok {
            all.parts.push(part);
            continue;
        }
        let name = part.finding.name;
        match examine(provider.name, Some(&name)) {
            Ok(of_part) => {
                all.parts.extend(of_part.parts);
                all.memory = all.memory.take().or(of_part.memory);
            }
            Err(fate) => {
                let text = format!("it {fate} when it is opened, and so do jobs that use it");
                let finding = Finding::new(name, Grade::Warning, text).remedy("select another one");
                all.parts.push(ExaminedPart { finding, is_for_many_pairs: false });
            }
        }
    }
    all
}

/// `requested` is the transport without which no job starts.
fn section(transport: &str, examined: Examination, requested: Option<&str>) -> Section {
    let of_many = examined.parts.iter().find(|part| part.is_for_many_pairs);
    let of_many = of_many.map(|part| part.finding.name.clone());
    let mut findings: Vec<Finding> = examined.parts.into_iter().map(|part| part.finding).collect();
    let is_usable = findings.iter().any(|finding| finding.grade == Grade::Ok);
    if transport == OFI && is_usable {
        findings.push(connections::finding(cpus_at_once(), of_many.as_deref()));
    }
    if requested == Some(transport) && !is_usable {
        let text = format!("SHMEM_TRANSPORT is {transport}, and nothing of it is usable");
        let remedy = format!("unset SHMEM_TRANSPORT, or do what the notes on {transport} say");
        findings.insert(0, Finding::new(transport, Grade::Bad, text).remedy(remedy));
    }
    findings.extend(examined.memory);
    Section { title: format!("transport {transport}: {}", examined.found), findings }
}
