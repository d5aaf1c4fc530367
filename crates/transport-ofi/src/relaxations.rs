//! Why a provider of libfabric refuses what a job requires: one requirement after the other is
//! dropped until the provider agrees. libfabric itself only says that it has nothing.

use crate::hints::{ANY_REGISTRATION, Hints};
use libfabric_sys as fi;

/// A requirement that can be dropped.
pub(crate) struct Relaxation {
    /// The requirement, as the manual of libfabric calls it.
    name: &'static str,
    /// Drops it.
    drop: fn(&mut Hints),
    /// The function that returns what the provider has instead, from the requirements and from an
    /// entry that it then offers; an empty text if it has nothing.
    instead: fn(&Hints, &Hints) -> String,
}

/// A capability, instead of which a provider has none.
const fn capability(name: &'static str, drop: fn(&mut Hints)) -> Relaxation {
    Relaxation { name, drop, instead: |_, _| String::new() }
}

/// All that can be dropped, in the order in which it is tried.
pub(crate) const ALL: &[Relaxation] = &[
    Relaxation {
        name: "FI_EP_RDM (reliable datagrams)",
        drop: |hints| hints.type_ = fi::FI_EP_UNSPEC,
        instead: |_, offer| named(ENDPOINTS, offer.type_),
    },
    capability("FI_REMOTE_COMM (peers on other machines)", |hints| {
        hints.caps &= !(fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM)
    }),
    capability("FI_RMA (remote memory access)", |hints| hints.caps &= !fi::FI_RMA),
    capability("FI_ATOMIC (atomic operations, for SHMEM_AMOS=network)", |hints| {
        hints.caps &= !fi::FI_ATOMIC
    }),
    capability("FI_MSG (messages)", |hints| hints.caps &= !fi::FI_MSG),
    Relaxation {
        name: "FI_THREAD_SAFE",
        drop: |hints| hints.threading = fi::FI_THREAD_UNSPEC,
        instead: |_, offer| named(THREADING, offer.threading),
    },
    Relaxation {
        name: "FI_PROGRESS_MANUAL of control operations",
        drop: |hints| hints.control_progress = fi::FI_PROGRESS_UNSPEC,
        instead: |_, offer| named(PROGRESS, offer.control_progress),
    },
    Relaxation {
        name: "FI_PROGRESS_MANUAL of data transfers",
        drop: |hints| hints.data_progress = fi::FI_PROGRESS_UNSPEC,
        instead: |_, offer| named(PROGRESS, offer.data_progress),
    },
    Relaxation {
        name: "FI_RM_ENABLED (queues that do not overrun)",
        drop: |hints| hints.resource_mgmt = fi::FI_RM_UNSPEC,
        instead: |_, offer| named(RESOURCES, offer.resource_mgmt),
    },
    Relaxation {
        name: "registration as Rushmem knows it",
        drop: |hints| hints.mr_mode = ANY_REGISTRATION,
        instead: |hints, offer| flags(REGISTRATION, offer.mr_mode & !hints.mr_mode),
    },
    Relaxation {
        name: "contexts as the only mode",
        drop: |hints| hints.mode = u64::MAX,
        instead: |hints, offer| flags(MODES, offer.mode & !hints.mode),
    },
    Relaxation {
        name: "the domain of SHMEM_OFI_DOMAIN",
        drop: |hints| hints.domain = None,
        instead: |_, offer| offer.domain.clone().unwrap_or_default(),
    },
    Relaxation {
        name: "the fabric of SHMEM_OFI_FABRIC",
        drop: |hints| hints.fabric = None,
        instead: |_, offer| offer.fabric.clone().unwrap_or_default(),
    },
];

const ENDPOINTS: &[(&str, u32)] =
    &[("FI_EP_MSG", fi::FI_EP_MSG), ("FI_EP_DGRAM", fi::FI_EP_DGRAM), ("FI_EP_RDM", fi::FI_EP_RDM)];
const THREADING: &[(&str, u32)] = &[
    ("FI_THREAD_FID", fi::FI_THREAD_FID),
    ("FI_THREAD_DOMAIN", fi::FI_THREAD_DOMAIN),
    ("FI_THREAD_COMPLETION", fi::FI_THREAD_COMPLETION),
    ("FI_THREAD_ENDPOINT", fi::FI_THREAD_ENDPOINT),
];
const PROGRESS: &[(&str, u32)] =
    &[("FI_PROGRESS_AUTO", fi::FI_PROGRESS_AUTO), ("FI_PROGRESS_MANUAL", fi::FI_PROGRESS_MANUAL)];
