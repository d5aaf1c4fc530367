//! The floors of libfabric: `fi_write` and `fi_read` with their completions, on a reliable datagram
//! endpoint.
//!
//! The provider is the first in libfabric's order that is not known to be faulty and is the one
//! that `SHMEM_OFI_PROVIDER` names, if it is set. The device is that of `SHMEM_OFI_DOMAIN`, or else
//! the one that the PE prefers. A write completes when it is visible at the target if the provider
//! supports `FI_DELIVERY_COMPLETE`, otherwise with `FI_TRANSMIT_COMPLETE`.
#![allow(unsafe_code)]

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null_mut;

use libfabric_sys as fi;
use libfabric_sys::Libfabric;

use super::route::{Contact, NetworkRoute, Preference, TransferMemory};

/// The maximum number of operations in flight. The provider allocates memory for each; a window of
/// more operations waits for the first ones while it is issued.
const DEPTH: usize = 256;
/// Providers that are not used, because they lose parts of writes, or stop or crash during writes.
const FAULTY: [&str; 3] = ["ofi_rxd", "net", "ofi_mrail"];
/// The requested key of the registration; with `FI_MR_PROV_KEY` the provider chooses another one.
const KEY: u64 = 1;

/// An endpoint with its completion queue, address vector and registration. They are never closed.
pub struct LibfabricRoute {
    library: Libfabric,
    memory: TransferMemory,
    endpoint: *mut fi::fid_ep,
    queue: *mut fi::fid_cq,
    addresses: *mut fi::fid_av,
    registration: *mut fi::fid_mr,
    /// The descriptor of the registration; null unless the provider has `FI_MR_LOCAL`.
    desc: *mut c_void,
    /// True if remote memory is given by its virtual addresses, false if by offsets.
    is_by_address: bool,
    /// The maximum size of one operation.
    most_bytes: usize,
    /// The flags of a write, which say when it completes.
    completion: u64,
    peer: fi::fi_addr_t,
    base: u64,
    key: u64,
    /// The contexts of operations, except those of operations in flight.
    free: Vec<*mut c_void>,
    /// The number of all contexts, which is the maximum number of operations in flight.
    n_contexts: usize,
    spins: bool,
    path: String,
}

impl LibfabricRoute {
    /// Opens libfabric and an endpoint, and registers the memory.
    pub fn open(
        memory: TransferMemory,
        preference: &Preference,
        spins: bool,
    ) -> Result<Self, String> {
        let library = Libfabric::open()?;
        if library.version() < fi::OLDEST {
            return Err("libfabric is too old".into());
        }

        let ChosenEntry { info, completion } = choose_entry(&library, preference)?;
        let n_contexts = limit_queues(info);
        // SAFETY: `info.domain_attr` is not null: entries that libfabric returns have all parts.
        let domain_attr = unsafe { &*info.domain_attr };
        let requires = |mode: u64| domain_attr.mr_mode as u64 & mode != 0;

        let domain = open_domain(&library, info)?;
        let addresses = open_addresses(&library, domain, domain_attr.av_type)?;
        let queue = open_queue(&library, domain)?;
        let endpoint = open_endpoint(&library, domain, info, queue, addresses)?;

        let registration = register(&library, domain, &memory)?;
        if requires(fi::FI_MR_ENDPOINT) {
            enable_registration(&library, registration, endpoint)?;
        }
        let desc = if requires(fi::FI_MR_LOCAL) {
            // SAFETY: `registration` points to an open registration.
            unsafe { (*registration).mem_desc }
        } else {
            null_mut()
        };
        // SAFETY: `info.ep_attr` is not null: entries that libfabric returns have all parts.
        let most_bytes = unsafe { &*info.ep_attr }.max_msg_size;

        Ok(Self {
            memory,
            endpoint,
            queue,
            addresses,
            registration,
            desc,
            is_by_address: requires(fi::FI_MR_VIRT_ADDR),
            most_bytes,
            completion: fi::FI_COMPLETION | completion,
            peer: fi::ADDR_NOTAVAIL,
            base: 0,
            key: 0,
            free: contexts(n_contexts),
            n_contexts,
            spins,
            path: format!("{} of libfabric's {}", device(info), provider(info)),
            library,
        })
    }

