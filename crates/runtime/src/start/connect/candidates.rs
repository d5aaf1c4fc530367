//! The transports that a job may use, in the order in which they are tried, with a verdict on each.
//! The functions are pure and depend only on the findings of all PEs, so that all PEs get the same
//! result.

use crate::start::error::StartError;
use rushmem_bootstrap::Records;
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

/// The parts of a provider that a PE can use with an executor, or why it can use none.
pub(in crate::start) type Offer = Result<Vec<String>, String>;

/// A part of a provider that all PEs can use.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::start) struct CommonPart {
    pub(in crate::start) name: String,
    /// The indices of the executors of atomic operations with which they can use it.
    pub(in crate::start) with: Vec<usize>,
}

/// Returns the parts of a provider that all PEs can use, in the order of PE 0. `offers` has, for
/// each PE and executor, the parts that the PE can use, or why it can use none.
///
/// # Errors
/// If there is no common part; the reason for each executor.
pub(in crate::start) fn common_parts(
    n_executors: usize,
    offers: &[Vec<Offer>],
) -> Result<Vec<CommonPart>, String> {
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

/// The result of a step of an attempt on one PE; the error is the reason.
pub(in crate::start) type StepResult = Result<(), String>;

/// Returns an error if a step has failed on some PEs: which ones, and why.
pub(in crate::start) fn result_of_all(of_all: &Records<StepResult>) -> StepResult {
    // Equal results of consecutive PEs are one record, so this search is short if all PEs have
    // succeeded. Only after a failure is there a value for each PE.
    if of_all.position(StepResult::is_err).is_none() {
        return Ok(());
    }
    let of_each_pe: Vec<StepResult> = of_all.iter().cloned().collect();
    complaint(&of_each_pe).map_or(Ok(()), Err)
}

/// Describes which PEs have failed for which reason; `None` if none has. PEs with the same reason
/// are named together.
pub(in crate::start) fn complaint(outcomes: &[Result<(), String>]) -> Option<String> {
    let mut failures: Vec<Failure<'_>> = Vec::new();
    for (outcome, pe) in outcomes.iter().zip(0..) {
        let Err(why) = outcome else { continue };
        match failures.iter_mut().find(|failure| failure.why == why) {
            Some(failure) => failure.pes.push(pe),
            None => failures.push(Failure { why, pes: vec![pe] }),
        }
    }
    if failures.is_empty() {
        return None;
    }

    let mut sentences = Vec::new();
    for Failure { why, pes } in failures {
        if pes.len() == outcomes.len() && pes.len() > 1 {
            sentences.push(format!("all PEs: {why}"));
        } else {
            sentences.push(format!("{}: {why}", list_pes(&pes)));
        }
    }
    Some(sentences.join("; "))
}

/// A reason, and the PEs that have failed for it.
struct Failure<'a> {
    why: &'a str,
    pes: Vec<u32>,
}

