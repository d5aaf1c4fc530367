//! The offers of libfabric and the requirements of a job, as plain data. libfabric has one
//! structure for both, `fi_info`.
#![allow(unsafe_code)]

use crate::quirks::{self, Quirk};
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

/// All modes of registration that a provider can require.
pub(crate) const ANY_REGISTRATION: u64 = fi::FI_MR_LOCAL
    | fi::FI_MR_RAW
    | fi::FI_MR_VIRT_ADDR
    | fi::FI_MR_ALLOCATED
    | fi::FI_MR_PROV_KEY
    | fi::FI_MR_MMU_NOTIFY
    | fi::FI_MR_RMA_EVENT
    | fi::FI_MR_ENDPOINT
    | fi::FI_MR_HMEM
    | fi::FI_MR_COLLECTIVE;

/// The orders with which neither a write nor a message needs a fence after an earlier write.
const WRITE_ORDERS: u64 = fi::FI_ORDER_WAW | fi::FI_ORDER_SAW;
/// The orders of reads after writes. With either, the completion of a read shows that earlier
/// writes have arrived.
const READ_ORDERS: u64 = fi::FI_ORDER_RAW | fi::FI_ORDER_RMA_RAW;

/// The fields of a `fi_info` that are used: requirements, in which empty names allow any, or the
/// offer of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FiInfo {
    /// The name of the provider, as libfabric composes it.
    pub(crate) provider: String,
    pub(crate) domain: String,
    pub(crate) fabric: String,
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) type_: fi::fi_ep_type,
    pub(crate) threading: fi::fi_threading,
    pub(crate) control_progress: fi::fi_progress,
    pub(crate) data_progress: fi::fi_progress,
    pub(crate) resource_mgmt: fi::fi_resource_mgmt,
    /// The modes of registration that the provider requires, or that a job supports: `FI_MR_*`.
    pub(crate) mr_mode: u64,

    // The fields below are not part of the requirements, except `delivery`:
    pub(crate) key_bytes: usize,
    /// The maximum number of registrations; 0 if the provider does not state it.
    pub(crate) registrations: usize,
    /// The maximum number of bytes of an injected transfer.
    pub(crate) inject: usize,
    /// The number of operations that an endpoint may have in flight.
    pub(crate) depth: usize,
    /// The number of receives that an endpoint may have posted.
    pub(crate) receives: usize,
    pub(crate) max_message: usize,
    /// The maximum number of ranges of memory from which one message can be sent.
    pub(crate) ranges: usize,
    /// A message of many kilobytes is sent in one piece.
    pub(crate) sends_whole: bool,
    /// Writes of an endpoint to one peer, and messages after them, arrive in order.
    pub(crate) ordered: bool,
    /// A read follows the writes before it, so that its completion shows that they have arrived.
    pub(crate) reads_follow: bool,
    /// A write can complete when it is visible at the target. As a requirement: the provider must
    /// support such completions.
    pub(crate) delivery: bool,
    /// Two endpoints are connected before they exchange data; most providers for NICs need no
    /// connections.
    pub(crate) connects: bool,
    /// Addresses of endpoints are socket addresses.
    pub(crate) sockets: bool,
    /// The address is an IPv4 loopback address, which only this machine reaches.
    pub(crate) loopback: bool,
    /// The NIC, if libfabric reports it.
    pub(crate) nic: Option<FabricNic>,
}

/// A NIC, as libfabric reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FabricNic {
    pub(crate) on_pci: bool,
    /// The device's name, as the kernel has it.
    pub(crate) name: String,
}

impl FiInfo {
    /// Returns requirements that any provider meets.
    pub(crate) fn any() -> FiInfo {
        FiInfo {
            mode: u64::MAX,
            mr_mode: ANY_REGISTRATION,
            ..FiInfo::default()
        }
    }

    /// Returns the offer of an entry. `delivery` says whether the entry was offered for hints that
    /// require completions for the target's memory.
    pub(crate) fn of(entry: &fi::fi_info, delivery: bool) -> FiInfo {
        // SAFETY: libfabric returns entries with all parts, so `tx_attr` points to one. The part
        // lives as long as the entry, and nothing changes it meanwhile.
        let tx = unsafe { &*entry.tx_attr };
        // SAFETY: as for `tx_attr`.
        let rx = unsafe { &*entry.rx_attr };
        // SAFETY: as for `tx_attr`.
        let endpoint = unsafe { &*entry.ep_attr };
        // SAFETY: as for `tx_attr`.
        let domain = unsafe { &*entry.domain_attr };
        // SAFETY: as for `tx_attr`.
        let fabric = unsafe { &*entry.fabric_attr };

        let sockets = matches!(
            entry.addr_format,
            fi::FI_SOCKADDR | fi::FI_SOCKADDR_IN | fi::FI_SOCKADDR_IN6
        );
        let order = tx.msg_order & rx.msg_order;
        let provider = text(fabric.prov_name);

        FiInfo {
            domain: text(domain.name),
            fabric: text(fabric.name),
            caps: entry.caps,
            mode: entry.mode,
            type_: endpoint.type_,
            threading: domain.threading,
            control_progress: domain.control_progress,
            data_progress: domain.data_progress,
            resource_mgmt: domain.resource_mgmt,
            mr_mode: u64::from(domain.mr_mode.cast_unsigned()),
            key_bytes: domain.mr_key_size,
            registrations: domain.mr_cnt,
            inject: tx.inject_size,
            depth: tx.size,
            receives: rx.size,
            max_message: endpoint.max_msg_size,
            ranges: tx.iov_limit,
            sends_whole: quirks::sends_whole(&provider, fabric.prov_version),
            // An order holds if both ends keep it, and for writes only up to a length.
            ordered: order & WRITE_ORDERS == WRITE_ORDERS
                && endpoint.max_order_waw_size >= endpoint.max_msg_size,
            reads_follow: order & READ_ORDERS != 0,
            delivery,
            connects: endpoint.protocol == fi::FI_PROTO_RXM
                || quirks::has(&provider, Quirk::Connects),
            sockets,
            loopback: sockets && is_loopback(entry),
            nic: nic(entry),
            provider,
        }
    }

