//! Decides which transports are tried, and in which order: a pure function of what all PEs have
//! found, so that the result is the same on all PEs.

use rushmem_transport::Provider;
use serde::{Deserialize, Serialize};

/// The state of one provider on one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Availability {
    /// It is not available, for this reason.
    Absent(String),
    /// It is available, without RDMA devices.
    Plain,
    /// It is available, over RDMA devices.
    Rdma,
}

/// What one PE contributes to the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    /// The name of the transport that its environment requests; empty for `auto`.
    pub(super) requested: String,
    /// The executor of atomic operations that its environment requests, as text; empty for `auto`.
    pub(super) amos: String,
    /// The state of each provider; empty if its environment requests one.
    pub(super) seen: Vec<Availability>,
    /// The names of the providers whose networks carry out atomic operations in hardware on this
    /// PE, if that matters.
    pub(super) hardware_amos: Vec<String>,
}

/// The result of the choice, the same on all PEs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// The providers to try, best first, as indices in the list.
    pub(super) candidates: Vec<usize>,
    /// The providers that are not tried, and why.
    pub(super) passed_over: Vec<(usize, String)>,
}

/// Makes the choice. `providers` are in the order of preference.
///
/// # Errors
/// If PEs request different transports, or if no provider is left to try; a sentence.
pub(super) fn agree(providers: &[&Provider], offers: &[Offer]) -> Result<Selection, String> {
    let shown = |requested: &str| if requested.is_empty() { "auto" } else { requested }.to_owned();
    let settings = |offer: &Offer| {
        [("SHMEM_TRANSPORT", offer.requested.clone()), ("SHMEM_AMOS", offer.amos.clone())]
    };
    for (pe, offer) in offers.iter().enumerate() {
        for ((name, first), (_, other)) in settings(&offers[0]).into_iter().zip(settings(offer)) {
            if other != first {
                return Err(format!(
                    "{name} is {} on PE 0 and {} on PE {pe}; it must be the same on all PEs",
                    shown(&first),
                    shown(&other)
                ));
            }
        }
    }
    let requested = &offers[0].requested;
    let (mut rdma, mut others, mut passed_over) = (Vec::new(), Vec::new(), Vec::new());
    for (place, provider) in providers.iter().enumerate() {
        if provider.name == requested {
            rdma.push(place);
        } else if !requested.is_empty() {
            passed_over.push((place, format!("SHMEM_TRANSPORT is {requested}")));
        } else {
            let seen: Option<Vec<&Availability>> =
                offers.iter().map(|b| b.seen.get(place)).collect();
            let seen = seen.ok_or("another PE knows other transports; start all PEs alike")?;
            match why_not(provider, &seen) {
                Some(why) => passed_over.push((place, why)),
                None if seen.iter().all(|seen| **seen == Availability::Rdma) => rdma.push(place),
                None => others.push(place),
            }
        }
    }
    rdma.append(&mut others);
    match rdma.is_empty() {
        false => Ok(Selection { candidates: rdma, passed_over }),
        true => {
            let whys: Vec<String> = passed_over
                .iter()
                .map(|(place, why)| format!("{}: {why}", providers[*place].name))
                .collect();
            Err(format!("PEs that share no memory need a transport; {}", whys.join("; ")))
        }
    }
}

/// Returns why `auto` does not try a provider with this availability on the PEs; `None` if it does.
fn why_not(provider: &Provider, seen: &[&Availability]) -> Option<String> {
    let absent: Vec<Result<(), String>> = seen
        .iter()
        .map(|seen| match seen {
            Availability::Absent(why) => Err(why.clone()),
            Availability::Plain | Availability::Rdma => Ok(()),
        })
        .collect();
    if let Some(said) = complaint(&absent) {
        return Some(said);
    }
    let plain: Vec<u32> = pes(seen.iter().map(|seen| **seen == Availability::Plain));
    (!provider.without_rdma && !plain.is_empty()).then(|| match plain.len() == seen.len() {
        true => "no PE has an RDMA device for it".to_owned(),
        false => format!("{} no RDMA device for it", listed(&plain, "has", "have")),
    })
}