/// Lists PEs, of many only the first ones.
fn list_pes(pes: &[u32]) -> String {
    const SHOWN: usize = 4;
    let named: Vec<String> = pes
        .iter()
        .take(SHOWN)
        .map(|pe| format!("PE {pe}"))
        .collect();
    let named = named.join(", ");
    match pes.len().saturating_sub(SHOWN) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::null;

    const UCX: Provider = Provider {
        name: "ucx",
        ..null::PROVIDER
    };
    const OFI: Provider = Provider {
        name: "ofi",
        ..null::PROVIDER
    };
    const TCP: Provider = Provider {
        name: "tcp",
        without_rdma: true,
        ..null::PROVIDER
    };

    fn agreed(findings: &[Findings]) -> Result<Vec<Candidate<'static>>, String> {
        agree(&[&UCX, &OFI, &TCP], findings).map_err(|error| error.to_string())
    }

    /// Returns the numbers of the transports that are tried, in their order.
    fn tried(candidates: &[Candidate<'_>]) -> Vec<usize> {
        let tried = candidates
            .iter()
            .filter(|candidate| candidate.verdict == Verdict::Untried);
        tried.map(|candidate| candidate.rank).collect()
    }

    fn auto(ucx: Availability, ofi: Availability) -> Findings {
        Findings {
            seen: vec![ucx, ofi, Availability::Plain],
            ..Findings::default()
        }
    }

    fn forced(name: &str) -> Findings {
        Findings {
            requested: name.to_owned(),
            ..Findings::default()
        }
    }

    #[test]
    fn rdma_goes_first_and_software_only_where_it_is_ours() {
        use Availability::{Plain, Rdma};
        let on_both_pes = |ucx: &Availability, ofi: &Availability| {
            let findings = auto(ucx.clone(), ofi.clone());
            tried(&agreed(&[findings.clone(), findings]).expect("tcp at least"))
        };
        let absent = Availability::Absent("gone".into());
        assert_eq!(on_both_pes(&Rdma, &Rdma), [0, 1, 2]);
        assert_eq!(on_both_pes(&Plain, &Rdma), [1, 2]);
        assert_eq!(on_both_pes(&Plain, &Plain), [2]);
        assert_eq!(on_both_pes(&absent, &Plain), [2]);
    }

    #[test]
    fn what_some_pes_lack_is_passed_over_with_the_reason() {
        let with_devices = auto(Availability::Rdma, Availability::Rdma);
        let without_for_ucx = auto(Availability::Plain, Availability::Rdma);
        let no_libfabric = Availability::Absent("no libfabric.so.1".into());
        let without_ofi = auto(Availability::Rdma, no_libfabric);

        let findings = [
            with_devices.clone(),
            without_for_ucx,
            with_devices,
            without_ofi,
        ];
        let agreed = agreed(&findings).expect("tcp at least");
        assert_eq!(tried(&agreed), [2]);
        assert_eq!(
            refusals(agreed.iter()),
            "ucx: PE 1 has no RDMA device for it; ofi: PE 3: no libfabric.so.1"
        );
    }

    #[test]
    fn what_is_requested_is_the_only_candidate() {
        let candidates = agreed(&[forced("ofi"), forced("ofi")]).expect("it is known");
        assert_eq!(tried(&candidates), [1]);
        let excluded = candidates
            .iter()
            .filter(|candidate| candidate.is_excluded());
        assert_eq!(excluded.count(), 2);

        let error = agreed(&[
            forced("tcp"),
            forced("tcp"),
            auto(Availability::Rdma, Availability::Rdma),
        ]);
        let error = error.map(drop).expect_err("they differ");
        assert!(
            error.contains("tcp on PE 0") && error.contains("auto on PE 2"),
            "{error}"
        );
    }

    #[test]
    fn pes_agree_on_who_carries_out_atomic_operations() {
        let network = Findings {
            amos: "network".to_owned(),
            ..forced("ofi")
        };
        let error = agreed(&[forced("ofi"), forced("ofi"), network])
            .map(drop)
            .expect_err("they differ");
        assert!(
            error.contains("SHMEM_AMOS is auto on PE 0 and network on PE 2"),
            "{error}"
        );
    }

    const NETWORK: Provider = Provider {
        name: "ofi",
        network_amos: true,
        ..null::PROVIDER
    };

    fn amos(requested: Option<Amos>, provider: &Provider, in_hardware: bool) -> Vec<Amos> {
        let executors = executors(requested, provider, in_hardware).expect("an executor");
        executors
            .into_iter()
            .map(|executor| executor.amos)
            .collect()
    }

    #[test]
    fn the_network_is_chosen_where_its_hardware_does() {
        assert_eq!(amos(None, &NETWORK, true), [Amos::Network, Amos::Software]);
        assert_eq!(amos(None, &NETWORK, false), [Amos::Software]);
        assert_eq!(amos(None, &TCP, true), [Amos::Software]);
    }

    #[test]
    fn the_requested_executor_is_the_only_one() {
        for in_hardware in [false, true] {
            for requested in [Amos::Software, Amos::Network] {
                let found = amos(Some(requested), &NETWORK, in_hardware);
                assert_eq!(found, [requested]);
            }
            let found = amos(Some(Amos::Software), &TCP, in_hardware);
            assert_eq!(found, [Amos::Software]);
        }

        let refusal = executors(Some(Amos::Network), &TCP, false).expect_err("it has none");
        assert!(
            refusal.contains("SHMEM_AMOS is network, but tcp has no"),
            "{refusal}"
        );
    }

    #[test]
    fn parts_are_those_that_all_pes_have_in_the_order_of_the_first() {
        let has = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect());
        let part = |name: &str, with: &[usize]| CommonPart {
            name: name.to_owned(),
            with: with.to_vec(),
        };

        let found = common_parts(1, &[vec![has(&["a", "b", "c"])], vec![has(&["c", "b"])]]);
        assert_eq!(found, Ok(vec![part("b", &[0]), part("c", &[0])]));

        // Over part `a`, both executors are tried before the one that `b` has.
        let offers = vec![has(&["a"]), has(&["a", "b"])];
        let found = common_parts(2, &[offers.clone(), offers]);
        assert_eq!(found, Ok(vec![part("a", &[0, 1]), part("b", &[1])]));

        let offers = [vec![has(&["a"])], vec![has(&["a"])], vec![has(&["b"])]];
        let found = common_parts(1, &offers);
        let why = "the PEs have nothing in common (PE 0, PE 1: it has a; PE 2: it has b)";
        assert_eq!(found, Err(why.to_owned()));

        let offers = [vec![has(&["a"])], vec![Err("no library".to_owned())]];
        let found = common_parts(1, &offers);
        assert_eq!(found, Err("PE 1: no library".to_owned()));
    }

    #[test]
    fn who_saw_what_is_said_once_for_all_who_saw_the_same() {
        let bad = |why: &str| Err(why.to_owned());
        assert_eq!(complaint(&[Ok(()), Ok(())]), None);

        let found = complaint(&[bad("a"), Ok(()), bad("b"), bad("a")]);
        assert_eq!(found.as_deref(), Some("PE 0, PE 3: a; PE 2: b"));

        let found = complaint(&[bad("a"), bad("a")]);
        assert_eq!(found.as_deref(), Some("all PEs: a"));

        let found = complaint(&[vec![bad("a"); 9], vec![Ok(())]].concat());
        let expected = "PE 0, PE 1, PE 2, PE 3 and 5 more: a";
        assert_eq!(found.as_deref(), Some(expected));
    }
}
