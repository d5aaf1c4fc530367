//! libfabric's objects, which are closed when they are dropped: an open domain, and the objects
//! that are opened in it.
#![allow(unsafe_code)]

use crate::info::{FiInfo, InfoList};
use crate::permits::ConnectionPermits;
use crate::quirks;
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use rushmem_system::lock::lock;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The advice for a user if libfabric returns an error number without a reason.
pub(crate) const LOG: &str = "FI_LOG_LEVEL=warn shows libfabric's own reasons, and SHMEM_OFI_PROVIDER selects another provider";

/// Maximum number of operations for which an endpoint has room: more than an ep has in flight with
/// the default limits. Some providers allocate all of this room for each endpoint.
const QUEUE: usize = 512;

/// Maximum number of peers for which libfabric prepares. More can be inserted, and the table grows
/// then; a PE of a large job may use few peers.
const EXPECTED_PEERS: usize = 64;

/// Returns the library, which the first call opens.
pub(crate) fn library() -> Result<&'static Libfabric, String> {
    static LIBRARY: OnceLock<Result<Libfabric, String>> = OnceLock::new();
    let opened = LIBRARY.get_or_init(|| {
        // libfabric reads its variables when it is opened.
        quirks::set_variables();
        open_library()
    });
    let library = opened.as_ref().map_err(Clone::clone)?;

    let version = library.version();
    if version < fi::OLDEST {
        return Err(format!(
            "libfabric is {}.{}, too old: at least {}.{} is needed",
            version >> 16,
            version & 0xFFFF,
            fi::OLDEST >> 16,
            fi::OLDEST & 0xFFFF
        ));
    }
    Ok(library)
}

/// Opens the library and makes a query, at which libfabric reads its variables and loads its
/// providers.
fn open_library() -> Result<Libfabric, String> {
    let library = Libfabric::open()?;
    let mut all = null_mut();
    // SAFETY: null hints ask for everything, and the call stores a list in `all`.
    if unsafe { library.getinfo(std::ptr::null(), &mut all) } == 0 {
        // SAFETY: the call has made the list, and nothing else refers to it.
        unsafe { library.freeinfo(all) };
    }
    Ok(library)
}

/// A completion queue, and its wait object, if it has one.
pub(crate) struct Cq {
    pub(crate) cq: Fid<fi::fid_cq>,
    wait: Option<i32>,
}

/// The way in which a thread can sleep until a queue has an event.
pub(crate) enum WaitObject<'a> {
    /// The thread must not sleep: there may be an event already.
    Ready,
    /// The thread sleeps on this descriptor.
    Descriptor(BorrowedFd<'a>),
    /// The queue has no wait object, so the thread polls.
    Absent,
}

/// A domain. The objects that are opened in it are dropped before it.
pub(crate) struct Fabric {
    av: Fid<fi::fid_av>,
    domain: Fid<fi::fid_domain>,
    fabric: Fid<fi::fid_fabric>,
    /// The entry, which libfabric may change while it opens an endpoint. The lock is also held
    /// while a peer is inserted, so that no endpoint is opened meanwhile: shm (1.17, smr_av_insert)
    /// uses all endpoints of the address vector without a lock, also those that are not enabled
    /// yet.
    list: Mutex<InfoList>,
    pub(crate) library: &'static Libfabric,
    pub(crate) info: FiInfo,
    /// The key of the next registration, if this PE chooses the keys.
    next_key: AtomicU64,
    /// The raw keys of peers that this PE has mapped.
    mapped: MappedKeys,
    /// Limits the connections that all eps of this PE make at once.
    pub(crate) permits: Arc<ConnectionPermits>,
}

impl Fabric {
    /// Opens the domain of an entry, for a job of `n_pes` PEs.
    pub(crate) fn open(
        list: InfoList,
        info: FiInfo,
        first_key: u64,
        n_pes: usize,
    ) -> Result<Fabric, String> {
        let library = library()?;
        let refused = |step: &'static str| {
            move |error| format!("{step} was refused: {}", library.strerror(error))
        };