const RESOURCES: &[(&str, u32)] = &[("FI_RM_DISABLED", fi::FI_RM_DISABLED)];
const REGISTRATION: &[(&str, u64)] = &[
    ("FI_MR_MMU_NOTIFY", fi::FI_MR_MMU_NOTIFY),
    ("FI_MR_HMEM", fi::FI_MR_HMEM),
    ("FI_MR_COLLECTIVE", fi::FI_MR_COLLECTIVE),
];
const MODES: &[(&str, u64)] = &[
    ("FI_MSG_PREFIX", fi::FI_MSG_PREFIX),
    ("FI_ASYNC_IOV", fi::FI_ASYNC_IOV),
    ("FI_RX_CQ_DATA", fi::FI_RX_CQ_DATA),
    ("FI_LOCAL_MR", fi::FI_LOCAL_MR),
    ("FI_NOTIFY_FLAGS_ONLY", fi::FI_NOTIFY_FLAGS_ONLY),
    ("FI_RESTRICTED_COMP", fi::FI_RESTRICTED_COMP),
    ("FI_BUFFERED_RECV", fi::FI_BUFFERED_RECV),
];

fn named(names: &[(&str, u32)], value: u32) -> String {
    let known = names.iter().find(|(_, known)| *known == value);
    known.map_or(String::new(), |(name, _)| (*name).to_owned())
}

fn flags(names: &[(&str, u64)], value: u64) -> String {
    let set: Vec<&str> =
        names.iter().filter(|(_, flag)| value & flag != 0).map(|(name, _)| *name).collect();
    set.join(" and ")
}

/// Why a provider refuses `hints`; `offer` is what it offers for other ones, if anything. Nothing
/// if it refuses even when all is dropped.
pub(crate) fn search(hints: &Hints, offer: impl Fn(&Hints) -> Option<Hints>) -> Option<String> {
    let without = |dropped: &[&Relaxation]| {
        let mut left = hints.clone();
        dropped.iter().for_each(|relaxation| (relaxation.drop)(&mut left));
        left
    };
    // A requirement that is not there refuses nothing.
    let required: Vec<&Relaxation> =
        ALL.iter().filter(|relaxation| without(&[relaxation]) != *hints).collect();
    let said = |dropped: &[&Relaxation], offer: &Hints| -> String {
        let whys: Vec<String> = dropped
            .iter()
            .map(|relaxation| match (relaxation.instead)(hints, offer) {
                none if none.is_empty() => relaxation.name.to_owned(),
                instead => format!("{}: with {instead} it would do", relaxation.name),
            })
            .collect();
        format!("refuses {}", whys.join("; and "))
    };
    for relaxation in &required {
        if let Some(offer) = offer(&without(&[relaxation])) {
            return Some(said(&[relaxation], &offer));
        }
    }
    // Several are refused: what can be put back is not among them.
    let mut dropped = required;
    let mut offered = offer(&without(&dropped))?;
    for at in (0..dropped.len()).rev() {
        let fewer: Vec<&Relaxation> =
            dropped.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, of)| *of).collect();
        if let Some(offer) = offer(&without(&fewer)) {
            (dropped, offered) = (fewer, offer);
        }
    }
    Some(said(&dropped, &offered))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wish::Wish;

    fn hints() -> Hints {
        Hints::of(&Wish::usual(), false)
    }

    /// A provider that agrees to all but `refuses`, and has `has`.
    fn found(refuses: fn(&Hints) -> bool, has: Hints) -> Option<String> {
        search(&hints(), |hints| (!refuses(hints)).then(|| has.clone()))
    }

    #[test]
    fn a_requirement_that_is_refused_alone_is_named_with_what_would_do() {
        let auto = Hints { data_progress: fi::FI_PROGRESS_AUTO, ..hints() };
        let why = found(|hints| hints.data_progress == fi::FI_PROGRESS_MANUAL, auto);
        let said =
            "refuses FI_PROGRESS_MANUAL of data transfers: with FI_PROGRESS_AUTO it would do";
        assert_eq!(why.as_deref(), Some(said));
        let here = found(|hints| hints.caps & fi::FI_REMOTE_COMM != 0, hints());
        assert_eq!(here.as_deref(), Some("refuses FI_REMOTE_COMM (peers on other machines)"));
    }

    #[test]
    fn flags_that_the_job_does_not_know_are_named() {
        let pages = Hints { mr_mode: fi::FI_MR_MMU_NOTIFY | fi::FI_MR_LOCAL, ..hints() };
        let why = found(|hints| hints.mr_mode & fi::FI_MR_MMU_NOTIFY == 0, pages);
        assert!(why.is_some_and(|why| why.contains("with FI_MR_MMU_NOTIFY it would do")));
    }

    #[test]
    fn several_requirements_that_are_refused_are_all_named_and_no_other() {
        let datagrams = Hints { type_: fi::FI_EP_DGRAM, ..hints() };
        let refuses = |hints: &Hints| hints.type_ == fi::FI_EP_RDM || hints.caps & fi::FI_RMA != 0;
        let said = "refuses FI_EP_RDM (reliable datagrams): with FI_EP_DGRAM it would do; and FI_RMA (remote \
                    memory access)";
        assert_eq!(found(refuses, datagrams).as_deref(), Some(said));
    }

    #[test]
    fn a_provider_that_offers_nothing_has_no_reason() {
        assert_eq!(found(|_| true, hints()), None);
    }
}