    /// Starts an operation by calling `begin` with a free context, again and again until the
    /// provider accepts it. Polls between two attempts.
    fn begin(&mut self, begin: impl Fn(&Self, *mut c_void) -> isize) -> Result<(), String> {
        let context = loop {
            match self.free.pop() {
                Some(context) => break context,
                None => self.progress()?,
            }
        };

        loop {
            match begin(self, context) {
                0 => return Ok(()),
                code if code == -(fi::FI_EAGAIN as isize) => self.progress()?,
                code => return Err(self.library.strerror(code as c_int)),
            }
        }
    }

    /// Returns the operations into which a transfer is divided: the offsets of their bytes.
    fn parts(&self, nbytes: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let most = self.most_bytes;
        (0..nbytes)
            .step_by(most)
            .map(move |start| start..nbytes.min(start.saturating_add(most)))
    }

    fn pause(&self) {
        if !self.spins {
            std::thread::yield_now();
        }
    }

    fn local_address(&self, offset: usize) -> *mut c_void {
        self.memory.base().wrapping_add(offset).cast()
    }
}

impl NetworkRoute for LibfabricRoute {
    fn contact(&self) -> Result<Contact, String> {
        let mut name = vec![0u8; 1024];
        let mut nbytes = name.len();
        // SAFETY: `endpoint` is open, and `name` is a buffer of `nbytes` bytes.
        let code = unsafe { fi::fi_getname(self.endpoint, name.as_mut_ptr().cast(), &mut nbytes) };
        check(&self.library, code)?;
        name.truncate(nbytes);

        // SAFETY: `registration` points to an open registration.
        let key = unsafe { (*self.registration).key };
        let base = if self.is_by_address {
            self.memory.base().addr() as u64
        } else {
            0
        };

        Ok(Contact {
            name,
            base,
            key: key.to_ne_bytes().to_vec(),
        })
    }

    fn connect(&mut self, contact: &Contact) -> Result<(), String> {
        // libfabric may read the name as a structure, so it is copied to aligned memory.
        let name: Vec<u64> = contact.name.chunks(8).map(word).collect();

        // SAFETY: `addresses` is open, and `name` is that of an endpoint of the same provider.
        match unsafe { fi::fi_av_insert(self.addresses, name.as_ptr().cast(), &mut self.peer) } {
            // The number of inserted addresses.
            1 => {}
            code => return Err(self.library.strerror(code)),
        }

        self.base = contact.base;
        self.key = word(&contact.key);
        Ok(())
    }

