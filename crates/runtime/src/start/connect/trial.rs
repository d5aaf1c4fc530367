//! The trial of one provider, as a value that is the same on all PEs: its parts are tried one after
//! the other, and over each part one executor of atomic operations after the other.

use crate::start::error::complaint;
use rushmem_transport::{Amos, Provider};
use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

/// What all PEs do next.
pub(in crate::start) enum Next<'a> {
    /// Each lists the parts of a provider over which it can use each of these executors of atomic
    /// operations, for `Negotiation::listed`.
    List(&'a Provider, Vec<AmoExecutor>),
    /// Each takes part in an attempt to connect, for `Negotiation::chosen` or
    /// `Negotiation::failed`.
    Attempt(Route<'a>, AmoExecutor),
}

/// A provider, or one of its parts, over which a job is connected. Messages name it as a transport.
pub(in crate::start) struct Route<'a> {
    pub(in crate::start) provider: &'a Provider,
    /// `None` for a provider without parts, or for all of them.
    pub(in crate::start) part: Option<String>,
}

impl Display for Route<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "the transport {}", self.provider.name)?;
        match &self.part {
            Some(part) => write!(f, " ({part})"),
            None => Ok(()),
        }
    }
}

/// The trial of a provider.
pub(super) struct Trial<'a> {
    provider: &'a Provider,
    executors: Vec<AmoExecutor>,
    /// The parts that are left, the one that is tried now first; `None` until all PEs have listed
    /// theirs.
    parts: Option<VecDeque<Part>>,
    /// The reasons why executors do not work over the part that is tried now.
    whys: Vec<String>,
    failures: Vec<Failure>,
}

/// A part of a provider, and the executors of atomic operations that are left to try over it.
struct Part {
    /// `None` for a provider without parts.
    name: Option<String>,
    executors: VecDeque<AmoExecutor>,
}

impl<'a> Trial<'a> {
    /// Begins the trial of a provider with these executors of atomic operations, best first.
    pub(super) fn new(provider: &'a Provider, executors: Vec<AmoExecutor>) -> Trial<'a> {
        let mut parts = None;
        if provider.parts.is_none() {
            parts = Some(VecDeque::from([Part {
                name: None,
                executors: executors.iter().cloned().collect(),
            }]));
        }
        Trial {
            provider,
            executors,
            parts,
            whys: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Takes the parts that each PE has listed, in the order of PEs.
    ///
    /// # Errors
    /// If there is no part that all PEs can use; the reason.
    pub(super) fn listed(&mut self, offers: &[Vec<Offer>]) -> Result<(), String> {
        let mut parts = VecDeque::new();
        for CommonPart { name, with } in common_parts(self.executors.len(), offers)? {
            let executors = with.into_iter().map(|i| self.executors[i].clone());
            parts.push_back(Part {
                name: Some(name),
                executors: executors.collect(),
            });
        }
        self.parts = Some(parts);
        Ok(())
    }

    /// Returns what all PEs do next; `None` if nothing is left.
    pub(super) fn next(&self) -> Option<Next<'a>> {
        let Some(parts) = &self.parts else {
            return Some(Next::List(self.provider, self.executors.clone()));
        };

        let part = parts.front()?;
        let mut executor = part.executors.front()?.clone();
        if let Some(why) = self.whys.first() {
            executor.reason = format!("{}: {why}", executor.reason);
        }
        let route = Route {
            provider: self.provider,
            part: part.name.clone(),
        };
        Some(Next::Attempt(route, executor))
    }

    /// Takes the reason why the part that is tried now does not work with its first executor.
    pub(super) fn failed(&mut self, why: String) {
        let parts = self.parts.as_mut().expect("all PEs have listed theirs");
        let part = parts.front_mut().expect("it is tried");
        self.whys.push(why);
        part.executors.pop_front();
        if !part.executors.is_empty() {
            return;
        }

        let name = part.name.take();
        parts.pop_front();
        // A reason that applies to all executors is printed once. There are at most two: the
        // network, then the CPU of the target.
        self.whys.dedup();
        let why = self
            .whys
            .join("; with atomic operations by the CPU of the target: ");
        self.whys.clear();

        // Parts that fail for the same reason are listed together.
        match self.failures.iter_mut().find(|failure| failure.why == why) {
            Some(failure) => failure.parts.extend(name),
            None => self.failures.push(Failure {
                parts: Vec::from_iter(name),
                why,
            }),
        }
    }

    /// Describes the parts that do not work.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failures.iter().map(Failure::describe).collect()
    }
}

/// The parts of a provider that do not work for the same reason.
struct Failure {
    /// Empty for a provider without parts.
    parts: Vec<String>,
    why: String,
}

impl Failure {
    fn describe(&self) -> String {
        let why = &self.why;
        match self.parts.as_slice() {
            [] => why.clone(),
            [part] => format!("{part} does not work here ({why})"),
            parts => format!("{} do not work here ({why})", parts.join(", ")),
        }
    }
}

/// The parts of a provider that a PE can use with an executor, or why it can use none.
pub(in crate::start) type Offer = Result<Vec<String>, String>;

/// A part of a provider that all PEs can use.
#[derive(Debug, PartialEq, Eq)]
struct CommonPart {
    name: String,
    /// The indices of the executors of atomic operations with which they can use it.
    with: Vec<usize>,
}

/// Returns the parts of a provider that all PEs can use, in the order of PE 0. `offers` has, for
/// each PE and executor, the parts that the PE can use, or why it can use none.
///
/// # Errors
/// If there is no common part; the reason for each executor.
fn common_parts(n_executors: usize, offers: &[Vec<Offer>]) -> Result<Vec<CommonPart>, String> {
    let mut common: Vec<CommonPart> = Vec::new();
    let mut whys = Vec::new();
    for executor in 0..n_executors {
        let parts = match parts_with(executor, offers) {
            Ok(parts) => parts,
            Err(why) => {
                whys.push(why);
                continue;
            }
        };
        for part in parts {
            match common.iter_mut().find(|known| known.name == *part) {
                Some(known) => known.with.push(executor),
                None => common.push(CommonPart {
                    name: part.clone(),
                    with: vec![executor],
                }),
            }
        }
    }

    whys.dedup();
    if common.is_empty() {
        Err(whys.join("; "))
    } else {
        Ok(common)
    }
}

/// Returns the parts that all PEs can use with one executor, in the order of PE 0.
///
/// # Errors
/// If there is none; the reason.
fn parts_with(executor: usize, offers: &[Vec<Offer>]) -> Result<Vec<&String>, String> {
    // The parts of each PE, and whether the PE has any.
    let mut lists: Vec<&[String]> = Vec::new();
    let mut outcomes: Vec<Result<(), String>> = Vec::new();
    for offer in offers {
        match offer.get(executor) {
            Some(Ok(list)) => {
                lists.push(list);
                outcomes.push(Ok(()));
            }
            Some(Err(why)) => outcomes.push(Err(why.clone())),
            None => outcomes.push(Err("it has listed nothing".to_owned())),
        }
    }
    if let Some(why) = complaint(&outcomes) {
        return Err(why);
    }

    let first = lists.first().copied().unwrap_or_default();
    let common: Vec<&String> = first
        .iter()
        .filter(|part| lists.iter().all(|list| list.contains(part)))
        .collect();
    if !common.is_empty() {
        return Ok(common);
    }

    // As complaints, so that PEs with the same list are named together.
    let described: Vec<Result<(), String>> = lists
        .iter()
        .map(|list| Err(format!("it has {}", list.join(", "))))
        .collect();
    let described = complaint(&described).unwrap_or_default();
    Err(format!("the PEs have nothing in common ({described})"))
}

/// The executor of the atomic operations of the job, and the reason for the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::start) struct AmoExecutor {
    pub(in crate::start) amos: Amos,
    pub(in crate::start) reason: String,
}