        limit_entry(&list);
        // SAFETY: `list` owns its first entry, which libfabric made with all its parts.
        let entry = unsafe { &mut *list.first() };

        let mut fabric = null_mut();
        // SAFETY: `fabric_attr` is a part of the entry, which libfabric made with it.
        let code = unsafe { library.fabric(entry.fabric_attr, &mut fabric) };
        // SAFETY: the call that returned `code` has stored `fabric`.
        let fabric = unsafe { Fid::opened(code, fabric) }.map_err(refused("the fabric"))?;

        let mut domain = null_mut();
        // SAFETY: `fabric` is open, and `entry` is the one that it was opened with.
        let code = unsafe { fi::fi_domain(fabric.raw(), entry, &mut domain) };
        // SAFETY: the call that returned `code` has stored `domain`.
        let domain = unsafe { Fid::opened(code, domain) }.map_err(refused("the domain"))?;

        // SAFETY: `domain_attr` is a part of the entry, which libfabric has filled in.
        let offered = unsafe { &*entry.domain_attr }.av_type;
        let av = open_av(&domain, offered, n_pes).map_err(refused("the address table"))?;

        Ok(Fabric {
            av,
            domain,
            fabric,
            list: Mutex::new(list),
            library,
            info,
            next_key: AtomicU64::new(first_key),
            mapped: MappedKeys::default(),
            permits: Arc::default(),
        })
    }

    /// Returns a completion queue, with a wait object if `sleep` and the provider has one.
    pub(crate) fn open_cq(&self, size: usize, sleep: bool) -> Result<Cq, i32> {
        if sleep && let Ok(cq) = self.try_cq(size, fi::FI_WAIT_FD) {
            let mut fd = -1;
            // SAFETY: `cq` is open, and was opened with a descriptor, which the call stores in
            // `fd`.
            let code = unsafe { fi::fi_getwait(cq.fid(), &mut fd) };
            let wait = if code == 0 && fd >= 0 { Some(fd) } else { None };
            return Ok(Cq { cq, wait });
        }

        // Some providers have no wait object, and refuse a queue with one.
        Ok(Cq {
            cq: self.try_cq(size, fi::FI_WAIT_NONE)?,
            wait: None,
        })
    }

    /// Opens a completion queue with a wait object of this kind.
    fn try_cq(&self, size: usize, wait_obj: fi::fi_wait_obj) -> Result<Fid<fi::fid_cq>, i32> {
        let mut attr = fi::fi_cq_attr {
            size,
            flags: 0,
            format: fi::FI_CQ_FORMAT_MSG,
            wait_obj,
            signaling_vector: 0,
            wait_cond: fi::FI_CQ_COND_NONE,
            wait_set: null_mut(),
        };

        let mut cq = null_mut();
        // SAFETY: the domain is open, and `attr` and `cq` exist until the call returns.
        let code = unsafe { fi::fi_cq_open(self.domain.raw(), &mut attr, &mut cq) };
        // SAFETY: the call that returned `code` has stored `cq`, which is used by nothing else.
        unsafe { Fid::opened(code, cq) }
    }

    /// Returns an enabled endpoint with room for this number of receives.
    pub(crate) fn open_endpoint(&self, cq: &Cq, receives: usize) -> Result<Fid<fi::fid_ep>, i32> {
        let mut endpoint = null_mut();
        let list = lock(&self.list);

        // SAFETY: `list` owns its first entry, with all its parts, and the lock keeps other threads
        // from it.
        let entry = unsafe { &mut *list.first() };
        // SAFETY: `rx_attr` is a part of the entry, to which nothing else refers.
        let rx = unsafe { &mut *entry.rx_attr };
        rx.size = receives.min(self.info.receives);

        // libfabric reads some variables for each endpoint; the program may have removed them.
        quirks::set_variables();
        // SAFETY: the domain is open, and `list` has the entry with which it was opened. The lock
        // keeps other threads from the entry.
        let code = unsafe { fi::fi_endpoint(self.domain.raw(), list.first(), &mut endpoint) };
        // SAFETY: the call that returned `code` has stored `endpoint`, which is used by nothing
        // else.
        let endpoint = unsafe { Fid::opened(code, endpoint) }?;

        // SAFETY: `endpoint` and the queue are open, and the queue is dropped after the endpoint.
        let code =
            unsafe { fi::fi_bind(endpoint.fid(), cq.cq.fid(), fi::FI_TRANSMIT | fi::FI_RECV) };
        succeeded(code)?;
        // SAFETY: `endpoint` and the table are open, and the table is dropped with the domain.
        succeeded(unsafe { fi::fi_bind(endpoint.fid(), self.av.fid(), 0) })?;

        if let Some(name) = quirks::unused_name(&self.info.provider) {
            let bytes = name.as_bytes_with_nul();
            let address = bytes.as_ptr().cast_mut().cast();
            // SAFETY: `endpoint` is open and not enabled yet, and `address` points to `bytes.len()`
            // bytes, which the call copies.
            succeeded(unsafe { fi::fi_setname(endpoint.raw(), address, bytes.len()) })?;
        }

        // SAFETY: `endpoint` is open, and was bound above to all that it needs.
        succeeded(unsafe { fi::fi_enable(endpoint.fid()) })?;
        Ok(endpoint)
    }

    /// Returns the name of an endpoint, which peers insert.
    pub(crate) fn name(&self, endpoint: &Fid<fi::fid_ep>) -> Result<Vec<u8>, i32> {
        // Longer than the names of the known providers. A buffer that is too short is refused
        // (FI_ETOOSMALL).
        let mut name = vec![0u8; 1024];
        let mut nbytes = name.len();
        // SAFETY: `endpoint` is open, and `name` has room for `nbytes` bytes.
        let code = unsafe { fi::fi_getname(endpoint.raw(), name.as_mut_ptr().cast(), &mut nbytes) };
        succeeded(code)?;
        name.truncate(nbytes);
        Ok(name)
    }

    /// Inserts the name of a peer into the address vector.
    pub(crate) fn insert(&self, name: &[u8]) -> Result<fi::fi_addr_t, i32> {
        let mut fi_addr = fi::ADDR_NOTAVAIL;

        // A name may be a structure, which libfabric reads in place, so it is passed with the
        // alignment of one.
        let words: Vec<u64> = name
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_ne_bytes(word)
            })
            .collect();

        // No endpoint is opened meanwhile: see `list`.
        let _list = lock(&self.list);
        // SAFETY: the address vector is open, and `words` has a name that an endpoint of the same
        // provider has returned.
        match unsafe { fi::fi_av_insert(self.av.raw(), words.as_ptr().cast(), &mut fi_addr) } {
            1 if fi_addr != fi::ADDR_NOTAVAIL => Ok(fi_addr),
            code if code < 0 => Err(code),
            _ => Err(-fi::FI_EINVAL),
        }
    }

    /// Registers memory for these accesses, and binds the registration to `endpoint` if the
    /// provider requires that.
    ///
    /// # Safety
    /// `base` is valid for the accesses of `access` to `nbytes` bytes until the registration is
    /// dropped.
    pub(crate) unsafe fn register(
        &self,
        base: *const u8,
        nbytes: usize,
        access: u64,
        endpoint: &Fid<fi::fid_ep>,
    ) -> Result<Fid<fi::fid_mr>, i32> {
        let key = if self.info.asks(fi::FI_MR_PROV_KEY) {
            // The provider chooses the key, and ignores this one.
            0
        } else {
            // Relaxed: the keys only have to differ.
            self.next_key.fetch_add(1, Ordering::Relaxed)
        };

        let mut mr = null_mut();
        // SAFETY: the domain is open. By contract, `base` is valid for these accesses to `nbytes`
        // bytes until the registration is dropped.
        let code =
            unsafe { fi::fi_mr_reg(self.domain.raw(), base.cast(), nbytes, access, key, &mut mr) };
        // SAFETY: the call that returned `code` has stored `mr`.
        let mr = unsafe { Fid::opened(code, mr) }?;

        if self.info.asks(fi::FI_MR_ENDPOINT) {
            // SAFETY: `mr` and `endpoint` are open, and the registration is dropped before the
            // endpoint.
            succeeded(unsafe { fi::fi_bind(mr.fid(), endpoint.fid(), 0) })?;
        }

        if self.info.needs_enabling() {
            // SAFETY: `mr` is open.
            succeeded(unsafe { fi::fi_enable(mr.fid()) })?;
        }
        Ok(mr)
    }

    /// Maps a raw key of a peer until the domain is closed. Returns the key for operations.
    pub(crate) fn map(&self, raw: &RawKey) -> Result<u64, i32> {
        self.mapped.add(&self.domain, raw)
    }

    /// Returns how a thread can sleep until a queue has an event.
    pub(crate) fn wait_object<'a>(&self, cq: &'a Cq) -> WaitObject<'a> {
        let Some(fd) = cq.wait else {
            return WaitObject::Absent;
        };

        // SAFETY: the fabric and `cq` are open, and the queue was opened with a descriptor.
        if unsafe { fi::fi_trywait(self.fabric.raw(), cq.cq.fid()) } != 0 {
            return WaitObject::Ready;
        }

        // SAFETY: `fd` is the descriptor of the queue, from which the result is borrowed. It stays
        // open until the queue is closed.
        WaitObject::Descriptor(unsafe { BorrowedFd::borrow_raw(fd) })
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.mapped.clear(&self.domain);
    }
}