    fn put(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String> {
        for part in self.parts(nbytes) {
            let iov = fi::iovec {
                iov_base: self.local_address(from + part.start),
                iov_len: part.len(),
            };
            let rma = fi::fi_rma_iov {
                addr: self.base + (to + part.start) as u64,
                len: part.len(),
                key: self.key,
            };

            // `fi_write` would be shorter, but it does not take the flags of the completion.
            self.begin(|own, context| {
                let mut desc = [own.desc];
                let message = fi::fi_msg_rma {
                    msg_iov: &raw const iov,
                    desc: desc.as_mut_ptr(),
                    iov_count: 1,
                    addr: own.peer,
                    rma_iov: &raw const rma,
                    rma_iov_count: 1,
                    context,
                    data: 0,
                };
                // SAFETY: `endpoint` is open, no other operation has `context`, the vectors to
                // which `message` points live during the call, and the memory stays registered.
                unsafe { fi::fi_writemsg(own.endpoint, &message, own.completion) }
            })?;
        }
        Ok(())
    }

    fn get(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String> {
        for part in self.parts(nbytes) {
            let to = self.local_address(to + part.start);
            let from = self.base + (from + part.start) as u64;
            self.begin(|own, context| {
                // SAFETY: `endpoint` is open, no other operation has `context`, and the memory
                // stays registered.
                unsafe {
                    fi::fi_read(
                        own.endpoint,
                        to,
                        part.len(),
                        own.desc,
                        own.peer,
                        from,
                        own.key,
                        context,
                    )
                }
            })?;
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), String> {
        while self.free.len() < self.n_contexts {
            self.progress()?;
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<(), String> {
        const ENTRIES: usize = 32;
        let mut entries = [const { MaybeUninit::<fi::fi_cq_entry>::uninit() }; ENTRIES];
        // SAFETY: `queue` is open, its format has entries of this type, and there is room for
        // `ENTRIES` of them.
        match unsafe { fi::fi_cq_read(self.queue, entries.as_mut_ptr().cast(), ENTRIES) } {
            0 => self.pause(),
            n if n >= 0 => {
                for entry in &entries[..n as usize] {
                    // SAFETY: libfabric has filled in the first `n` entries.
                    let entry = unsafe { entry.assume_init_ref() };
                    self.free.push(entry.op_context);
                }
            }
            code if code == -(fi::FI_EAGAIN as isize) => self.pause(),
            // The next entry of the queue is an error, which another call reads.
            code if code == -(fi::FI_EAVAIL as isize) => {
                // SAFETY: the struct has only numbers and pointers, which may be 0.
                let mut entry: fi::fi_cq_err_entry = unsafe { std::mem::zeroed() };
                // SAFETY: `queue` is open, and `entry` has room for its error.
                unsafe { fi::fi_cq_readerr(self.queue, &mut entry) };
                return Err(self.library.strerror(entry.err));
            }
            code => return Err(self.library.strerror(code as c_int)),
        }
        Ok(())
    }

    fn path(&self) -> String {
        self.path.clone()
    }
}

/// Returns the word of up to eight bytes, which has zeros after them.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// Returns the error of a call that returned `code`, if it is not 0.
fn check(library: &Libfabric, code: c_int) -> Result<(), String> {
    if code == 0 {
        Ok(())
    } else {
        Err(library.strerror(code))
    }
}

fn open_domain(library: &Libfabric, info: &mut fi::fi_info) -> Result<*mut fi::fid_domain, String> {
    let mut fabric = null_mut();
    // SAFETY: `info.fabric_attr` is a part of an entry that libfabric made.
    let code = unsafe { library.fabric(info.fabric_attr, &mut fabric) };
    check(library, code)?;

    let mut domain = null_mut();
    // SAFETY: `fabric` is open, and `info` is its entry.
    let code = unsafe { fi::fi_domain(fabric, info, &mut domain) };
    check(library, code)?;

    Ok(domain)
}

/// Opens a table for addresses of this type.
fn open_addresses(
    library: &Libfabric,
    domain: *mut fi::fid_domain,
    av_type: fi::fi_av_type,
) -> Result<*mut fi::fid_av, String> {
    let av_type = if av_type == fi::FI_AV_UNSPEC {
        fi::FI_AV_TABLE
    } else {
        av_type
    };
    let mut attr = fi::fi_av_attr {
        type_: av_type,
        rx_ctx_bits: 0,
        // A hint; only the peer's address is inserted.
        count: 2,
        ep_per_node: 0,
        name: std::ptr::null(),
        map_addr: null_mut(),
        flags: 0,
    };

    let mut addresses = null_mut();
    // SAFETY: `domain` is open.
    let code = unsafe { fi::fi_av_open(domain, &mut attr, &mut addresses) };
    check(library, code)?;

    Ok(addresses)
}

fn open_queue(library: &Libfabric, domain: *mut fi::fid_domain) -> Result<*mut fi::fid_cq, String> {
    let mut attr = fi::fi_cq_attr {
        size: 2 * DEPTH,
        flags: 0,
        // Contexts suffice: the route only has to know which of them are free again.
        format: fi::FI_CQ_FORMAT_CONTEXT,
        // The PE polls.
        wait_obj: fi::FI_WAIT_NONE,
        signaling_vector: 0,
        wait_cond: fi::FI_CQ_COND_NONE,
        wait_set: null_mut(),
    };

    let mut queue = null_mut();
    // SAFETY: `domain` is open.
    let code = unsafe { fi::fi_cq_open(domain, &mut attr, &mut queue) };
    check(library, code)?;

    Ok(queue)
}

/// Opens an endpoint, binds it to its queue and its table of addresses, and enables it.
fn open_endpoint(
    library: &Libfabric,
    domain: *mut fi::fid_domain,
    info: &mut fi::fi_info,
    queue: *mut fi::fid_cq,
    addresses: *mut fi::fid_av,
) -> Result<*mut fi::fid_ep, String> {
    let mut endpoint: *mut fi::fid_ep = null_mut();
    // SAFETY: `domain` is open, and `info` is its entry.
    let code = unsafe { fi::fi_endpoint(domain, info, &mut endpoint) };
    check(library, code)?;

    let both_ways = fi::FI_TRANSMIT | fi::FI_RECV;
    // SAFETY: `endpoint` and `queue` are open, and each object begins with its `fid`.
    let code = unsafe { fi::fi_bind(endpoint.cast(), queue.cast(), both_ways) };
    check(library, code)?;

    // SAFETY: `endpoint` and `addresses` are open, and each object begins with its `fid`.
    let code = unsafe { fi::fi_bind(endpoint.cast(), addresses.cast(), 0) };
    check(library, code)?;

    // SAFETY: `endpoint` is bound to all that an endpoint of this type needs.
    let code = unsafe { fi::fi_enable(endpoint.cast()) };
    check(library, code)?;

    Ok(endpoint)
}

/// Registers the memory for operations of both PEs.
fn register(
    library: &Libfabric,
    domain: *mut fi::fid_domain,
    memory: &TransferMemory,
) -> Result<*mut fi::fid_mr, String> {
    let base = memory.base().cast();
    let access = fi::FI_READ | fi::FI_WRITE | fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE;

    let mut registration = null_mut();
    // SAFETY: `domain` is open, and the memory at `base` is valid as long as the process.
    let code = unsafe {
        fi::fi_mr_reg(
            domain,
            base,
            memory.nbytes(),
            access,
            KEY,
            &mut registration,
        )
    };
    check(library, code)?;

    Ok(registration)
}

/// Binds a registration to the endpoint that uses it, for providers that require it, and enables
/// it.
fn enable_registration(
    library: &Libfabric,
    registration: *mut fi::fid_mr,
    endpoint: *mut fi::fid_ep,
) -> Result<(), String> {
    // SAFETY: `registration` and `endpoint` are open, and each object begins with its `fid`.
    let code = unsafe { fi::fi_bind(registration.cast(), endpoint.cast(), 0) };
    check(library, code)?;
    // SAFETY: `registration` is open and bound.
    let code = unsafe { fi::fi_enable(registration.cast()) };
    check(library, code)
}

/// Allocates the contexts of operations, which are never freed. The provider writes to the context
/// of an operation until it completes, even while the route is moved, so each has an address of its
/// own.
fn contexts(n: usize) -> Vec<*mut c_void> {
    let context = fi::fi_context2 {
        internal: [null_mut(); 8],
    };
    let mut contexts: Vec<*mut c_void> = Vec::new();
    for context in Vec::leak(vec![context; n]) {
        contexts.push((&raw mut *context).cast());
    }
    contexts
}

/// An entry of libfabric's list, and the flag of its writes that says when they complete.
struct ChosenEntry {
    info: &'static mut fi::fi_info,
    completion: u64,
}

/// Chooses a provider whose writes complete at the target, or else any.
fn choose_entry(library: &Libfabric, preference: &Preference) -> Result<ChosenEntry, String> {
    // Only a write that completes at the target does as much as a put with a quiet, but not all
    // providers have such writes.
    if let Some(info) = entry(library, preference, fi::FI_DELIVERY_COMPLETE) {
        let completion = fi::FI_DELIVERY_COMPLETE;
        return Ok(ChosenEntry { info, completion });
    }

    let info = entry(library, preference, 0).ok_or("no provider fits")?;
    let completion = fi::FI_TRANSMIT_COMPLETE;
    Ok(ChosenEntry { info, completion })
}

/// Limits the queues of an endpoint to `DEPTH` operations, and clears the flags that the hints
/// asked for. Returns the number of operations that may be in flight.
fn limit_queues(info: &mut fi::fi_info) -> usize {
    // SAFETY: `info.tx_attr` is not null: entries that libfabric returns have all parts.
    let tx = unsafe { &mut *info.tx_attr };
    // SAFETY: `info.rx_attr` is not null: entries that libfabric returns have all parts.
    let rx = unsafe { &mut *info.rx_attr };

    // The flags of the hints were for the choice of a provider: each write gives its own, and
    // reads need none.
    tx.op_flags = 0;
    rx.op_flags = 0;

    tx.size = tx.size.min(DEPTH);
    rx.size = rx.size.min(DEPTH);
    // A provider may leave the size open, which is 0.
    tx.size.max(1)
}

/// Returns the entry with the best device of the first suitable provider that supports this
/// completion of writes. The entry is never freed.
fn entry(
    library: &Libfabric,
    preference: &Preference,
    completion: u64,
) -> Option<&'static mut fi::fi_info> {
    let hints = hints(library, preference, completion)?;
    let mut first = null_mut();
    // SAFETY: `hints` are hints that libfabric made.
    if unsafe { library.getinfo(hints, &mut first) } != 0 {
        return None;
    }

    let mut entries: Vec<&'static mut fi::fi_info> = Vec::new();
    let mut next = first;
    // SAFETY: `next` is null or points to an entry of the list, which lives as long as the process.
    // Each entry is in the list once, so there is no other reference to it.
    while let Some(entry) = unsafe { next.as_mut() } {
        next = entry.next;
        entries.push(entry);
    }

    let mut providers = entries.iter().map(|entry| provider(entry));
    let chosen = providers.find(|name| !is_faulty(name))?;
    entries
        .into_iter()
        .filter(|entry| provider(entry) == chosen)
        .min_by_key(|entry| preference.rank(&device(entry)))
}

/// Returns what an entry must offer. It is never freed.
fn hints(
    library: &Libfabric,
    preference: &Preference,
    completion: u64,
) -> Option<&'static mut fi::fi_info> {
    // SAFETY: `dupinfo` takes null, for which it makes an empty entry.
    let hints = unsafe { library.dupinfo(std::ptr::null()) };
    // SAFETY: `hints` is null, or points to a new entry, to which there is no other reference.
    let hints = unsafe { hints.as_mut() }?;

    hints.caps = fi::FI_MSG | fi::FI_RMA;
    if !preference.is_one_host {
        hints.caps |= fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM;
    }
    hints.mode = fi::FI_CONTEXT | fi::FI_CONTEXT2;
    // SAFETY: `hints.ep_attr` is not null: entries that libfabric makes have all parts.
    unsafe { &mut *hints.ep_attr }.type_ = fi::FI_EP_RDM;
    // SAFETY: `hints.tx_attr` is not null: entries that libfabric makes have all parts.
    unsafe { &mut *hints.tx_attr }.op_flags = completion;

    // SAFETY: `hints.domain_attr` is not null: entries that libfabric makes have all parts.
    let domain = unsafe { &mut *hints.domain_attr };
    // One thread uses the domain. But the providers that libfabric offers, and their order, may
    // depend on this value.
    domain.threading = fi::FI_THREAD_SAFE;
    domain.control_progress = fi::FI_PROGRESS_MANUAL;
    domain.data_progress = fi::FI_PROGRESS_MANUAL;
    domain.resource_mgmt = fi::FI_RM_ENABLED;
    domain.mr_mode = (fi::FI_MR_LOCAL
        | fi::FI_MR_VIRT_ADDR
        | fi::FI_MR_ALLOCATED
        | fi::FI_MR_PROV_KEY
        | fi::FI_MR_ENDPOINT) as i32;
    domain.name = named("SHMEM_OFI_DOMAIN");
    // SAFETY: `hints.fabric_attr` is not null: entries that libfabric makes have all parts.
    unsafe { &mut *hints.fabric_attr }.prov_name = named("SHMEM_OFI_PROVIDER");

    Some(hints)
}

/// Returns true if one of the providers that are layered under this name is faulty.
fn is_faulty(provider: &str) -> bool {
    provider.split(';').any(|layer| FAULTY.contains(&layer))
}

fn provider(entry: &fi::fi_info) -> String {
    // SAFETY: `entry.fabric_attr` is not null: entries that libfabric returns have all parts.
    text(unsafe { &*entry.fabric_attr }.prov_name)
}

fn device(entry: &fi::fi_info) -> String {
    // SAFETY: `entry.domain_attr` is not null: entries that libfabric returns have all parts.
    text(unsafe { &*entry.domain_attr }.name)
}

/// Returns a string of an entry; an empty one for null.
fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: `string` points to a string of an entry, which lives as long as the process.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_string_lossy().into_owned()
}

/// Returns the value of a variable as a C string that libfabric owns; null if it is unset or empty.
fn named(variable: &str) -> *mut c_char {
    match env::var(variable) {
        // The value of a variable contains no NUL.
        Ok(value) if !value.is_empty() => CString::new(value).map_or(null_mut(), CString::into_raw),
        _ => null_mut(),
    }
}
