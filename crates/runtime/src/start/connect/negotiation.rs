//! The choice of the transport of a job, as a value that is the same on all PEs: it says what all
//! PEs try next, and takes what has come of it. It opens nothing and exchanges nothing, and depends
//! only on what all PEs have sent, so each PE makes the same choice.
//!
//! A transport is tried part by part, if its provider has parts, and over each part with one
//! executor of atomic operations after the other.

use super::candidates::{
    AmoExecutor, Candidate, CommonPart, Findings, Offer, Verdict, agree, common_parts, executors,
    refusals,
};
use crate::start::error::StartError;
use rushmem_transport::{Amos, Provider};
use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

/// The choice of the transport of a job.
pub(in crate::start) struct Negotiation<'a> {
    /// What each PE has found out about the transports that it can use, in the order of PEs.
    pub(in crate::start) findings: Vec<Findings>,
    pub(in crate::start) candidates: Vec<Candidate<'a>>,
    /// The executor of atomic operations that all PEs request.
    amos: Option<Amos>,
    /// The trial of the candidate that is tried now.
    trial: Option<Trial<'a>>,
}

/// What all PEs do next.
pub(in crate::start) enum Next<'a> {
    /// Each lists the parts of a provider over which it can use each of these executors of atomic
    /// operations, for [`Negotiation::listed`].
    List(&'a Provider, Vec<AmoExecutor>),
    /// Each takes part in an attempt to connect, for [`Negotiation::chosen`] or
    /// [`Negotiation::failed`].
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

impl<'a> Negotiation<'a> {
    /// Begins the choice among providers, in the order of preference, by the findings of all PEs.
    ///
    /// # Errors
    /// If the PEs request different things, have different providers, or if no provider is left to
    /// try.
    pub(in crate::start) fn new(
        providers: &[&'a Provider],
        findings: Vec<Findings>,
    ) -> Result<Negotiation<'a>, StartError> {
        Ok(Negotiation {
            candidates: agree(providers, &findings)?,
            amos: Amos::named(&findings[0].amos),
            findings,
            trial: None,
        })
    }

    /// Returns what all PEs do next.
    ///
    /// # Errors
    /// If nothing is left to try, or the transport that the PEs request does not work.
    pub(in crate::start) fn next(&mut self) -> Result<Next<'a>, StartError> {
        loop {
            match &self.trial {
                None => self.begin_trial()?,
                Some(trial) => match trial.next() {
                    Some(next) => return Ok(next),
                    None => self.end_trial(trial.why_not())?,
                },
            }
        }
    }

    /// Begins the trial of the next candidate.
    fn begin_trial(&mut self) -> Result<(), StartError> {
        let untried = |candidate: &&Candidate<'_>| candidate.verdict == Verdict::Untried;
        let Some(candidate) = self.candidates.iter().find(untried) else {
            return Err(StartError::NoTransport(format!(
                "PEs that share no memory need a transport, and none works: {}",
                refusals(self.candidates.iter())
            )));
        };

        let provider = candidate.provider;
        let is_in_hardware = self
            .findings
            .iter()
            .all(|found| found.hardware_amos.iter().any(|name| name == provider.name));
        match executors(self.amos, provider, is_in_hardware) {
            Ok(executors) => {
                self.trial = Some(Trial::new(provider, executors));
                Ok(())
            }
            Err(why) => self.end_trial(why),
        }
    }

    /// Ends the trial of a candidate, which does not work for this reason.
    fn end_trial(&mut self, why: String) -> Result<(), StartError> {
        self.trial = None;
        let candidate = self.tried();
        candidate.verdict = Verdict::Failed(why.clone());
        let name = candidate.provider.name;

        if self.requested().is_none() {
            return Ok(());
        }
        Err(StartError::NoTransport(format!(
            "SHMEM_TRANSPORT is {name}, which cannot be used here ({why}); fix that, or set \
             SHMEM_TRANSPORT to another transport or to auto"
        )))
    }

    /// Takes the parts of the provider that each PE has listed, in the order of PEs.
    pub(in crate::start) fn listed(&mut self, offers: &[Vec<Offer>]) -> Result<(), StartError> {
        let trial = self.trial.as_mut().expect("it has asked for the parts");
        match common_parts(trial.executors.len(), offers) {
            Ok(common) => {
                trial.set_parts(common);
                Ok(())
            }
            Err(why) => self.end_trial(why),
        }
    }

    /// Takes the reason, the same on all PEs, why the attempt does not work.
    pub(in crate::start) fn failed(&mut self, why: String) {
        let trial = self.trial.as_mut().expect("it has asked for the attempt");
        trial.failed(why);
    }

    /// Takes that the attempt works: all PEs have moved data.
    pub(in crate::start) fn chosen(&mut self) {
        self.tried().verdict = Verdict::Chosen;
    }

    /// Returns the transport that the settings of all PEs request.
    pub(in crate::start) fn requested(&self) -> Option<&str> {
        let requested = self.findings[0].requested.as_str();
        (!requested.is_empty()).then_some(requested)
    }

    /// Returns the candidate that is tried now, the first on which there is no verdict.
    fn tried(&mut self) -> &mut Candidate<'a> {
        self.candidates
            .iter_mut()
            .find(|candidate| candidate.verdict == Verdict::Untried)
            .expect("one is tried")
    }

    /// Returns the chosen candidate.
    ///
    /// # Panics
    /// If none is chosen yet.
    pub(in crate::start) fn winner(&self) -> &Candidate<'a> {
        self.candidates
            .iter()
            .find(|candidate| candidate.verdict == Verdict::Chosen)
            .expect("one works")
    }

    /// Describes the parts of the chosen transport that were tried and do not work.
    pub(in crate::start) fn parts_passed_over(&self) -> Vec<String> {
        let trial = self.trial.as_ref().expect("one works");
        trial.failures.iter().map(Failure::describe).collect()
    }
}

/// The trial of a provider.
struct Trial<'a> {
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
    fn new(provider: &'a Provider, executors: Vec<AmoExecutor>) -> Trial<'a> {
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

    fn set_parts(&mut self, common: Vec<CommonPart>) {
        let mut parts = VecDeque::new();
        for CommonPart { name, with } in common {
            let executors = with.into_iter().map(|i| self.executors[i].clone());
            parts.push_back(Part {
                name: Some(name),
                executors: executors.collect(),
            });
        }
        self.parts = Some(parts);
    }

    /// Returns what all PEs do next; `None` if nothing is left.
    fn next(&self) -> Option<Next<'a>> {
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
    fn failed(&mut self, why: String) {
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

    /// Returns why no part works.
    fn why_not(&self) -> String {
        let described: Vec<String> = self.failures.iter().map(Failure::describe).collect();
        described.join("; ")
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
