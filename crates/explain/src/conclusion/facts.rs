//! What the sentences of a conclusion are made from.

use crate::graph::Graph;
use crate::job::{Job, Pe};
use crate::ranges::{self, enumerate, enumerate_once};
use crate::situation::{Situation, age};
use crate::status::Subject;
use crate::steps::Steps;
use crate::wording;

/// Different situations that a sentence names.
const NAMED: usize = 3;

/// A job, and who waits for whom in it.
pub struct Facts<'a> {
    pub job: &'a Job<'a>,
    pub steps: &'a Steps<'a>,
    pub graph: &'a Graph,
}

impl Facts<'_> {
    /// The call in which a PE waits.
    pub fn call(&self, pe: u32) -> String {
        let of = &self.job.pes[pe as usize];
        let calls = of.waits().map(|(wait, _)| match &wait.subject {
            Subject::Collective(of) => format!("{}, {}", wait.call, wording::collective(of)),
            _ => wait.call.clone(),
        });
        if of.waits().next().is_none() {
            "shmem_init".to_owned()
        } else {
            enumerate_once(calls, of.further_waits())
        }
    }

    /// What PEs do that do not wait, such as `PE 3 computes`.
    pub fn what(&self, pes: &[u32]) -> String {
        let predicates = |pe: u32| match self.job.pes[pe as usize].situation {
            Situation::Waits(_) => {
                ["computes in another thread", "compute in other threads"].map(str::to_owned)
            }
            situation => [1, 2].map(|n| situation.predicate(n)),
        };
        list(pes, predicates, |[one, many], pes| if pes.len() == 1 { one } else { many }.clone())
    }

    /// In what PEs have waited, such as `PE 3 has waited 31 s in shmem_quiet`. Where they have
    /// waited for too many different objects, only the first one is named.
    pub fn waited(&self, pes: &[u32]) -> String {
        let waits = |pe: u32| wording::waits(self.job, &self.job.pes[pe as usize]);
        let calls = |pe: u32| wording::calls(&self.job.pes[pe as usize]);
        let predicate = |waits: &String, pes: &[u32]| {
            let has = if pes.len() == 1 { "has" } else { "have" };
            format!("{has} waited {} {waits}", self.durations(pes))
        };
        match groups(pes, waits) {
            (_, rest) if !rest.is_empty() => {
                let (first, pe) = (waits(pes[0]), pes[0]);
                format!("{}; PE {pe} {first}", list(pes, calls, predicate))
            }
            _ => list(pes, waits, predicate),
        }
    }

    /// How long PEs have waited.
    pub fn durations(&self, pes: &[u32]) -> String {
        let of_pe = |pe: &u32| {
            let of = &self.job.pes[*pe as usize];
            let ages = of.waits().filter_map(|(wait, _)| Some(age(of.report?, wait)));
            ages.max().unwrap_or(0)
        };
        let ages = || pes.iter().map(of_pe);
        wording::durations((ages().min().unwrap_or(0), ages().max().unwrap_or(0)))
    }

    /// The PEs that wait, while threads of them may continue: those that sleep outside the library,
    /// and those of waits that the status only counts. What such a thread does, as it follows
    /// `a thread`.
    pub fn with_other_threads(&self) -> (Vec<u32>, &'static str) {
        let that = |has: &dyn Fn(&Pe) -> bool| -> Vec<u32> {
            let waits = |of: &Pe| matches!(of.situation, Situation::Waits(_));
            let pes = (0..).zip(&self.job.pes).filter(|(_, of)| waits(of) && has(of));
            pes.map(|(pe, _)| pe).collect()
        };
        let sleeping = |of: &Pe| of.report.map_or(0, |report| report.other_threads.sleeping);
        match that(&|of| of.further_waits() > 0) {
            pes if !pes.is_empty() => (pes, "whose wait is not listed"),
            _ => (that(&|of| sleeping(of) > 0), "that sleeps outside the library"),
        }
    }

    /// The PEs that can continue although nobody writes a word, first those of which nothing is
    /// known: those that do not wait, or else those whose waits will end.
    pub fn writers(&self) -> (Vec<u32>, Vec<u32>) {
        let is_free = |pe: &u32| {
            let of = &self.job.pes[*pe as usize];
            of.is_busy() || !matches!(of.situation, Situation::Waits(_))
        };
        let unaided = &self.graph.unaided;
        let free: Vec<u32> = unaided.iter().copied().filter(is_free).collect();
        let writers = if free.is_empty() { unaided.clone() } else { free };
        let is_elsewhere = |pe: &u32| self.job.pes[*pe as usize].situation == Situation::Elsewhere;
        writers.into_iter().partition(is_elsewhere)
    }
}

/// PEs with what they do, folded by a key.
fn list<K: PartialEq>(
    pes: &[u32],
    key: impl Fn(u32) -> K,
    predicate: impl Fn(&K, &[u32]) -> String,
) -> String {
    let (groups, rest) = groups(pes, key);
    let part = |(key, pes): &(K, Vec<u32>)| format!("{} {}", ranges::pes(pes), predicate(key, pes));
    let mut parts: Vec<String> = groups.iter().map(part).collect();
    if !rest.is_empty() {
        parts.push(format!("so on for {}", ranges::pes(&rest)));
    }
    enumerate(parts)
}

/// The PEs of each of the first keys, and those of other keys.
fn groups<K: PartialEq>(pes: &[u32], key: impl Fn(u32) -> K) -> (Vec<(K, Vec<u32>)>, Vec<u32>) {
    let mut groups: Vec<(K, Vec<u32>)> = Vec::new();
    let mut rest: Vec<u32> = Vec::new();
    for &pe in pes {
        let key = key(pe);
        let is_full = groups.len() == NAMED;
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, pes)) => pes.push(pe),
            None if is_full => rest.push(pe),
            None => groups.push((key, vec![pe])),
        }
    }
    (groups, rest)
}
