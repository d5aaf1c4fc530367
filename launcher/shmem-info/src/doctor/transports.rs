//! Examines the transports of this build on this machine, and the parts of their libraries. States
//! the size of jobs from which on a provider of libfabric without connections is used.

use rushmem_runtime::settings;
use rushmem_topology::cpus_at_once;
use rushmem_transport::{MANY_PAIRS, Provider};

use super::examination::{Examination, ExaminedPart, examine};
use super::finding::{Finding, Grade, Section};
use super::host;

/// The transport that chooses its provider by the number of connections.
const OFI: &str = "ofi";

/// Returns all findings on this machine: those on the host, then those on each transport.
pub fn with_host() -> Result<Vec<Section>, String> {
    let mut all = vec![host::section()];
    all.extend(sections()?);
    Ok(all)
}

/// Returns a section for each transport.
fn sections() -> Result<Vec<Section>, String> {
    let settings = settings::of_this_process(rushmem_providers::ALL)?;
    let requested = settings.transport.as_deref();
    let mut sections = Vec::new();
    for provider in rushmem_providers::ALL {
        let examined = examine_with_parts(provider);
        sections.push(section(provider.name, examined, requested));
    }
    Ok(sections)
}

/// Examines a transport in a process of its own. If a process can open its parts alone, also
/// examines each of those that seem usable, again in a process of its own.
fn examine_with_parts(provider: &Provider) -> Examination {
    let mut all = match examine(provider.name, None) {
        Ok(all) => all,
        Err(fate) => {
            let text = format!("its library {fate} when it is opened");
            let finding = Finding::new(provider.name, Grade::Warning, text)
                .remedy("SHMEM_TRANSPORT=tcp works without it");
            Examination {
                found: "unknown".to_owned(),
                parts: vec![ExaminedPart {
                    finding,
                    is_for_many_pairs: false,
                }],
                memory: None,
            }
        }
    };

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
                all.parts.push(ExaminedPart {
                    finding,
                    is_for_many_pairs: false,
                });
            }
        }
    }
    all
}

/// Returns the section of a transport. `requested` is the transport that SHMEM_TRANSPORT names, if
/// any; no job starts if that one is unusable.
fn section(transport: &str, examined: Examination, requested: Option<&str>) -> Section {
    let mut for_many_pairs = None;
    let mut findings: Vec<Finding> = Vec::new();
    for part in examined.parts {
        if part.is_for_many_pairs && for_many_pairs.is_none() {
            for_many_pairs = Some(part.finding.name.clone());
        }
        findings.push(part.finding);
    }

    let is_usable = findings.iter().any(|finding| finding.grade == Grade::Ok);
    if transport == OFI && is_usable {
        findings.push(connections(cpus_at_once(), for_many_pairs.as_deref()));
    }

    if requested == Some(transport) && !is_usable {
        let text = format!("SHMEM_TRANSPORT is {transport}, and nothing of it is usable");
        let remedy = format!("unset SHMEM_TRANSPORT, or do what the notes on {transport} say");
        findings.insert(0, Finding::new(transport, Grade::Bad, text).remedy(remedy));
    }
    findings.extend(examined.memory);
    Section {
        title: format!("transport {transport}: {}", examined.found),
        findings,
    }
}

/// Returns the minimum number of PEs per node with which a job of two nodes would connect too many
/// pairs.
fn pes_per_node() -> u64 {
    MANY_PAIRS.isqrt() + 1
}

/// Returns the minimum number of nodes with which a job of this many PEs per node would connect too
/// many pairs: each PE of a node makes a pair with each PE elsewhere.
fn nodes(pes_per_node: u64) -> u64 {
    MANY_PAIRS / (pes_per_node * pes_per_node) + 2
}

/// Returns the finding on the sizes from which on jobs need too many connections. One of them is
/// the number of nodes with `cpus` PEs each. `provider` is the first provider that needs no
/// connections, if there is one.
fn connections(cpus: usize, provider: Option<&str>) -> Finding {
    let most = pes_per_node() - 1;
    let cpus = cpus.max(1) as u64;
    let sizes = format!(
        "a node makes over {MANY_PAIRS} connections in jobs of 2 nodes with more than {most} PEs each, and of {} or more \
         nodes with {cpus} PEs each",
        nodes(cpus)
    );

    match provider {
        Some(provider) => Finding::ok(
            "connections",
            format!("{sizes}; there, {provider} is used, which needs no connections"),
        ),
        None => Finding::new(
            "connections",
            Grade::Note,
            format!("{sizes}; if such jobs fail, start fewer PEs per node"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_least_with_too_many_pairs() {
        let pairs = |pes: u64, nodes: u64| pes * pes * (nodes - 1);
        let pes = pes_per_node();
        assert!(pairs(pes, 2) > MANY_PAIRS && pairs(pes - 1, 2) <= MANY_PAIRS);
        for pes in [1, 2, 7, 33, 64] {
            let least = nodes(pes);
            assert!(pairs(pes, least) > MANY_PAIRS, "{pes}");
            assert!(pairs(pes, least - 1) <= MANY_PAIRS, "{pes}");
        }
        assert_eq!(
            [65, 192].map(nodes),
            [2, 2],
            "a job of one node connects nothing"
        );
    }

    #[test]
    fn the_provider_for_many_pairs_is_named_if_there_is_one() {
        let with = connections(192, Some("cxi")).to_string();
        let sizes = "with more than 64 PEs each, and of 2 or more nodes with 192 PEs each";
        assert!(with.contains(sizes), "{with}");
        assert!(
            with.ends_with("; there, cxi is used, which needs no connections"),
            "{with}"
        );
        let without = connections(2, None);
        assert_eq!(without.grade, Grade::Note);
        let sizes = "of 1026 or more nodes with 2 PEs each; if such jobs fail";
        assert!(without.text.contains(sizes), "{}", without.text);
    }
}
