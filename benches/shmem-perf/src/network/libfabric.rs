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
use std::ptr::null_mut;

use libfabric_sys as fi;
use libfabric_sys::Libfabric;

use super::route::{Contact, NetworkRoute, Preference, TransferMemory};

/// The maximum number of operations in flight.
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
    /// The maximum size of one operation in bytes.
    most: usize,
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
        let (with, without) = (fi::FI_DELIVERY_COMPLETE, fi::FI_TRANSMIT_COMPLETE);
        let found = entry(&library, preference, with).map(|info| (info, with));
        let (info, completion) = match found {
            Some(found) => found,
            None => (
                entry(&library, preference, 0).ok_or("no provider fits")?,
                without,
            ),
        };
        let said = |code: c_int| match code {
            0 => Ok(()),
            code => Err(library.strerror(code)),
        };
        // SAFETY: entries that libfabric returns have all parts.
        let tx = unsafe { &mut *info.tx_attr };
        // SAFETY: entries that libfabric returns have all parts.
        let rx = unsafe { &mut *info.rx_attr };
        // SAFETY: entries that libfabric returns have all parts.
        let domain_attr = unsafe { &*info.domain_attr };
        // SAFETY: entries that libfabric returns have all parts.
        let ep_attr = unsafe { &*info.ep_attr };
        (tx.op_flags, rx.op_flags) = (0, 0);
        (tx.size, rx.size) = (tx.size.min(DEPTH), rx.size.min(DEPTH));
        let (n_in_flight, most) = (tx.size.max(1), ep_attr.max_msg_size);
        let asks = |mode: u64| domain_attr.mr_mode as u64 & mode != 0;
        let mut fabric = null_mut();
        // SAFETY: the part of an entry that libfabric made.
        said(unsafe { library.fabric(info.fabric_attr, &mut fabric) })?;
        let mut domain = null_mut();
        // SAFETY: an open fabric and its entry.
        said(unsafe { fi::fi_domain(fabric, info, &mut domain) })?;
        let mut attr = fi::fi_av_attr {
            type_: match domain_attr.av_type {
                fi::FI_AV_UNSPEC => fi::FI_AV_TABLE,
                of_domain => of_domain,
            },
            rx_ctx_bits: 0,
            count: 2,
            ep_per_node: 0,
            name: std::ptr::null(),
            map_addr: null_mut(),
            flags: 0,
        };
        let mut addresses = null_mut();
        // SAFETY: an open domain.
        said(unsafe { fi::fi_av_open(domain, &mut attr, &mut addresses) })?;
        let mut attr = fi::fi_cq_attr {
            size: 2 * DEPTH,
            flags: 0,
            format: fi::FI_CQ_FORMAT_CONTEXT,
            wait_obj: fi::FI_WAIT_NONE,
            signaling_vector: 0,
            wait_cond: fi::FI_CQ_COND_NONE,
            wait_set: null_mut(),
        };
        let mut queue = null_mut();
        // SAFETY: an open domain.
        said(unsafe { fi::fi_cq_open(domain, &mut attr, &mut queue) })?;
        let mut endpoint = null_mut();
        // SAFETY: an open domain and its entry.
        said(unsafe { fi::fi_endpoint(domain, info, &mut endpoint) })?;
        // SAFETY: both are open, and an object begins with its `fid`.
        said(unsafe { fi::fi_bind(endpoint.cast(), queue.cast(), fi::FI_TRANSMIT | fi::FI_RECV) })?;
        // SAFETY: both are open, and an object begins with its `fid`.
        said(unsafe { fi::fi_bind(endpoint.cast(), addresses.cast(), 0) })?;
        // SAFETY: an endpoint that is bound to all it needs.
        said(unsafe { fi::fi_enable(endpoint.cast()) })?;
        let access = fi::FI_READ | fi::FI_WRITE | fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE;
        let (base, nbytes) = (memory.base().cast(), memory.nbytes());
        let mut registration = null_mut();
        // SAFETY: an open domain and memory that is valid as long as the process.
        said(unsafe { fi::fi_mr_reg(domain, base, nbytes, access, KEY, &mut registration) })?;
        if asks(fi::FI_MR_ENDPOINT) {
            // SAFETY: both are open.
            said(unsafe { fi::fi_bind(registration.cast(), endpoint.cast(), 0) })?;
            // SAFETY: an open registration that is bound.
            said(unsafe { fi::fi_enable(registration.cast()) })?;
        }
        // SAFETY: an open registration.
        let desc = unsafe { (*registration).mem_desc };
        let context = fi::fi_context2 {
            internal: [null_mut(); 8],
        };
        let contexts: &'static mut [_] = Vec::leak(vec![context; n_in_flight]);
        Ok(Self {
            memory,
            endpoint,
            queue,
            addresses,
            registration,
            desc: if asks(fi::FI_MR_LOCAL) {
                desc
            } else {
                null_mut()
            },
            is_by_address: asks(fi::FI_MR_VIRT_ADDR),
            most,
            completion: fi::FI_COMPLETION | completion,
            peer: fi::ADDR_NOTAVAIL,
            base: 0,
            key: 0,
            free: contexts
                .iter_mut()
                .map(|context| (&raw mut *context).cast())
                .collect(),
            n_contexts: n_in_flight,
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

    /// Returns the offsets and lengths of the operations into which a transfer is divided.
    fn parts(&self, nbytes: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let most = self.most;
        (0..nbytes)
            .step_by(most)
            .map(move |at| (at, (nbytes - at).min(most)))
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
        // SAFETY: an open endpoint, and a buffer of `nbytes` bytes.
        let code = unsafe { fi::fi_getname(self.endpoint, name.as_mut_ptr().cast(), &mut nbytes) };
        if code != 0 {
            return Err(self.library.strerror(code));
        }
        name.truncate(nbytes);
        // SAFETY: an open registration.
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
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        };
        let name: Vec<u64> = contact.name.chunks(8).map(word).collect();
        // SAFETY: an open table, and a name that an endpoint of the same provider gave.
        match unsafe { fi::fi_av_insert(self.addresses, name.as_ptr().cast(), &mut self.peer) } {
            1 => {}
            code => return Err(self.library.strerror(code)),
        }
        (self.base, self.key) = (contact.base, word(&contact.key));
        Ok(())
    }

    fn put(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String> {
        for (at, nbytes) in self.parts(nbytes) {
            let iov = fi::iovec {
                iov_base: self.local_address(from + at),
                iov_len: nbytes,
            };
            let rma = fi::fi_rma_iov {
                addr: self.base + (to + at) as u64,
                len: nbytes,
                key: self.key,
            };
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
                // SAFETY: an open endpoint, a context that is free, vectors that live during the
                // call, and memory that stays registered.
                unsafe { fi::fi_writemsg(own.endpoint, &message, own.completion) }
            })?;
        }
        Ok(())
    }

    fn get(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String> {
        for (at, nbytes) in self.parts(nbytes) {
            let (to, from) = (self.local_address(to + at), self.base + (from + at) as u64);
            self.begin(|own, context| {
                let (endpoint, desc, peer, key) = (own.endpoint, own.desc, own.peer, own.key);
                // SAFETY: an open endpoint, a context that is free, and memory that stays
                // registered.
                unsafe { fi::fi_read(endpoint, to, nbytes, desc, peer, from, key, context) }
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
        // SAFETY: an open queue whose entries are of this kind, and room for `ENTRIES` of them.
        match unsafe { fi::fi_cq_read(self.queue, entries.as_mut_ptr().cast(), ENTRIES) } {
            0 => self.pause(),
            n if n >= 0 => {
                // SAFETY: libfabric has filled in the first `n` entries.
                let filled = entries[..n as usize]
                    .iter()
                    .map(|entry| unsafe { entry.assume_init_ref() });
                self.free.extend(filled.map(|entry| entry.op_context));
            }
            code if code == -(fi::FI_EAGAIN as isize) => self.pause(),
            code if code == -(fi::FI_EAVAIL as isize) => {
                // SAFETY: a C struct of numbers and pointers, for which zeros mean none.
                let mut entry: fi::fi_cq_err_entry = unsafe { std::mem::zeroed() };
                // SAFETY: an open queue.
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

/// Returns the entry with the best device of the first suitable provider that supports this
/// completion of writes. The entry is never freed.
fn entry(
    library: &Libfabric,
    preference: &Preference,
    completion: u64,
) -> Option<&'static mut fi::fi_info> {
    // SAFETY: null asks for an empty one.
    let hints = unsafe { library.dupinfo(std::ptr::null()) };
    // SAFETY: null, or an owned one, which has all parts.
    let hints = unsafe { hints.as_mut() }?;
    hints.caps = fi::FI_MSG | fi::FI_RMA;
    if !preference.is_one_host {
        hints.caps |= fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM;
    }
    hints.mode = fi::FI_CONTEXT | fi::FI_CONTEXT2;
    // SAFETY: a part of hints that libfabric made.
    unsafe { &mut *hints.ep_attr }.type_ = fi::FI_EP_RDM;
    // SAFETY: a part of hints that libfabric made.
    unsafe { &mut *hints.tx_attr }.op_flags = completion;
    // SAFETY: a part of hints that libfabric made.
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
    // SAFETY: a part of hints that libfabric made.
    unsafe { &mut *hints.fabric_attr }.prov_name = named("SHMEM_OFI_PROVIDER");
    let mut first = null_mut();
    // SAFETY: valid hints.
    if unsafe { library.getinfo(hints, &mut first) } != 0 {
        return None;
    }
    let is_one = |entry: &*mut fi::fi_info| !entry.is_null();
    // SAFETY: an entry of a list that lives as long as the process; null ends it.
    let next = |entry: &*mut fi::fi_info| Some(unsafe { (**entry).next }).filter(is_one);
    let entries: Vec<_> = std::iter::successors(Some(first).filter(is_one), next).collect();
    // SAFETY: an entry of a list that lives as long as the process.
    let provider_of = |entry: &*mut fi::fi_info| provider(unsafe { &**entry });
    // SAFETY: an entry of a list that lives as long as the process.
    let device_of = |entry: &*mut fi::fi_info| device(unsafe { &**entry });
    let is_faulty = |name: &String| name.split(';').any(|layer| FAULTY.contains(&layer));
    let name = entries
        .iter()
        .map(provider_of)
        .find(|name| !is_faulty(name))?;
    let of_provider = entries
        .into_iter()
        .filter(|entry| provider_of(entry) == name);
    let best = of_provider.min_by_key(|entry| preference.rank(&device_of(entry)))?;
    // SAFETY: an entry of the list, which lives as long as the process and has no other reference.
    unsafe { best.as_mut() }
}

fn provider(entry: &fi::fi_info) -> String {
    // SAFETY: entries that libfabric returns have all parts.
    text(unsafe { &*entry.fabric_attr }.prov_name)
}

fn device(entry: &fi::fi_info) -> String {
    // SAFETY: entries that libfabric returns have all parts.
    text(unsafe { &*entry.domain_attr }.name)
}

/// Returns a string of an entry; an empty one for null.
fn text(string: *const c_char) -> String {
    match string.is_null() {
        true => String::new(),
        // SAFETY: a string of an entry, which lives as long as the process.
        false => unsafe { CStr::from_ptr(string) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// Returns the value of a variable as a C string that libfabric owns; null if it is unset or empty.
fn named(variable: &str) -> *mut c_char {
    let value = env::var(variable).ok().filter(|value| !value.is_empty());
    value
        .and_then(|value| CString::new(value).ok())
        .map_or(null_mut(), CString::into_raw)
}
