//! Says why providers of libfabric do not fit a job. libfabric reports no reason, so this asks each
//! provider again with fewer requirements.

use super::Request;
use crate::info::{ANY_REGISTRATION, FiInfo, InfoList, installed};
use crate::settings::{DOMAIN, FABRIC, PROVIDER};
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use rushmem_system::interfaces::INTERFACES;
use rushmem_transport::{Amos, Diagnosis, Verdict};

/// Start of the names of libfabric's utility providers, which are layers above others or log calls.
const LAYERS: &str = "ofi_";

/// Returns the reason why nothing fits, the variables that restrict the choice, and the commands
/// that show more.
pub(super) fn nothing_fits(library: &'static Libfabric, request: &Request) -> String {
    let why = why_nothing_fits(library, request);

    let set = restrictions(request);
    let set = if set.is_empty() {
        String::new()
    } else {
        format!(" with {}", set.join(", "))
    };
    format!(
        "libfabric has nothing that a job can use{set}: {why}; `shmem-info --doctor` explains all of its providers, \
         and `fi_info` lists them"
    )
}

fn why_nothing_fits(library: &'static Libfabric, request: &Request) -> String {
    let provider = &request.provider;
    let refused = refusals(library, request, &[]);

    // Of a provider that the user names, the diagnosis is the reason, whatever its verdict is.
    let mut reasons: Vec<String> = Vec::new();
    for one in &refused {
        let is_reason = if provider.is_empty() {
            one.verdict == Verdict::Refused
        } else {
            one.name == *provider
        };
        if is_reason {
            reasons.push(one.to_string());
        }
    }
    if !reasons.is_empty() {
        return reasons.join("; ");
    }

    if provider.is_empty() {
        return "no provider of it has a device here".to_owned();
    }
    if let Some(owner) = provider_of_fabric(library, provider) {
        return format!(
            "{PROVIDER} is {provider}, which is a fabric of the provider {owner}: set {FABRIC} instead"
        );
    }
    let here = refused.iter().filter(|one| one.verdict != Verdict::Absent);
    let names: Vec<&str> = here.map(|one| one.name.as_str()).collect();
    let names = names.join(", ");
    format!("{PROVIDER} is {provider}, and there is no such provider: there are {names}")
}

