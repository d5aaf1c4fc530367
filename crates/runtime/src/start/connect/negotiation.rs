//! The choice of the transport of a job, as a value that is the same on all PEs: it says what all
//! PEs try next, and takes what has come of it. It opens nothing and exchanges nothing, and depends
//! only on what all PEs have sent, so each PE makes the same choice.
//!
//! The transports are tried in one order, each as its [`Trial`] says.

use super::trial::{Next, Offer, Trial, executors};
use crate::start::error::{StartError, complaint, list_pes};
use rushmem_transport::{Amos, Provider};
use serde::{Deserialize, Serialize};

/// The state of one provider on one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::start) enum Availability {
    /// It is not available, for this reason.
    Absent(String),
    /// It is available without RDMA devices, or was not opened, since this machine has none.
    Plain,
    /// It is available, over RDMA devices.
    Rdma,
}

/// What one PE has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::start) struct Findings {
    /// The name of the transport that its settings request; empty for `auto`.
    pub(in crate::start) requested: String,
    /// The executor of atomic operations that its settings request, as text; empty for `auto`.
    pub(in crate::start) amos: String,
    /// The state of each provider; empty if its settings request a transport.
    pub(in crate::start) seen: Vec<Availability>,
    /// The names of the providers whose networks carry out atomic operations in hardware on this
    /// PE. Providers that the settings exclude are not among them.
    pub(in crate::start) hardware_amos: Vec<String>,
}

impl Findings {
    /// Returns true if the PE has found RDMA devices for a provider. `rank` is the number of the
    /// provider in the order of preference.
    pub(in crate::start) fn has_rdma(&self, rank: usize) -> bool {
        self.seen.get(rank) == Some(&Availability::Rdma)
    }
}

/// The choice of the transport of a job.
pub(in crate::start) struct Negotiation<'a> {
    /// What each PE has found out about the transports that it can use, in the order of PEs.
    pub(in crate::start) findings: Vec<Findings>,
    pub(in crate::start) candidates: Vec<Candidate<'a>>,
    /// The executor of atomic operations that all PEs request; `None` if the transport may choose
    /// it.
    amos: Option<Amos>,
    /// The trial of the candidate that is tried now; `None` before it begins.
    trial: Option<Trial<'a>>,
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
                    None => self.end_trial(trial.failures().join("; "))?,
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
        match trial.listed(offers) {
            Ok(()) => Ok(()),
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

    /// Returns the transport that the settings of all PEs request; `None` if they request none.
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
        trial.failures()
    }
}

/// A transport that the job may use, and the verdict on it.
pub(in crate::start) struct Candidate<'a> {
    pub(in crate::start) provider: &'a Provider,
    /// Its number in the order of preference.
    pub(in crate::start) rank: usize,
    pub(in crate::start) verdict: Verdict,
}

/// The verdict on a transport.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::start) enum Verdict {
    /// It is not tried, for this reason.
    Excluded(String),
    /// It is tried unless one before it works.
    Untried,
    /// It was tried and does not work, for this reason.
    Failed(String),
    /// Every PE has moved data over it.
    Chosen,
}

impl Candidate<'_> {
    /// Returns why the transport is not chosen; `None` if it is, or is not tried yet.
    pub(in crate::start) fn refusal(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Excluded(why) | Verdict::Failed(why) => Some(why),
            Verdict::Untried | Verdict::Chosen => None,
        }
    }

    /// Returns true if the transport is not tried.
    pub(in crate::start) fn is_excluded(&self) -> bool {
        matches!(self.verdict, Verdict::Excluded(_))
    }
}

/// Lists transports with the reasons why they are not chosen.
pub(in crate::start) fn refusals<'a, 'b: 'a>(
    refused: impl Iterator<Item = &'a Candidate<'b>>,
) -> String {
    let mut reasons = Vec::new();
    for candidate in refused {
        if let Some(why) = candidate.refusal() {
            reasons.push(format!("{}: {why}", candidate.provider.name));
        }
    }
    reasons.join("; ")
}

/// Returns the candidates: those that are excluded, and the others in the order in which they are
/// tried, RDMA first. `providers` are in the order of preference.
///
/// # Errors
/// If PEs request different transports or executors of atomic operations, if they have different
/// providers, or if no provider is left to try.
pub(in crate::start) fn agree<'a>(
    providers: &[&'a Provider],
    findings: &[Findings],
) -> Result<Vec<Candidate<'a>>, StartError> {
    let first = &findings[0];
    for (found, pe) in findings.iter().zip(0..) {
        require_equal("SHMEM_TRANSPORT", &first.requested, pe, &found.requested)?;
        require_equal("SHMEM_AMOS", &first.amos, pe, &found.amos)?;
        // A PE whose settings request a transport has looked for no other.
        if first.requested.is_empty() && found.seen.len() != providers.len() {
            return Err(StartError::Providers { pe });
        }
    }

    let mut excluded = Vec::new();
    let mut rdma = Vec::new();
    let mut others = Vec::new();
    for (rank, &provider) in providers.iter().enumerate() {
        let verdict = match why_excluded(provider, rank, &first.requested, findings) {
            Some(why) => Verdict::Excluded(why),
            None => Verdict::Untried,
        };
        let list = if verdict != Verdict::Untried {
            &mut excluded
        } else if findings.iter().all(|found| found.has_rdma(rank)) {
            &mut rdma
        } else {
            &mut others
        };
        list.push(Candidate {
            provider,
            rank,
            verdict,
        });
    }

    if rdma.is_empty() && others.is_empty() {
        let whys = refusals(excluded.iter());
        return Err(StartError::NoTransport(format!(
            "PEs that share no memory need a transport; {whys}"
        )));
    }
    Ok(excluded.into_iter().chain(rdma).chain(others).collect())
}

/// Returns an error if PE `pe` requests another value of a setting than PE 0.
fn require_equal(name: &'static str, first: &str, pe: u32, other: &str) -> Result<(), StartError> {
    if other == first {
        return Ok(());
    }
    Err(StartError::Requested {
        name,
        first: requested_or_auto(first).to_owned(),
        other: requested_or_auto(other).to_owned(),
        pe,
    })
}

fn requested_or_auto(requested: &str) -> &str {
    if requested.is_empty() {
        "auto"
    } else {
        requested
    }
}

/// Returns why a provider is not tried; `None` if it is. `rank` is its number in the order of
/// preference, and `requested` the transport that all PEs request, if they do.
fn why_excluded(
    provider: &Provider,
    rank: usize,
    requested: &str,
    findings: &[Findings],
) -> Option<String> {
    if provider.name == requested {
        return None;
    }
    if !requested.is_empty() {
        return Some(format!("SHMEM_TRANSPORT is {requested}"));
    }

    let mut outcomes = Vec::new();
    let mut plain = Vec::new();
    for (found, pe) in findings.iter().zip(0..) {
        let seen = &found.seen[rank];
        outcomes.push(match seen {
            Availability::Absent(why) => Err(why.clone()),
            Availability::Plain | Availability::Rdma => Ok(()),
        });
        if *seen == Availability::Plain {
            plain.push(pe);
        }
    }
    if let Some(absent) = complaint(&outcomes) {
        return Some(absent);
    }

    if provider.without_rdma || plain.is_empty() {
        None
    } else if plain.len() == findings.len() {
        Some("no PE has an RDMA device for it".to_owned())
    } else {
        let pes = list_pes(&plain);
        let verb = if plain.len() == 1 { "has" } else { "have" };
        Some(format!("{pes} {verb} no RDMA device for it"))
    }
}

#[cfg(test)]
mod tests;
