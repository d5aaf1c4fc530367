//! All PEs of a job with their situations.

use crate::report::PeReport;
use crate::situation::Situation;
use crate::status::{Place, Subject, Wait};
use crate::words;
use std::collections::HashMap;

/// The PEs, in order.
pub struct Job<'a> {
    pub pes: Vec<Pe<'a>>,
    holders: HashMap<Place, u32>,
}

/// A PE.
#[derive(Clone, Copy)]
pub struct Pe<'a> {
    pub situation: Situation<'a>,
    pub report: Option<&'a PeReport>,
}

impl<'a> Pe<'a> {
    /// Its waits, each with the values of its words.
    pub fn waits(&self) -> impl Iterator<Item = (&'a Wait, &'a [Option<u64>])> + use<'a> {
        let waits = match self.situation {
            Situation::Waits(waits) => waits,
            _ => &[],
        };
        let values = self.report.map_or(&[][..], |report| &report.values);
        let mut at = 0;
        waits.iter().map(move |wait| {
            let nwords = words::words_of(wait).map_or(0, |words| words.words.len());
            let of_wait = values.get(at..at + nwords).unwrap_or_default();
            at += nwords;
            (wait, of_wait)
        })
    }

    /// Number of its waits of which only the threads are known.
    pub fn further_waits(&self) -> usize {
        let status = self.report.and_then(|report| report.status.as_ref());
        status.map_or(0, |status| status.further_waits.len())
    }

    /// Whether threads of it compute while others wait in the library.
    pub fn is_busy(&self) -> bool {
        let waits = matches!(self.situation, Situation::Waits(_));
        waits && self.report.is_some_and(|report| report.other_threads.busy > 0)
    }
}

impl<'a> Job<'a> {
    pub fn new(n_pes: u32, reports: &'a [PeReport]) -> Job<'a> {
        let mut of_pe = vec![None; n_pes as usize];
        for report in reports {
            if let Some(place) = of_pe.get_mut(report.pe as usize) {
                *place = Some(report);
            }
        }
        let pe = |report: Option<&'a PeReport>| Pe { situation: Situation::of(report), report };
        let pes: Vec<Pe> = of_pe.into_iter().map(pe).collect();
        Job { holders: holders(&pes), pes }
    }

    pub fn n_pes(&self) -> u32 {
        self.pes.len() as u32
    }

    /// The PE that holds a lock, if it is known.
    pub fn holder(&self, lock: &Place) -> Option<u32> {
        self.holders.get(&key(lock)).copied()
    }
}

/// The holder of each lock: the PE that lists it, or before which nobody waits in the queue.
fn holders(pes: &[Pe]) -> HashMap<Place, u32> {
    let mut holders = HashMap::new();
    for (pe, of) in (0..).zip(pes) {
        let status = of.report.and_then(|report| report.status.as_ref());
        for lock in status.iter().flat_map(|status| &status.held_locks) {
            holders.insert(key(lock), pe);
        }
    }
    let waits_for = |pe: u32, lock: &Place| {
        let waits = pes.get(pe as usize).into_iter().flat_map(Pe::waits);
        waits.into_iter().any(|(wait, _)| match &wait.subject {
            Subject::Lock { lock: other, .. } => key(other) == key(lock),
            _ => false,
        })
    };
    for (pe, of) in (0..).zip(pes) {
        for (wait, _) in of.waits() {
            let Subject::Lock { lock, behind: Some(behind) } = &wait.subject else { continue };
            if *behind == pe || !waits_for(*behind, lock) {
                holders.insert(key(lock), *behind);
            }
        }
    }
    holders
}

/// A lock as all PEs name it.
fn key(lock: &Place) -> Place {
    match lock {
        Place::Heap { offset, .. } => Place::Heap { offset: *offset, block: None },
        other => other.clone(),
    }
}