/// Returns the variables that restrict the choice, as `NAME=value`.
fn restrictions(request: &Request) -> Vec<String> {
    let of_libfabric = std::env::var("FI_PROVIDER").unwrap_or_default();
    let interfaces = request.interfaces.as_ref();
    let interfaces = interfaces.map_or(String::new(), |allowed| allowed.list.clone());
    let amos = if request.amos == Amos::Network {
        request.amos.to_string()
    } else {
        String::new()
    };
    let variables = [
        ("FI_PROVIDER", &of_libfabric),
        (PROVIDER, &request.provider),
        (DOMAIN, &request.domain),
        (FABRIC, &request.fabric),
        (INTERFACES, &interfaces),
        ("SHMEM_AMOS", &amos),
    ];

    variables
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Returns the provider that has a fabric of this name.
fn provider_of_fabric(library: &'static Libfabric, name: &str) -> Option<String> {
    let all = InfoList::of(library, &FiInfo::any()).ok()?;

    let found = all
        .iter()
        .map(|entry| FiInfo::of(entry, false))
        .find(|info| info.fabric == name);
    found.map(|info| info.provider)
}

/// Returns the diagnosis of each provider whose name is not in `fits`: those with a device or an
/// interface here, then the other installed ones, without [`LAYERS`].
pub(super) fn refusals(
    library: &'static Libfabric,
    request: &Request,
    fits: &[String],
) -> Vec<Diagnosis> {
    let mut names: Vec<String> = Vec::new();
    if let Ok(all) = InfoList::of(library, &FiInfo::any()) {
        for FiInfo { provider, .. } in all.iter().map(|entry| FiInfo::of(entry, false)) {
            if !names.contains(&provider) {
                names.push(provider);
            }
        }
    }

    let mut all: Vec<Diagnosis> = Vec::new();
    for name in &names {
        if !fits.contains(name) {
            all.push(refusal(library, request, name));
        }
    }

    // The installed providers are listed by single layers, of which the names above are composed.
    for name in installed(library) {
        let is_layer_of_another = names
            .iter()
            .any(|known| known.split(';').any(|layer| layer == name));
        if !name.starts_with(LAYERS) && !is_layer_of_another {
            let reason = "no device of this kind";
            all.push(Diagnosis::new(name, Verdict::Absent, reason));
        }
    }
    all
}

/// Returns the diagnosis of a provider that has a device or an interface here and does not fit.
fn refusal(library: &'static Libfabric, request: &Request, name: &str) -> Diagnosis {
    let requested = &request.provider;
    if !requested.is_empty() && requested != name {
        return Diagnosis::new(name, Verdict::Unused, format!("{PROVIDER} is {requested}"));
    }

    let hints = FiInfo {
        provider: name.to_owned(),
        ..request.hints(false)
    };
    // An offer without a mismatch fits, and such a provider is not diagnosed here.
    let mismatch = offer_of(library, &hints).and_then(|info| request.mismatch(&info));
    let why = if let Some(mismatch) = mismatch {
        mismatch
    } else if let Some(refused) = refused_hints(&hints, |hints| offer_of(library, hints)) {
        refused
    } else {
        "offers nothing, whatever is required of it".to_owned()
    };
    Diagnosis::new(name, Verdict::Refused, why)
}

/// Returns the first entry that the provider of the hints offers for them.
fn offer_of(library: &'static Libfabric, hints: &FiInfo) -> Option<FiInfo> {
    let offers = InfoList::of(library, hints).ok()?;
    offers
        .iter()
        .map(|entry| FiInfo::of(entry, false))
        .find(|offer| offer.provider == hints.provider)
}

/// A requirement that can be dropped.
struct Relaxation {
    /// The name of the requirement, in the words of libfabric's manual where it has any.
    requirement: &'static str,
    /// Drops the requirement from hints.
    drop: fn(&mut FiInfo),
    /// Names what the provider has instead, from the hints and the entry that the provider offers
    /// without this requirement. May return an empty text.
    instead: fn(&FiInfo, &FiInfo) -> String,
}

/// All requirements that can be dropped, in the order in which they are named.
const RELAXATIONS: &[Relaxation] = &[
    Relaxation {
        requirement: "FI_EP_RDM (reliable datagrams)",
        drop: |hints| hints.type_ = fi::FI_EP_UNSPEC,
        instead: |_, offer| named(ENDPOINTS, offer.type_),
    },
    Relaxation {
        requirement: "FI_REMOTE_COMM (peers on other machines)",
        drop: |hints| hints.caps &= !(fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM),
        instead: nothing,
    },
    Relaxation {
        requirement: "FI_RMA (remote memory access)",
        drop: |hints| hints.caps &= !fi::FI_RMA,
        instead: nothing,
    },
    Relaxation {
        requirement: "FI_ATOMIC (atomic operations, for SHMEM_AMOS=network)",
        drop: |hints| hints.caps &= !fi::FI_ATOMIC,
        instead: nothing,
    },
    Relaxation {
        requirement: "FI_MSG (messages)",
        drop: |hints| hints.caps &= !fi::FI_MSG,
        instead: nothing,
    },
    Relaxation {
        requirement: "FI_THREAD_SAFE",
        drop: |hints| hints.threading = fi::FI_THREAD_UNSPEC,
        instead: |_, offer| named(THREADING, offer.threading),
    },
    Relaxation {
        requirement: "FI_PROGRESS_MANUAL of control operations",
        drop: |hints| hints.control_progress = fi::FI_PROGRESS_UNSPEC,
        instead: |_, offer| named(PROGRESS, offer.control_progress),
    },
    Relaxation {
        requirement: "FI_PROGRESS_MANUAL of data transfers",
        drop: |hints| hints.data_progress = fi::FI_PROGRESS_UNSPEC,
        instead: |_, offer| named(PROGRESS, offer.data_progress),
    },
    Relaxation {
        requirement: "FI_RM_ENABLED (queues that do not overrun)",
        drop: |hints| hints.resource_mgmt = fi::FI_RM_UNSPEC,
        instead: |_, offer| named(RESOURCES, offer.resource_mgmt),
    },
    Relaxation {
        requirement: "registration as Rushmem knows it",
        drop: |hints| hints.mr_mode = ANY_REGISTRATION,
        instead: |hints, offer| flags(REGISTRATION, offer.mr_mode & !hints.mr_mode),
    },
    Relaxation {
        requirement: "contexts as the only mode",
        drop: |hints| hints.mode = u64::MAX,
        instead: |hints, offer| flags(MODES, offer.mode & !hints.mode),
    },
    Relaxation {
        requirement: "the domain of SHMEM_OFI_DOMAIN",
        drop: |hints| hints.domain.clear(),
        instead: |_, offer| offer.domain.clone(),
    },
    Relaxation {
        requirement: "the fabric of SHMEM_OFI_FABRIC",
        drop: |hints| hints.fabric.clear(),
        instead: |_, offer| offer.fabric.clone(),
    },
];

const ENDPOINTS: &[(&str, u32)] = &[
    ("FI_EP_MSG", fi::FI_EP_MSG),
    ("FI_EP_DGRAM", fi::FI_EP_DGRAM),
    ("FI_EP_RDM", fi::FI_EP_RDM),
];
const THREADING: &[(&str, u32)] = &[
    ("FI_THREAD_FID", fi::FI_THREAD_FID),
    ("FI_THREAD_DOMAIN", fi::FI_THREAD_DOMAIN),
    ("FI_THREAD_COMPLETION", fi::FI_THREAD_COMPLETION),
    ("FI_THREAD_ENDPOINT", fi::FI_THREAD_ENDPOINT),
];
const PROGRESS: &[(&str, u32)] = &[
    ("FI_PROGRESS_AUTO", fi::FI_PROGRESS_AUTO),
    ("FI_PROGRESS_MANUAL", fi::FI_PROGRESS_MANUAL),
];
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

/// Returns an empty text, for a requirement without alternatives.
fn nothing(_: &FiInfo, _: &FiInfo) -> String {
    String::new()
}

fn named(names: &[(&str, u32)], value: u32) -> String {
    let known = names.iter().find(|(_, known)| *known == value);
    known.map_or(String::new(), |(name, _)| (*name).to_owned())
}

fn flags(names: &[(&str, u64)], value: u64) -> String {
    let set = names.iter().filter(|(_, flag)| value & flag != 0);
    set.map(|(name, _)| *name).collect::<Vec<_>>().join(" and ")
}

/// Returns the reason why a provider refuses `hints`, which libfabric does not report: a smallest
/// set of requirements without which it makes an offer. `offer` queries the provider with other
/// hints. Returns `None` if it offers nothing even without all [`RELAXATIONS`].
fn refused_hints(hints: &FiInfo, offer: impl Fn(&FiInfo) -> Option<FiInfo>) -> Option<String> {
    // Requirements that `hints` does not contain cannot be the reason.
    let mut dropped: Vec<&Relaxation> = RELAXATIONS
        .iter()
        .filter(|one| without(hints, &[one]) != *hints)
        .collect();
    let mut offered = offer(&without(hints, &dropped))?;

    // If the provider still makes an offer with a requirement put back, this one is not the reason.
    // Backwards, so that the indices of those that are still to be tried stay the same.
    for i in (0..dropped.len()).rev() {
        let mut fewer = dropped.clone();
        fewer.remove(i);
        if let Some(offer) = offer(&without(hints, &fewer)) {
            dropped = fewer;
            offered = offer;
        }
    }

    let mut reasons: Vec<String> = Vec::new();
    for one in dropped {
        let requirement = one.requirement;
        let instead = (one.instead)(hints, &offered);
        reasons.push(if instead.is_empty() {
            requirement.to_owned()
        } else {
            format!("{requirement}: with {instead} it would do")
        });
    }
    Some(format!("refuses {}", reasons.join("; and ")))
}

fn without(hints: &FiInfo, dropped: &[&Relaxation]) -> FiInfo {
    let mut left = hints.clone();
    for one in dropped {
        (one.drop)(&mut left);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    fn hints() -> FiInfo {
        request().hints(false)
    }

    /// Returns the message about a provider that offers `has` for all hints but those for which
    /// `refuses` is true.
    fn refused(refuses: fn(&FiInfo) -> bool, has: FiInfo) -> Option<String> {
        refused_hints(&hints(), |hints| {
            if refuses(hints) {
                None
            } else {
                Some(has.clone())
            }
        })
    }

    #[test]
    fn a_requirement_that_is_refused_alone_is_named_with_what_would_do() {
        let auto = FiInfo {
            data_progress: fi::FI_PROGRESS_AUTO,
            ..hints()
        };
        let why = refused(|hints| hints.data_progress == fi::FI_PROGRESS_MANUAL, auto);
        let expected =
            "refuses FI_PROGRESS_MANUAL of data transfers: with FI_PROGRESS_AUTO it would do";
        assert_eq!(why.as_deref(), Some(expected));
        let here = refused(|hints| hints.caps & fi::FI_REMOTE_COMM != 0, hints());
        assert_eq!(
            here.as_deref(),
            Some("refuses FI_REMOTE_COMM (peers on other machines)")
        );
    }

    #[test]
    fn flags_that_the_job_does_not_know_are_named() {
        let pages = FiInfo {
            mr_mode: fi::FI_MR_MMU_NOTIFY | fi::FI_MR_LOCAL,
            ..hints()
        };
        let why = refused(|hints| hints.mr_mode & fi::FI_MR_MMU_NOTIFY == 0, pages);
        assert!(why.is_some_and(|why| why.contains("with FI_MR_MMU_NOTIFY it would do")));
    }

    #[test]
    fn several_requirements_that_are_refused_are_all_named_and_no_other() {
        let datagrams = FiInfo {
            type_: fi::FI_EP_DGRAM,
            ..hints()
        };
        let refuses = |hints: &FiInfo| hints.type_ == fi::FI_EP_RDM || hints.caps & fi::FI_RMA != 0;
        let expected = "refuses FI_EP_RDM (reliable datagrams): with FI_EP_DGRAM it would do; and FI_RMA (remote \
                    memory access)";
        assert_eq!(refused(refuses, datagrams).as_deref(), Some(expected));
    }

    #[test]
    fn a_provider_that_offers_nothing_has_no_reason() {
        assert_eq!(refused(|_| true, hints()), None);
    }
}