    /// Writes the requirements into an empty `fi_info` that libfabric has allocated.
    fn fill(&self, hints: &mut fi::fi_info) -> Result<(), String> {
        hints.caps = self.caps;
        hints.mode = self.mode;
        // SAFETY: libfabric allocates entries with all parts, so `ep_attr` points to one, to which
        // nothing else refers.
        unsafe { &mut *hints.ep_attr }.type_ = self.type_;

        // SAFETY: as for `ep_attr`.
        let domain = unsafe { &mut *hints.domain_attr };
        domain.threading = self.threading;
        domain.control_progress = self.control_progress;
        domain.data_progress = self.data_progress;
        domain.resource_mgmt = self.resource_mgmt;
        domain.mr_mode = self.mr_mode as i32;
        domain.name = copy(&self.domain)?;

        // SAFETY: as for `ep_attr`.
        let fabric = unsafe { &mut *hints.fabric_attr };
        fabric.name = copy(&self.fabric)?;
        fabric.prov_name = copy(&self.provider)?;

        let op_flags = if self.delivery {
            fi::FI_DELIVERY_COMPLETE
        } else {
            0
        };
        // SAFETY: as for `ep_attr`.
        unsafe { &mut *hints.tx_attr }.op_flags = op_flags;
        Ok(())
    }

    pub(crate) fn asks(&self, mode: u64) -> bool {
        self.mr_mode & mode != 0
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        quirks::has(&self.provider, quirk)
    }

    /// Returns true if the provider scales to any number of peers: it makes no connections and does
    /// not move data through the kernel.
    pub(crate) fn scales(&self) -> bool {
        !self.connects && !self.has(Quirk::ByKernel)
    }

    /// Returns true if a registration must be enabled before its first use.
    pub(crate) fn needs_enabling(&self) -> bool {
        self.asks(fi::FI_MR_ENDPOINT | fi::FI_MR_RMA_EVENT)
    }

    /// Returns true if registration locks memory: a NIC accesses it by itself, so its pages must be
    /// present.
    pub(crate) fn locks_memory(&self) -> bool {
        self.asks(fi::FI_MR_ALLOCATED) && self.nic.is_some()
    }

    /// Returns true if the heap is registered in blocks, since registered memory may be locked. A
    /// provider that does not require allocated pages locks none, and the registration of a whole
    /// heap costs no more than that of a part.
    pub(crate) fn heap_in_blocks(&self) -> bool {
        self.asks(fi::FI_MR_ALLOCATED)
    }

    /// Returns true if CPUs move the data, which is assumed if libfabric reports no PCI device.
    pub(crate) fn copies(&self) -> bool {
        self.nic.as_ref().is_none_or(|nic| !nic.on_pci)
    }

    /// Returns true if short writes need no completions: CPUs move the data, so that a completion
    /// for the target's memory is a message of its CPU, and a read follows the writes.
    pub(crate) fn flushes_by_read(&self) -> bool {
        self.sockets && self.copies() && self.reads_follow && self.inject > 0
    }

    /// Returns true if long data can be sent with their signal in one message at little cost: the
    /// provider sends a stream of bytes, the message whole, and its data from the memory of the
    /// caller.
    pub(crate) fn streams(&self) -> bool {
        self.sockets && self.takes_data() && self.ranges >= 2
    }

    /// Returns true if a message with data of more than a few words is cheap: CPUs copy the data,
    /// and the provider sends the message whole and needs no registered memory.
    pub(crate) fn takes_data(&self) -> bool {
        self.copies() && self.sends_whole && !self.asks(fi::FI_MR_LOCAL)
    }

    /// Returns the length in bytes of the longest message, and so of the buffers for messages.
    pub(crate) fn longest_message(&self) -> usize {
        if self.streams() {
            // Long data are sent with their signal, too. This is also the eager limit of rxm that
            // `quirks` sets.
            64 << 10
        } else if self.copies() {
            // A batch of a page.
            4096
        } else {
            // A signal with a word of data.
            128
        }
    }

