//! Which of libfabric's providers and domains can carry this job, in the order in which it offers
//! them.
#![allow(unsafe_code)]

use crate::facts::{FabricNic, InfoFacts, ORDERS, READS};
use crate::hints::{Hints, text};
use crate::quirks;
use crate::settings::{DOMAIN, FABRIC};
use crate::wish::Wish;
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use rushmem_transport::MANY_PAIRS;

/// A list of libfabric's.
pub(crate) struct InfoList {
    library: &'static Libfabric,
    first: *mut fi::fi_info,
}

// SAFETY: owned memory that libfabric does not share. It is not `Sync`, since code that has its
// pointer may change it.
unsafe impl Send for InfoList {}

impl Drop for InfoList {
    fn drop(&mut self) {
        // SAFETY: owned, and made by this library.
        unsafe { self.library.freeinfo(self.first) };
    }
}

impl InfoList {
    /// A copy of one entry.
    pub(crate) fn of(library: &'static Libfabric, entry: &fi::fi_info) -> Option<InfoList> {
        // SAFETY: an entry of a list that lives.
        let first = unsafe { library.dupinfo(entry) };
        (!first.is_null()).then_some(InfoList { library, first })
    }

    pub(crate) fn first(&self) -> *mut fi::fi_info {
        self.first
    }

    /// The entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &fi::fi_info> {
        // SAFETY: the list lives as long as the borrow, and nothing changes it.
        let entry = |at: *mut fi::fi_info| unsafe { at.as_ref() };
        std::iter::successors(entry(self.first), move |info| entry(info.next))
    }
}

/// All that fits, best first; perhaps nothing.
///
/// # Errors
/// When libfabric cannot be queried.
pub(crate) fn fitting(
    library: &'static Libfabric,
    wish: &Wish,
) -> Result<Vec<(InfoList, InfoFacts)>, String> {
    let mut found: Vec<(InfoList, InfoFacts)> = Vec::new();
    // An entry that has completions that cover the target's memory is taken with them.
    for delivery in [true, false] {
        let Some(list) = list(library, &Hints::of(wish, delivery))? else { continue };
        for info in list.iter() {
            let facts = facts(info, delivery);
            let known = |(_, other): &(InfoList, InfoFacts)| {
                other.provider == facts.provider && other.domain == facts.domain
            };
            if why_not(&facts, wish).is_none()
                && !found.iter().any(known)
                && let Some(entry) = InfoList::of(library, info)
            {
                found.push((entry, facts));
            }
        }
    }
    order_by_connections(&mut found, wish);
    order(&mut found, wish);
    Ok(found)
}

/// Why an entry that libfabric offers for what a job requires is not taken.
pub(crate) fn why_not(facts: &InfoFacts, wish: &Wish) -> Option<String> {
    // Not every provider looks at the domain and the fabric that are requested.
    if let Some(domain) = wish.domain.as_ref().filter(|domain| **domain != facts.domain) {
        return Some(format!("its domain is {}, but {DOMAIN} is {domain}", facts.domain));
    }
    if let Some(fabric) = wish.fabric.as_ref().filter(|fabric| **fabric != facts.fabric) {
        return Some(format!("its fabric is {}, but {FABRIC} is {fabric}", facts.fabric));
    }
    if facts.sockets && !wish.may_use(&facts.domain) {
        let (own, named) = (&facts.domain, wish.interfaces.join(","));
        return Some(format!("its interface is {own}, but SHMEM_TCP_INTERFACE is {named}"));
    }
    let short = || (facts.key_bytes < 4).then(|| "its keys have less than 4 bytes".to_owned());
    quirks::of(&facts.provider, wish.amos).or_else(short)
}

/// Returns true if a node would connect too many pairs of PEs.
pub(crate) fn avoids_connections(wish: &Wish) -> bool {
    wish.pairs_of_node > MANY_PAIRS
}

/// Puts what needs no connections first in jobs that would make too many.
fn order_by_connections<T>(found: &mut [(T, InfoFacts)], wish: &Wish) {
    if !avoids_connections(wish) {
        return;
    }
    let first = |found: &[(T, InfoFacts)]| found.first().map(|(_, facts)| facts.provider.clone());
    let before = first(found);
    found.sort_by_key(|(_, facts)| !facts.scales());
    if let (Some(before), Some(provider)) = (before, first(found))
        && before != provider
    {
        let n = wish.pairs_of_node;
        rushmem_log::info!(
            "provider {provider} goes ahead of {before}, since a node would connect {n} pairs of PEs"
        );
    }
}

/// Among the domains of a provider, what only this machine reaches goes first if all PEs are on it,
/// then the NIC that this PE should prefer.
fn order<T>(found: &mut [(T, InfoFacts)], wish: &Wish) {
    if !wish.one_machine && wish.near.is_none() {
        return;
    }
    let is_near = |domain: &str| {
        let near = wish.near.as_ref();
        near.is_some_and(|nic| nic.name == domain || nic.interface.as_deref() == Some(domain))
    };
    let providers: Vec<String> = found.iter().map(|(_, facts)| facts.provider.clone()).collect();
    found.sort_by_key(|(_, facts)| {
        let rank = providers.iter().position(|name| *name == facts.provider);
        (rank, wish.one_machine && !facts.loopback, !is_near(&facts.domain))
    });
}