/// Returns the parts of a provider that all PEs can use, in the order of PE 0, and for each part
/// the candidates for atomic operations with which they can. `offers` has, for each PE and
/// candidate, the parts that the PE can use, or why it can use none.
///
/// # Errors
/// If there is no common part; the reason for each candidate.
pub(super) fn parts(
    n_ways: usize,
    offers: &[Vec<Result<Vec<String>, String>>],
) -> Result<Vec<(String, Vec<usize>)>, String> {
    let mut agreed: Vec<(String, Vec<usize>)> = Vec::new();
    let mut whys = Vec::new();
    for way in 0..n_ways {
        let of_way = || offers.iter().filter_map(|offer| offer.get(way));
        let absent: Vec<Result<(), String>> =
            of_way().map(|offer| offer.as_ref().map(drop).map_err(Clone::clone)).collect();
        if let Some(why) = complaint(&absent) {
            whys.push(why);
            continue;
        }
        let lists: Vec<&Vec<String>> = of_way().filter_map(|offer| offer.as_ref().ok()).collect();
        let is_common = |part: &&String| lists.iter().all(|list| list.contains(part));
        let found: Vec<&String> =
            lists.iter().take(1).copied().flatten().filter(is_common).collect();
        if found.is_empty() {
            let each = lists.iter().map(|list| Err(format!("it has {}", list.join(", "))));
            let each: Vec<Result<(), String>> = each.collect();
            let each = complaint(&each).unwrap_or_default();
            whys.push(format!("the PEs have nothing in common ({each})"));
        }
        for part in found {
            match agreed.iter_mut().find(|(known, _)| known == part) {
                Some((_, ways)) => ways.push(way),
                None => agreed.push((part.clone(), vec![way])),
            }
        }
    }
    whys.dedup();
    if agreed.is_empty() { Err(whys.join("; ")) } else { Ok(agreed) }
}