    /// Returns true if the keys that this PE chooses for its registrations start at a random
    /// number, so that others cannot guess them: over sockets, if a key has 64 bits.
    pub(crate) fn has_random_keys(&self) -> bool {
        self.sockets && self.key_bytes >= 8 && !self.asks(fi::FI_MR_PROV_KEY)
    }
}

/// A list of entries that libfabric has allocated; may be empty.
pub(crate) struct InfoList {
    library: &'static Libfabric,
    first: *mut fi::fi_info,
}

// SAFETY: a list owns its entries, which libfabric does not share. The type is not `Sync`, since
// callers of `first` may change the entries.
unsafe impl Send for InfoList {}

impl Drop for InfoList {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: `library` has made the list, which `self` owns, so it is freed once.
            unsafe { self.library.freeinfo(self.first) };
        }
    }
}

impl InfoList {
    /// Returns the entries that libfabric offers for these requirements; the list may be empty.
    pub(crate) fn of(library: &'static Libfabric, hints: &FiInfo) -> Result<InfoList, String> {
        let filled = InfoList {
            library,
            // SAFETY: null asks for an empty entry.
            first: unsafe { library.dupinfo(std::ptr::null()) },
        };

        // SAFETY: `first` is null, or points to the entry that `filled` owns.
        let empty = unsafe { filled.first.as_mut() };
        hints.fill(empty.ok_or("libfabric has no memory for a query")?)?;

        let mut first = null_mut();
        // SAFETY: the hints are an entry that libfabric has made and `fill` has completed. The call
        // stores a list in `first`.
        match unsafe { library.getinfo(filled.first, &mut first) } {
            0 => Ok(InfoList { library, first }),
            error if error == -fi::FI_ENODATA => Ok(InfoList {
                library,
                first: null_mut(),
            }),
            error => Err(format!(
                "libfabric cannot list its providers: {}",
                library.strerror(error)
            )),
        }
    }

    /// Returns a list with a copy of one entry; `None` if there is no memory.
    pub(crate) fn copy(library: &'static Libfabric, entry: &fi::fi_info) -> Option<InfoList> {
        // SAFETY: `entry` is an entry of a list that lives.
        let first = unsafe { library.dupinfo(entry) };
        if first.is_null() {
            return None;
        }
        Some(InfoList { library, first })
    }

    pub(crate) fn first(&self) -> *mut fi::fi_info {
        self.first
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &fi::fi_info> {
        // SAFETY: a link of the list is null, or points to an entry that lives as long as the list,
        // which is borrowed.
        let entry = |info: *mut fi::fi_info| unsafe { info.as_ref() };
        std::iter::successors(entry(self.first), move |info| entry(info.next))
    }
}

/// Returns the names of the installed providers, whether or not they have a device here.
pub(crate) fn installed(library: &'static Libfabric) -> Vec<String> {
    let mut first = null_mut();
    // SAFETY: the call stores a list in `first`, which is freed below.
    if unsafe { library.installed(&mut first) } != 0 {
        return Vec::new();
    }

    let list = InfoList { library, first };
    list.iter()
        .map(|info| {
            // SAFETY: an entry has all parts, so `fabric_attr` points to one, which lives as long
            // as the list.
            let fabric = unsafe { &*info.fabric_attr };
            text(fabric.prov_name)
        })
        .collect()
}

/// Returns the NIC of an entry, if libfabric reports it.
fn nic(info: &fi::fi_info) -> Option<FabricNic> {
    // SAFETY: `nic` is null, or points to a part of `info`, which lives as long.
    let nic = unsafe { info.nic.as_ref() }?;
    // SAFETY: `bus_attr` is null, or points to a part of the NIC.
    let bus = unsafe { nic.bus_attr.as_ref() };
    // SAFETY: `device_attr` is null, or points to a part of the NIC.
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

    // SAFETY: `src_addr` is an address of at least this size, by the check above, and lives as long
    // as the entry.
    let address = unsafe { info.src_addr.cast::<libc::sockaddr_in>().read_unaligned() };
    // The network 127.0.0.0/8.
    i32::from(address.sin_family) == libc::AF_INET
        && u32::from_be(address.sin_addr.s_addr) >> 24 == 127
}

/// Returns a copy of a string that `freeinfo` will free; null for an empty one.
fn copy(text: &str) -> Result<*mut c_char, String> {
    if text.is_empty() {
        return Ok(null_mut());
    }
    let text = CString::new(text)
        .map_err(|_| format!("{text:?} has a zero byte, which no name of libfabric's has"))?;
    // SAFETY: `text` ends with a zero.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    if copy.is_null() {
        return Err(format!("there is no memory for the name {text:?}"));
    }
    Ok(copy)
}

/// Returns a string of libfabric; a null pointer is an empty one.
fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: `string` is one of libfabric, which ends with a zero and lives as long as its entry.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}
