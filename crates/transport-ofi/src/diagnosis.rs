//! The diagnosis of each provider of libfabric: what it can do for a job on this machine, and why
//! not. It is for users, before a job or when its start has failed.

use crate::choice;
use crate::fabric;
use crate::refusals;
use crate::settings::Tuning;
use crate::transport::{self, Opened};
use crate::wish::Wish;
use rushmem_transport::{Diagnosis, Open, Verdict};

/// Each provider: those that fit in the order in which they are tried, then the others. None is
/// opened, unless the arguments name one: then the result is the diagnosis of that one alone, by
/// opening it.
pub(crate) fn diagnose(with: &Open) -> Vec<Diagnosis> {
    let library = match fabric::library() {
        Ok(library) => library,
        Err(why) => return vec![Diagnosis::new("libfabric", Verdict::Absent, why)],
    };
    let wish = Wish::of(&*with.host, with.amos, with.one_machine);
    let mut found: Vec<Diagnosis> = Vec::new();
    for (list, facts) in choice::fitting(library, &wish).unwrap_or_default() {
        let (name, domain) = (facts.provider.clone(), facts.domain.clone());
        if with.part.as_ref().is_some_and(|part| *part != name) {
            continue;
        }
        let known = |one: &&mut Diagnosis| one.name == name && one.verdict == Verdict::Usable;
        if let Some(known) = found.iter_mut().find(known) {
            known.reason += &format!(", {domain}");
            continue;
        }
        let peers = match (facts.connects, facts.scales() && choice::avoids_connections(&wish)) {
            (true, _) => "connects each pair of PEs".to_owned(),
            (false, false) => "connectionless".to_owned(),
            (false, true) => format!(
                "connectionless: preferred, since a node would connect {} pairs of PEs",
                wish.pairs_of_node
            ),
        };
        let registrations = match facts.registrations {
            few @ 1.. if facts.heap_in_blocks() => format!(", at most {few} registrations"),
            _ => String::new(),
        };
        let is_for_many_pairs = facts.scales();
        let opened = match with.part {
            None => Ok(()),
            Some(_) => transport::opened(with, &Tuning::default(), list, facts).map(Opened::close),
        };
        found.push(match opened {
            Ok(()) => {
                let reason = format!("{peers}{registrations}; {domain}");
                Diagnosis { is_for_many_pairs, ..Diagnosis::new(name, Verdict::Usable, reason) }
            }
            Err(why) => Diagnosis::new(name, Verdict::Refused, format!("on {domain}, {why}"))
                .remedy(fabric::LOG),
        });
    }
    if with.part.is_none() {
        let fits: Vec<String> = found.iter().map(|one| one.name.clone()).collect();
        found.extend(refusals::all(library, &wish, &fits));
    }
    found
}