impl Cq {
    /// Returns true if a descriptor signals the events of the queue.
    pub(crate) fn can_sleep(&self) -> bool {
        self.wait.is_some()
    }
}

/// An open object. The structures of all kinds of objects begin with a `fid`.
pub(crate) struct Fid<T>(NonNull<T>);

// SAFETY: a `Fid` is an object of a domain that was opened with FI_THREAD_SAFE, so any thread may
// use it.
unsafe impl<T> Send for Fid<T> {}
// SAFETY: with FI_THREAD_SAFE, several threads may use an object at the same time.
unsafe impl<T> Sync for Fid<T> {}

impl<T> Fid<T> {
    /// Returns the object that a call has opened, or the error of the call.
    ///
    /// # Safety
    /// `opened` was stored by a call that opens objects and returned `code`. The result owns the
    /// object.
    pub(crate) unsafe fn opened(code: i32, opened: *mut T) -> Result<Fid<T>, i32> {
        match NonNull::new(opened) {
            Some(object) if code == 0 => Ok(Fid(object)),
            _ if code == 0 => Err(-fi::FI_ENOSYS),
            _ => Err(code),
        }
    }

    /// Closes the object. Returns true if libfabric has closed it, and so accesses no memory of it
    /// any more.
    pub(crate) fn close(self) -> bool {
        let object = ManuallyDrop::new(self);
        // SAFETY: the object is open. It is consumed here, and its drop does not run.
        unsafe { fi::fi_close(object.fid()) == 0 }
    }

