//! Which of libfabric's providers and domains can carry this job, in the order in which it offers
//! them.
#![allow(unsafe_code)]

use crate::facts::{FabricNic, InfoFacts, ORDERS, READS};
use crate::quirks;
use crate::settings::{DOMAIN, PROVIDER};
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use rushmem_transport::{Amos, Host, NicName};
use std::ffi::{CStr, CString, c_char};

/// What the job and its user ask for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) provider: Option<String>,
    pub(crate) domain: Option<String>,
    /// Who carries out atomic operations.
    pub(crate) amos: Amos,
    /// All PEs run on this machine.
    pub(crate) one_machine: bool,
    /// The interfaces that sockets may use; none is any.
    pub(crate) interfaces: Vec<String>,
    /// The NIC that this PE should prefer.
    pub(crate) near: Option<NicName>,
}

impl Wish {
    pub(crate) fn of(host: &dyn Host, amos: Amos, one_machine: bool) -> Wish {
        let variable = |name| host.variable(name).filter(|value| !value.is_empty());
        let interfaces = variable("SHMEM_TCP_INTERFACE").unwrap_or_default();
        let interfaces = interfaces.split(',').map(str::trim).filter(|name| !name.is_empty());
        Wish {
            provider: variable(PROVIDER),
            domain: variable(DOMAIN),
            amos,
            one_machine,
            interfaces: interfaces.map(str::to_owned).collect(),
            near: host.nic(),
        }
    }

    /// Whether sockets may use an interface.
    fn may_use(&self, interface: &str) -> bool {
        self.interfaces.is_empty() || self.interfaces.iter().any(|name| name == interface)
    }
}

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