/// Returns the executors of atomic operations to try over a provider, best first. `requested` is
/// the setting; `in_hardware` says whether the network has atomic operations in hardware on every
/// PE.
///
/// Operations of a CPU and of a network on one word are not atomic with respect to each other. So
/// one executor carries out all atomic operations of a job, except those on contexts of
/// `SHMEM_TEAM_SHARED`, which are a domain of their own.
///
/// # Errors
/// When the provider cannot do what is requested; a sentence.
pub(in crate::start) fn executors(
    requested: Option<Amos>,
    provider: &Provider,
    in_hardware: bool,
) -> Result<Vec<AmoExecutor>, String> {
    match requested {
        Some(Amos::Network) if !provider.network_amos => Err(format!(
            "SHMEM_AMOS is network, but {} has no atomic operations of its own: with software the CPUs of the targets carry them \
             out",
            provider.name
        )),
        Some(amos) => {
            let reason = format!("SHMEM_AMOS is {amos}");
            Ok(vec![AmoExecutor { amos, reason }])
        }
        None if in_hardware && provider.network_amos => Ok(vec![
            AmoExecutor::new(Amos::Network, "the hardware of every PE carries them out"),
            AmoExecutor::new(Amos::Software, "the network's own do not work"),
        ]),
        None => Ok(vec![AmoExecutor::new(
            Amos::Software,
            "not every PE has hardware that carries them out",
        )]),
    }
}

impl AmoExecutor {
    fn new(amos: Amos, reason: &str) -> AmoExecutor {
        AmoExecutor {
            amos,
            reason: reason.to_owned(),
        }
    }

    /// Describes the choice and its reason.
    pub(in crate::start) fn describe(&self) -> String {
        let who = match self.amos {
            Amos::Software => "by the CPU of the target, on-node and off-node alike",
            Amos::Network => {
                "by the network, on-node too; on contexts of SHMEM_TEAM_SHARED and of teams split from it by the CPU, in a domain of their own"
            }
        };
        format!("{who} ({})", self.reason)
    }
}

#[cfg(test)]
mod tests;