    pub(crate) fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }

    pub(crate) fn fid(&self) -> *mut fi::fid {
        self.0.as_ptr().cast()
    }
}

impl<T> Drop for Fid<T> {
    fn drop(&mut self) {
        // If closing fails, nothing can be done.
        // SAFETY: the object is open, and is not used after its drop.
        unsafe { fi::fi_close(self.fid()) };
    }
}

/// Sets what an entry asks of endpoints that are opened with it.
fn limit_entry(list: &InfoList) {
    // SAFETY: the list owns its first entry, with all parts of it, and nothing else refers to it
    // meanwhile.
    let entry = unsafe { &mut *list.first() };
    // SAFETY: `tx_attr` is a part of the entry, to which nothing else refers.
    let tx = unsafe { &mut *entry.tx_attr };
    // SAFETY: `rx_attr` is another part of the entry, to which nothing else refers.
    let rx = unsafe { &mut *entry.rx_attr };

    // Each write passes the flags of the completion that it needs.
    tx.op_flags = 0;
    rx.op_flags = 0;

    tx.size = tx.size.min(QUEUE);
    rx.size = rx.size.min(QUEUE);
}

/// Opens the address vector of a domain, of the type that the provider has offered.
fn open_av(
    domain: &Fid<fi::fid_domain>,
    offered: fi::fi_av_type,
    n_pes: usize,
) -> Result<Fid<fi::fid_av>, i32> {
    // A provider that supports both types leaves the choice to the caller. Either would do, since
    // operations pass what the insertion of a peer has returned.
    let av_type = if offered == fi::FI_AV_UNSPEC {
        fi::FI_AV_TABLE
    } else {
        offered
    };
    let mut attr = fi::fi_av_attr {
        type_: av_type,
        rx_ctx_bits: 0,
        // Providers may allocate this many entries at once, and most peers are never used.
        count: n_pes.min(EXPECTED_PEERS),
        ep_per_node: 0,
        name: std::ptr::null(),
        map_addr: null_mut(),
        flags: 0,
    };

    let mut av = null_mut();
    // SAFETY: `domain` is open, and `attr` and `av` exist until the call returns.
    let code = unsafe { fi::fi_av_open(domain.raw(), &mut attr, &mut av) };
    // SAFETY: the call that returned `code` has stored `av`, which is used by nothing else.
    unsafe { Fid::opened(code, av) }
}