/// All that fits, best first.
///
/// # Errors
/// When nothing fits; the text says what was requested.
pub(crate) fn candidates(
    library: &'static Libfabric,
    wish: &Wish,
) -> Result<Vec<(InfoList, InfoFacts)>, String> {
    let mut found: Vec<(InfoList, InfoFacts)> = Vec::new();
    let mut refused = None;
    // An entry that has completions that cover the target's memory is taken with them.
    for delivery in [true, false] {
        let Some(list) = list(library, wish, delivery)? else { continue };
        for info in list.iter() {
            let facts = facts(info, delivery);
            // Not every provider looks at the domain that is requested.
            if wish.domain.as_ref().is_some_and(|domain| *domain != facts.domain) {
                continue;
            }
            if facts.sockets && !wish.may_use(&facts.domain) {
                continue;
            }
            if let Some(why) = quirks::of(&facts.provider, wish.amos) {
                refused = Some(why);
                continue;
            }
            let known = |(_, other): &(InfoList, InfoFacts)| {
                other.provider == facts.provider && other.domain == facts.domain
            };
            if facts.key_bytes >= 4
                && !found.iter().any(known)
                && let Some(entry) = InfoList::of(library, info)
            {
                found.push((entry, facts));
            }
        }
    }
    order(&mut found, wish);
    if found.is_empty() {
        if let Some(why) = refused {
            return Err(why);
        }
        let provider = wish.provider.as_deref().unwrap_or("any");
        let domain = wish.domain.as_deref().unwrap_or("any");
        let with = match wish.amos {
            Amos::Software => "remote memory access",
            Amos::Network => "remote memory access and atomic operations",
        };
        let remedy = match wish.amos {
            Amos::Software => "",
            Amos::Network => {
                "; with SHMEM_AMOS=software the targets' CPUs carry atomic operations out"
            }
        };
        let sockets = match wish.interfaces.is_empty() {
            true => String::new(),
            false => format!(", SHMEM_TCP_INTERFACE={}", wish.interfaces.join(",")),
        };
        return Err(format!(
            "libfabric has no reliable datagram endpoint with {with} (provider {provider}, domain {domain}{sockets}); \
             `fi_info` lists what it has{remedy}"
        ));
    }
    Ok(found)
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

/// What libfabric offers; `None` when that is nothing.
fn list(
    library: &'static Libfabric,
    wish: &Wish,
    delivery: bool,
) -> Result<Option<InfoList>, String> {
    // SAFETY: null asks for an empty one.
    let hints = unsafe { library.dupinfo(std::ptr::null()) };
    if hints.is_null() {
        return Err("libfabric has no memory for a query".to_owned());
    }
    let hints = InfoList { library, first: hints };
    // SAFETY: owned, and its parts are there in an empty one too.
    fill(unsafe { &mut *hints.first }, wish, delivery)?;
    let mut first = std::ptr::null_mut();
    // SAFETY: valid hints.
    match unsafe { library.getinfo(hints.first, &mut first) } {
        0 => Ok(Some(InfoList { library, first })),
        error if error == -fi::FI_ENODATA => Ok(None),
        error => Err(format!("libfabric cannot say what it has: {}", library.strerror(error))),
    }
}

fn fill(hints: &mut fi::fi_info, wish: &Wish, delivery: bool) -> Result<(), String> {
    hints.caps = fi::FI_MSG | fi::FI_RMA;
    if wish.amos == Amos::Network {
        hints.caps |= fi::FI_ATOMIC;
    }
    if !wish.one_machine {
        hints.caps |= fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM;
    }
    hints.mode = fi::FI_CONTEXT | fi::FI_CONTEXT2;
    // SAFETY: a part of hints that libfabric made.
    let endpoint = unsafe { &mut *hints.ep_attr };
    endpoint.type_ = fi::FI_EP_RDM;
    // SAFETY: a part of hints that libfabric made.
    let domain = unsafe { &mut *hints.domain_attr };
    domain.threading = fi::FI_THREAD_SAFE;
    // A thread that waits polls, and the service thread does while no thread waits: no thread of
    // the provider's own need compete with them.
    domain.control_progress = fi::FI_PROGRESS_MANUAL;
    domain.data_progress = fi::FI_PROGRESS_MANUAL;
    domain.resource_mgmt = fi::FI_RM_ENABLED;
    domain.mr_mode = (fi::FI_MR_LOCAL
        | fi::FI_MR_VIRT_ADDR
        | fi::FI_MR_ALLOCATED
        | fi::FI_MR_PROV_KEY
        | fi::FI_MR_RAW
        | fi::FI_MR_ENDPOINT
        | fi::FI_MR_RMA_EVENT) as i32;
    domain.name = copy(wish.domain.as_deref())?;
    // SAFETY: a part of hints that libfabric made.
    let fabric = unsafe { &mut *hints.fabric_attr };
    fabric.prov_name = copy(wish.provider.as_deref())?;
    if delivery {
        // SAFETY: a part of hints that libfabric made.
        unsafe { &mut *hints.tx_attr }.op_flags = fi::FI_DELIVERY_COMPLETE;
    }
    Ok(())
}

/// A string that libfabric will free.
fn copy(text: Option<&str>) -> Result<*mut c_char, String> {
    let Some(text) = text else { return Ok(std::ptr::null_mut()) };
    let text = CString::new(text).map_err(|_| format!("{text:?} names nothing of libfabric's"))?;
    // SAFETY: a string that ends with a zero.
    Ok(unsafe { libc::strdup(text.as_ptr()) })
}

/// A string of libfabric's, which may be none.
fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: libfabric's strings end with zeros and live as long as the entry.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

fn facts(info: &fi::fi_info, delivery: bool) -> InfoFacts {
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
    InfoFacts {
        provider: text(fabric.prov_name),
        domain: text(domain.name),
        mr_mode: domain.mr_mode as u64,
        key_bytes: domain.mr_key_size,
        inject: tx.inject_size,
        depth: tx.size,
        receives: rx.size,
        max_message: endpoint.max_msg_size,
        ordered: tx.msg_order & rx.msg_order & ORDERS == ORDERS
            && endpoint.max_order_waw_size >= endpoint.max_msg_size,
        reads_follow: tx.msg_order & rx.msg_order & READS != 0,
        delivery,
        sockets,
        loopback: sockets && is_loopback(info),
        nic: nic(info),
    }
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