/// Describes which PEs have failed for which reason; `None` if none has. PEs with the same reason
/// are named together.
pub(super) fn complaint(outcomes: &[Result<(), String>]) -> Option<String> {
    let mut whys: Vec<&String> = Vec::new();
    for why in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        if !whys.contains(&why) {
            whys.push(why);
        }
    }
    let who = |why: &String| pes(outcomes.iter().map(|outcome| outcome.as_ref() == Err(why)));
    let said: Vec<String> = whys
        .into_iter()
        .map(|why| match who(why) {
            all if all.len() == outcomes.len() && all.len() > 1 => format!("all PEs: {why}"),
            some => format!("{}: {why}", listed(&some, "", "")),
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn pes(are: impl Iterator<Item = bool>) -> Vec<u32> {
    are.zip(0..).filter(|(is, _)| *is).map(|(_, pe)| pe).collect()
}

/// Lists PEs, of many only the first ones, followed by a verb in the singular or plural.
fn listed(pes: &[u32], one: &str, several: &str) -> String {
    const SHOWN: usize = 4;
    let named: Vec<String> = pes.iter().take(SHOWN).map(|pe| format!("PE {pe}")).collect();
    let more = match pes.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let verb = if pes.len() == 1 { one } else { several };
    format!("{}{more} {verb}", named.join(", ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::null;

    const UCX: Provider = Provider { name: "ucx", ..null::PROVIDER };
    const OFI: Provider = Provider { name: "ofi", ..null::PROVIDER };
    const TCP: Provider = Provider { name: "tcp", without_rdma: true, ..null::PROVIDER };

    fn agreed(offers: &[Offer]) -> Result<Selection, String> {
        agree(&[&UCX, &OFI, &TCP], offers)
    }

    fn auto(ucx: Availability, ofi: Availability) -> Offer {
        Offer { seen: vec![ucx, ofi, Availability::Plain], ..Offer::default() }
    }

    fn forced(name: &str) -> Offer {
        Offer { requested: name.to_owned(), ..Offer::default() }
    }

    #[test]
    fn rdma_goes_first_and_software_only_where_it_is_ours() {
        use Availability::{Plain, Rdma};
        let candidates = |ucx: &Availability, ofi: &Availability| {
            let offers = [auto(ucx.clone(), ofi.clone()), auto(ucx.clone(), ofi.clone())];
            agreed(&offers).expect("tcp at least").candidates
        };
        assert_eq!(candidates(&Rdma, &Rdma), [0, 1, 2]);
        assert_eq!(candidates(&Plain, &Rdma), [1, 2]);
        assert_eq!(candidates(&Plain, &Plain), [2]);
        assert_eq!(candidates(&Availability::Absent("gone".into()), &Plain), [2]);
    }

    #[test]
    fn what_some_pes_lack_is_passed_over_with_the_reason() {
        let (with, without) = (
            auto(Availability::Rdma, Availability::Rdma),
            auto(Availability::Plain, Availability::Rdma),
        );
        let lacking = auto(Availability::Rdma, Availability::Absent("no libfabric.so.1".into()));
        let agreed = agreed(&[with.clone(), without, with, lacking]).expect("tcp at least");
        assert_eq!(agreed.candidates, [2]);
        let why = |place| agreed.passed_over.iter().find(|(p, _)| *p == place).map(|(_, w)| &**w);
        assert_eq!(why(0), Some("PE 1 has no RDMA device for it"));
        assert_eq!(why(1), Some("PE 3: no libfabric.so.1"));
    }

    #[test]
    fn what_is_requested_is_the_only_candidate() {
        let agreed_on = agreed(&[forced("ofi"), forced("ofi")]).expect("it is known");
        assert_eq!(agreed_on.candidates, [1]);
        assert_eq!(agreed_on.passed_over.len(), 2);
        let error =
            agreed(&[forced("tcp"), forced("tcp"), auto(Availability::Rdma, Availability::Rdma)]);
        let error = error.expect_err("they differ");
        assert!(error.contains("tcp on PE 0") && error.contains("auto on PE 2"), "{error}");
    }

    #[test]
    fn pes_agree_on_who_carries_out_atomic_operations() {
        let network = Offer { amos: "network".to_owned(), ..forced("ofi") };
        let error = agreed(&[forced("ofi"), forced("ofi"), network]).expect_err("they differ");
        assert!(error.contains("SHMEM_AMOS is auto on PE 0 and network on PE 2"), "{error}");
    }

    #[test]
    fn parts_are_those_that_all_pes_have_in_the_order_of_the_first() {
        let has = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect());
        let agreed = |offers: &[Vec<Result<Vec<String>, String>>]| parts(offers[0].len(), offers);
        let found = agreed(&[vec![has(&["a", "b", "c"])], vec![has(&["c", "b"])]]);
        assert_eq!(found, Ok(vec![("b".to_owned(), vec![0]), ("c".to_owned(), vec![0])]));
        // Over one part the first candidate is better, but the order of the parts comes first.
        let network = || vec![has(&["a"]), has(&["a", "b"])];
        let found = agreed(&[network(), network()]);
        assert_eq!(found, Ok(vec![("a".to_owned(), vec![0, 1]), ("b".to_owned(), vec![1])]));
        let found = agreed(&[vec![has(&["a"])], vec![has(&["a"])], vec![has(&["b"])]]);
        let why = "the PEs have nothing in common (PE 0, PE 1: it has a; PE 2: it has b)";
        assert_eq!(found, Err(why.to_owned()));
        let found = agreed(&[vec![has(&["a"])], vec![Err("no library".to_owned())]]);
        assert_eq!(found, Err("PE 1: no library".to_owned()));
    }

    #[test]
    fn who_saw_what_is_said_once_for_all_who_saw_the_same() {
        let bad = |why: &str| Err(why.to_owned());
        assert_eq!(complaint(&[Ok(()), Ok(())]), None);
        let said = complaint(&[bad("a"), Ok(()), bad("b"), bad("a")]);
        assert_eq!(said.as_deref(), Some("PE 0, PE 3: a; PE 2: b"));
        assert_eq!(complaint(&[bad("a"), bad("a")]).as_deref(), Some("all PEs: a"));
        let many = complaint(&[vec![bad("a"); 9], vec![Ok(())]].concat());
        assert_eq!(many.as_deref(), Some("PE 0, PE 1, PE 2, PE 3 and 5 more: a"));
    }
}