/// Converts the return code of a function of libfabric to a result: `Ok` for 0.
pub(crate) fn succeeded(code: i32) -> Result<(), i32> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// A raw key: the key of a provider whose keys are longer than 64 bits, or must be mapped by a peer
/// (`FI_MR_RAW`). Before its first operation on the memory, a peer maps the raw key together with
/// the base address that the provider returns. Operations take the mapped key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawKey {
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
}

impl RawKey {
    /// Returns the raw key of a registration.
    pub(crate) fn of(mr: &Fid<fi::fid_mr>) -> Result<RawKey, i32> {
        let mut base = 0;
        let mut nbytes = 0;
        // SAFETY: `mr` is an open registration. With room for no bytes, the call writes none and
        // says how many there are.
        match unsafe { fi::fi_raw_key(mr.raw(), &mut base, null_mut(), &mut nbytes) } {
            code if code == -(fi::FI_ETOOSMALL as i32) => {}
            // A key of no bytes could not be mapped.
            0 => return Err(-fi::FI_EINVAL),
            code => return Err(code),
        }

        let mut bytes = vec![0; nbytes];
        // SAFETY: `mr` is an open registration, and `bytes` has room for `nbytes` bytes.
        let code = unsafe { fi::fi_raw_key(mr.raw(), &mut base, bytes.as_mut_ptr(), &mut nbytes) };
        succeeded(code)?;
        bytes.truncate(nbytes);
        Ok(RawKey { base, bytes })
    }
}

/// The mapped keys of a domain.
#[derive(Default)]
pub(crate) struct MappedKeys(Mutex<Vec<u64>>);

impl MappedKeys {
    /// Maps a raw key. Returns the key for operations.
    pub(crate) fn add(&self, domain: &Fid<fi::fid_domain>, raw: &RawKey) -> Result<u64, i32> {
        let mut key = fi::KEY_NOTAVAIL;
        let bytes = raw.bytes.as_ptr();
        let nbytes = raw.bytes.len();
        // SAFETY: `domain` is open, and `bytes` points to as many bytes as `nbytes` says.
        succeeded(unsafe { fi::fi_map_raw_key(domain.raw(), raw.base, bytes, nbytes, &mut key) })?;

        lock(&self.0).push(key);
        Ok(key)
    }

    /// Unmaps all keys, which libfabric requires before the domain is closed.
    pub(crate) fn clear(&self, domain: &Fid<fi::fid_domain>) {
        for key in lock(&self.0).drain(..) {
            // If unmapping fails, nothing can be done.
            // SAFETY: `domain` is open, and `add` has mapped `key` in it. `drain` has removed the
            // key, so it is unmapped once.
            unsafe { fi::fi_unmap_key(domain.raw(), key) };
        }
    }
}
