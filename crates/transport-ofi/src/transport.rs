//! Opens a provider of libfabric for this PE, and its endpoints.

use crate::choice;
use crate::connect::Address;
use crate::ep::{BufferSizes, EpOwner, FiEndpoint};
use crate::fabric::{self, Fabric};
use crate::info::{FiInfo, InfoList};
use crate::native;
use crate::quirks::Quirk;
use crate::service::{SENDS, Service};
use crate::settings::{DESCRIPTORS, ENDPOINTS, MIN_DESCRIPTORS, OF_ENDPOINT, PORT_RANGE, Tuning};
use crate::shared::SharedState;
use libfabric_sys as fi;
use rushmem_connect::Secret;
use rushmem_system::setting::environment;
use rushmem_transport::engine::WireLimit;
use rushmem_transport::{
    AmoOp, AmoSet, Amos, Caps, Error, NetworkTransport, Open, OpenedNetwork, Transport,
};
use std::sync::Arc;

/// Two words that are derived from the job's secret. They are sent, and do not reveal the secret.
struct DerivedWords {
    /// The tag in every message of the job.
    tag: u64,
    /// A random number, from which the keys of registrations start.
    first_key: u64,
}

impl DerivedWords {
    fn of(secret: &[u8; 32]) -> DerivedWords {
        let derived = Secret::from(*secret).derive("libfabric", &[]);
        let (words, _) = derived.bytes().as_chunks::<8>();
        DerivedWords {
            tag: u64::from_le_bytes(words[0]),
            first_key: u64::from_le_bytes(words[1]),
        }
    }
}

/// Returns the key of the first registration of this PE, which counts up from it, if this PE
/// chooses the keys.
fn first_key(args: &Open, info: &FiInfo) -> u64 {
    if !info.has_random_keys() {
        return 1;
    }
    // The PEs of a job have different keys, up to a million of each.
    let random = DerivedWords::of(&args.secret).first_key;
    random.wrapping_add(u64::from(args.pe.0) << 20)
}

/// Returns libfabric's reason for refusing an endpoint, with the range of ports if that may be too
/// short.
fn refused_endpoint(library: &fi::Libfabric, code: i32) -> String {
    let why = library.strerror(code);
    let has_no_port = [fi::FI_EADDRINUSE, fi::FI_EADDRNOTAVAIL].contains(&code.abs());
    match environment(PORT_RANGE.0).zip(environment(PORT_RANGE.1)) {
        Some((first, last)) if has_no_port => format!(
            "{why}; all ports of SHMEM_TCP_PORTS ({first}-{last}) may be taken: give a wider range, \
             or end what listens there (`ss -tlnp`)"
        ),
        _ => why,
    }
}

/// An opened provider: its domain and the service's ep.
struct OpenedProvider {
    ep: FiEndpoint,
    amos: AmoSet,
    address: Address,
}

/// Opens an entry to see whether it works, and closes it unless closing may crash.
pub(crate) fn try_open(args: &Open, list: InfoList, info: FiInfo) -> Result<(), String> {
    let fails_at_close = info.has(Quirk::FailsAtClose);
    let opened = open_entry(args, &Tuning::default(), list, info)?;
    if fails_at_close {
        std::mem::forget(opened);
    }
    Ok(())
}

/// Opens the domain of an entry and the service's ep, and adjusts the entry to `tuning`. Fails if a
/// job cannot use it.
fn open_entry(
    args: &Open,
    tuning: &Tuning,
    list: InfoList,
    info: FiInfo,
) -> Result<OpenedProvider, String> {
    let info = with_used_promises(info, tuning);
    if !info.delivery && !info.reads_follow {
        let why = "it does not report when a write has reached the target's memory, and orders no reads after writes";
        return Err(why.to_owned());
    }

    let n_pes = args.n_pes as usize;
    let first_key = first_key(args, &info);
    let fabric = Arc::new(Fabric::open(list, info, first_key, n_pes)?);
    let refused = |code| {
        format!(
            "an endpoint was refused: {}",
            refused_endpoint(fabric.library, code)
        )
    };

    let Tuning {
        receives,
        longest_message,
        connect_limit,
        ..
    } = tuning.limited_to(&fabric.info);
    let cells = BufferSizes {
        cell: longest_message,
        // The service starts no writes: its cells hold messages.
        copy_up_to: 1,
        longest_message,
    };
    let ep = FiEndpoint::open(
        Arc::clone(&fabric),
        n_pes,
        receives + SENDS,
        cells,
        connect_limit,
        EpOwner::Service,
    )
    .map_err(refused)?;

    let supported = match args.amos {
        Amos::Software => AmoSet::default(),
        Amos::Network => native::supported(&ep.endpoint)?,
    };
    // Compare-and-swap is no optional feature: all other operations can be composed of it.
    let amos = AmoSet::of(|op, width| {
        supported.has(op, width) && (tuning.trust || op == AmoOp::CompareSwap)
    });

    let name = fabric.name(&ep.endpoint).map_err(refused)?;
    let provider = fabric.info.provider.clone();
    let address = Address { provider, name };
    Ok(OpenedProvider { ep, amos, address })
}