/// Returns what libfabric offers for these hints; `None` when that is nothing.
///
/// # Errors
/// When libfabric cannot be queried.
pub(crate) fn list(library: &'static Libfabric, hints: &Hints) -> Result<Option<InfoList>, String> {
    // SAFETY: null asks for an empty one.
    let empty = unsafe { library.dupinfo(std::ptr::null()) };
    if empty.is_null() {
        return Err("libfabric has no memory for a query".to_owned());
    }
    let filled = InfoList { library, first: empty };
    // SAFETY: owned, and its parts are there in an empty one too.
    hints.fill(unsafe { &mut *filled.first })?;
    let mut first = std::ptr::null_mut();
    // SAFETY: valid hints.
    match unsafe { library.getinfo(filled.first, &mut first) } {
        0 => Ok(Some(InfoList { library, first })),
        error if error == -fi::FI_ENODATA => Ok(None),
        error => Err(format!("libfabric cannot say what it has: {}", library.strerror(error))),
    }
}

/// The providers that are installed, by their own names, whether or not they have a device here.
pub(crate) fn installed(library: &'static Libfabric) -> Vec<String> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the list is freed below.
    if unsafe { library.installed(&mut first) } != 0 {
        return Vec::new();
    }
    let list = InfoList { library, first };
    // SAFETY: these entries have this part.
    list.iter().map(|info| text(unsafe { &*info.fabric_attr }.prov_name)).collect()
}

pub(crate) fn facts(info: &fi::fi_info, delivery: bool) -> InfoFacts {
    // SAFETY: entries that libfabric returns have all parts.
    let tx = unsafe { &*info.tx_attr };
    // SAFETY: an entry has this part.
    let rx = unsafe { &*info.rx_attr };
    // SAFETY: an entry has this part.
    let endpoint = unsafe { &*info.ep_attr };
    // SAFETY: an entry has this part.
    let domain = unsafe { &*info.domain_attr };
    // SAFETY: an entry has this part.
    let fabric = unsafe { &*info.fabric_attr };
    let sockets =
        matches!(info.addr_format, fi::FI_SOCKADDR | fi::FI_SOCKADDR_IN | fi::FI_SOCKADDR_IN6);
    let provider = text(fabric.prov_name);
    let sends_whole = quirks::sends_whole(&provider, fabric.prov_version);
    InfoFacts {
        sends_whole,
        connects: endpoint.protocol == fi::FI_PROTO_RXM || connects(&provider),
        provider,
        domain: text(domain.name),
        fabric: text(fabric.name),
        mr_mode: domain.mr_mode as u64,
        key_bytes: domain.mr_key_size,
        registrations: domain.mr_cnt,
        inject: tx.inject_size,
        depth: tx.size,
        receives: rx.size,
        max_message: endpoint.max_msg_size,
        ranges: tx.iov_limit,
        ordered: tx.msg_order & rx.msg_order & ORDERS == ORDERS
            && endpoint.max_order_waw_size >= endpoint.max_msg_size,
        reads_follow: tx.msg_order & rx.msg_order & READS != 0,
        delivery,
        sockets,
        loopback: sockets && is_loopback(info),
        nic: nic(info),
    }
}

/// Returns true if a provider connects its endpoints, by the parts of its name.
fn connects(provider: &str) -> bool {
    provider.split(';').any(|part| ["ofi_rxm", "tcp", "sockets", "net"].contains(&part))
}

/// The NIC behind an entry, as far as libfabric says.
fn nic(info: &fi::fi_info) -> Option<FabricNic> {
    // SAFETY: null, or a part of an entry that lives.
    let nic = unsafe { info.nic.as_ref() }?;
    // SAFETY: null, or a part of an entry that lives.
    let bus = unsafe { nic.bus_attr.as_ref() };
    // SAFETY: null, or a part of an entry that lives.
    let device = unsafe { nic.device_attr.as_ref() };
    Some(FabricNic {
        on_pci: bus.is_some_and(|bus| bus.bus_type == fi::FI_BUS_PCI),
        name: device.map(|device| text(device.name)).unwrap_or_default(),
    })
}

fn is_loopback(info: &fi::fi_info) -> bool {
    if info.src_addr.is_null() || info.src_addrlen < size_of::<libc::sockaddr_in>() {
        return false;
    }
    // SAFETY: a socket address of at least this size, by its format.
    let address = unsafe { info.src_addr.cast::<libc::sockaddr_in>().read_unaligned() };
    i32::from(address.sin_family) == libc::AF_INET
        && u32::from_be(address.sin_addr.s_addr) >> 24 == 127
}

#[cfg(test)]
mod tests;