/// Returns an entry with the promises of its provider that are used: all of them, unless `tuning`
/// or a quirk forbids that.
fn with_used_promises(info: FiInfo, tuning: &Tuning) -> FiInfo {
    let read_back = info.has(Quirk::ReadsFollow);
    if tuning.trust && !read_back {
        return info;
    }

    // Completions for the target's memory are used only where no read can show that writes have
    // arrived.
    let reads_follow = info.reads_follow || read_back;
    let delivery = info.delivery && !reads_follow;
    FiInfo {
        delivery,
        reads_follow,
        ordered: false,
        ..info
    }
}

/// Opens the transport with these limits.
///
/// # Errors
/// [`Error::Unavailable`] if libfabric cannot be used, or none of its providers; the text says why.
pub fn open(args: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    let opened = open_network(args, tuning)?;
    Ok(Box::new(NetworkTransport::start(opened)?))
}

/// Returns the providers of libfabric that fit a job, best first.
///
/// # Errors
/// [`Error::Unavailable`] if there are none.
pub(crate) fn parts(args: &Open) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = Vec::new();
    for (_, info) in choice::candidates(args).map_err(Error::Unavailable)? {
        if !names.contains(&info.provider) {
            names.push(info.provider);
        }
    }
    Ok(names)
}

fn open_network(args: &Open, tuning: Tuning) -> Result<OpenedNetwork<SharedState>, Error> {
    DESCRIPTORS
        .require(args.n_pes, MIN_DESCRIPTORS)
        .map_err(Error::Unavailable)?;

    let OpenedProvider { ep, amos, address } = open_first(args, &tuning)?;
    let info = &ep.fabric.info;
    rushmem_system::log::debug!(
        mr_mode = format_args!("{:#x}", info.mr_mode),
        ordered = info.ordered,
        delivery = info.delivery,
        reads_follow = info.reads_follow,
        locks_memory = info.locks_memory(),
        "provider {} ({}) is used, at {}",
        info.provider,
        info.domain,
        address.shown()
    );

    let mut tuning = tuning.limited_to(info);
    // Only connections over sockets take file descriptors.
    if info.sockets {
        tuning.endpoints = OF_ENDPOINT.fitting(args.n_pes, tuning.endpoints);
    }

    let tag = DerivedWords::of(&args.secret).tag;
    let library = ep.fabric.library;
    let mut service = Service::new(args.pe, ep, &tuning, tag);
    service.post_receives().map_err(|code| {
        let why = library.strerror(code);
        Error::Unavailable(format!("libfabric refused a buffer for messages: {why}"))
    })?;

    let published = address.encode();
    let network = SharedState::new(args, tuning, amos, service, address)
        .map_err(|error| Error::Unavailable(format!("the kernel refused a timer: {error}")))?;
    let info = &network.fabric.info;
    let caps = Caps {
        amos_compose_with_cpu: args.amos == Amos::Software,
        needs_first_thread: info.has(Quirk::NeedsFirstThread),
        locks_memory: info.locks_memory(),
        heap_in_blocks: info.heap_in_blocks(),
        // Nothing signals what a NIC writes, nor what the kernel writes as a NIC in software.
        wakes_waits: info.copies() && !info.locks_memory() && network.cq.can_sleep(),
    };
    Ok(OpenedNetwork {
        name: "rushmem-ofi",
        address: published,
        caps,
        wire_limit: WireLimit {
            n_wires: network.tuning.endpoints,
            set_by: ENDPOINTS,
        },
        network,
    })
}

/// Opens the first of the entries that fit the job and can be opened.
fn open_first(args: &Open, tuning: &Tuning) -> Result<OpenedProvider, Error> {
    let mut refusals = Vec::new();
    for (list, info) in choice::candidates(args).map_err(Error::Unavailable)? {
        // `open_entry` takes the entry, also if it fails.
        let provider = info.provider.clone();
        let domain = info.domain.clone();
        match open_entry(args, tuning, list, info) {
            Ok(opened) => return Ok(opened),
            Err(why) => {
                rushmem_system::log::debug!("provider {provider} ({domain}) is refused: {why}");
                refusals.push(format!("provider {provider}, domain {domain}: {why}"));
            }
        }
    }

    Err(Error::Unavailable(format!(
        "libfabric offers nothing that can be opened: {}; {}",
        refusals.join("; "),
        fabric::LOG
    )))
}

/// Opens an ep for a new wire.
pub(crate) fn open_ep(shared: &SharedState) -> Result<FiEndpoint, Error> {
    let depth = shared.tuning.depth.min(shared.fabric.info.depth.max(1));

    let Tuning {
        longest_message,
        longest_batch_message,
        connect_limit,
        ..
    } = shared.tuning;
    let copy_up_to = shared.copy_up_to(true);
    let cells = BufferSizes {
        cell: copy_up_to.max(longest_batch_message),
        copy_up_to,
        longest_message,
    };

    // shm of libfabric 2.5 cannot open an endpoint while another one is polled.
    let opened = shared.while_paused(|_| {
        let fabric = Arc::clone(&shared.fabric);
        let n_pes = shared.peers.n_pes();
        FiEndpoint::open(fabric, n_pes, depth, cells, connect_limit, EpOwner::Origin)
    });
    opened.map_err(|code| {
        let why = refused_endpoint(shared.fabric.library, code);
        Error::Unavailable(format!("libfabric refused one more endpoint: {why}"))
    })
}

#[cfg(test)]
pub(crate) mod tests;
