//! Tests through libfabric that a process which violates a rule ends with a message that names it.
//!
//! This program starts itself once for each case, since a violation ends the process. A variable
//! names the case.
#![allow(unsafe_code)]

use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use std::ffi::c_void;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::ptr::{null, null_mut};
use testkit::{Test, absent};

const CASE: &str = "STRICT_CASE";

/// What a process does with an endpoint, and how it must end.
struct Case {
    name: &'static str,
    domain: &'static str,
    act: fn(&mut Side),
    /// The message with which the process must fail; without one, it must succeed.
    message: Option<&'static str>,
}

impl Case {
    const fn succeeds(name: &'static str, domain: &'static str, act: fn(&mut Side)) -> Case {
        Case {
            name,
            domain,
            act,
            message: None,
        }
    }

    const fn fails(
        name: &'static str,
        domain: &'static str,
        act: fn(&mut Side),
        message: &'static str,
    ) -> Case {
        Case {
            name,
            domain,
            act,
            message: Some(message),
        }
    }
}

const CASES: &[Case] = &[
    Case::succeeds("rules_are_kept", "cxi", keeps_the_rules),
    Case::succeeds(
        "rules_are_kept_with_local_registrations",
        "efa",
        keeps_the_rules,
    ),
    Case::succeeds("rules_are_kept_at_the_target", "psm3", keeps_the_rules),
    Case::succeeds("rules_are_kept_with_raw_keys", "mrail", keeps_the_rules),
    Case::fails(
        "posts_before_enable",
        "cxi",
        posts_before_enable,
        "fi_enable: an operation was posted",
    ),
    Case::fails(
        "enables_a_registration_before_it_binds_it",
        "cxi",
        enables_unbound,
        "FI_MR_ENDPOINT: a registration was enabled",
    ),
    Case::fails(
        "registers_what_is_not_there",
        "cxi",
        registers_nothing,
        "FI_MR_ALLOCATED",
    ),
    Case::fails(
        "uses_a_key_before_enable",
        "cxi",
        uses_a_key_too_early,
        "entry: -266",
    ),
    Case::fails("uses_a_wrong_key", "psm3", uses_a_wrong_key, "entry: -266"),
    Case::fails(
        "names_a_registration_by_no_raw_key",
        "mrail",
        maps_no_key,
        "FI_MR_RAW: an operation names a key that is not mapped",
    ),
    Case::fails(
        "uses_a_key_that_is_unmapped",
        "mrail",
        unmaps_too_early,
        "FI_MR_RAW: an operation names a key that is not mapped",
    ),
    Case::fails(
        "maps_part_of_a_key",
        "mrail",
        maps_part_of_a_key,
        "fi_mr_map_raw: what was mapped is no",
    ),
    Case::fails(
        "maps_a_key_with_another_base",
        "mrail",
        maps_with_another_base,
        "fi_mr_map_raw: a raw key was mapped with another base",
    ),
    Case::fails(
        "unmaps_what_is_not_mapped",
        "mrail",
        unmaps_nothing,
        "fi_mr_unmap_key: a key was unmapped",
    ),
    Case::fails(
        "closes_a_domain_before_it_unmaps",
        "mrail",
        closes_before_it_unmaps,
        "fi_mr_unmap_key: a domain was closed before 1 keys",
    ),
    Case::fails(
        "goes_beyond_the_end",
        "cxi",
        goes_beyond_the_end,
        "entry: -13",
    ),
    Case::fails(
        "addresses_by_offset_what_is_virtual",
        "efa",
        uses_offsets,
        "entry: -13",
    ),
    Case::fails(
        "brings_no_descriptor",
        "efa",
        brings_no_descriptor,
        "FI_MR_LOCAL: memory of an operation comes without",
    ),
    Case::fails(
        "brings_another_descriptor",
        "efa",
        brings_another_descriptor,
        "FI_MR_LOCAL: memory of an operation is not in",
    ),
    Case::fails(
        "brings_no_context",
        "efa",
        brings_no_context,
        "FI_CONTEXT2: a context is missing",
    ),
    Case::fails(
        "uses_a_context_twice",
        "efa",
        uses_a_context_twice,
        "FI_CONTEXT2: a context is missing, or belongs",
    ),
    Case::fails(
        "writes_to_a_context",
        "efa",
        writes_to_a_context,
        "FI_CONTEXT: a context was changed",
    ),
    Case::fails("changes_a_source", "cxi", changes_a_source, "buffer reuse"),
    Case::fails(
        "injects_too_much",
        "opx",
        injects_too_much,
        "inject_size: 17 bytes",
    ),
    Case::fails("sends_too_much", "efa", sends_too_much, "max_msg_size"),
    Case::fails(
        "closes_a_registration_in_use",
        "efa",
        closes_in_use,
        "fi_close: a registration was closed before its operations",
    ),
    Case::fails(
        "closes_an_endpoint_before_its_registrations",
        "cxi",
        closes_the_endpoint_first,
        "FI_MR_ENDPOINT: an endpoint was closed",
    ),
    Case::fails(
        "closes_a_domain_before_what_is_in_it",
        "cxi",
        closes_the_domain_first,
        "close order: a domain was closed",
    ),
    Case::fails(
        "overruns_the_queue",
        "opx",
        overruns_the_queue,
        "FI_RM_DISABLED",
    ),
    Case::fails("inserts_no_name", "cxi", inserts_no_name, "fi_av_insert"),
    Case::fails("addresses_nobody", "cxi", addresses_nobody, "fi_addr_t"),
    Case::succeeds(
        "connects_as_often_as_it_may",
        "few-connections",
        connects_as_often_as_it_may,
    ),
    Case::fails(
        "connects_once_too_often",
        "few-connections",
        connects_once_too_often,
        "connections: 5 are",
    ),
];

/// Runs a case in a process, and checks its end.
fn run_case(case: &Case) {
    if Libfabric::open().is_err() {
        absent("libfabric is not here");
    }

    let dir = strict_fabric::dir(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let run = Command::new(std::env::current_exe().expect("its own path"))
        .env(CASE, case.name)
        .env("FI_PROVIDER_PATH", dir.expect("the provider was built"))
        .env("RUST_BACKTRACE", "0")
        // Otherwise a library of the provider psm3 writes a file when a process is aborted.
        .env("IPATH_NO_BACKTRACE", "1")
        .output()
        .expect("it can be started");

    let stderr = String::from_utf8_lossy(&run.stderr);
    let as_expected = match case.message {
        Some(message) => !run.status.success() && stderr.contains(message),
        None => run.status.success(),
    };
    assert!(as_expected, "{}\n{stderr}", run.status);
}

fn main() -> ExitCode {
    let Ok(name) = std::env::var(CASE) else {
        let tests = CASES
            .iter()
            .map(|case| Test::new(case.name, || run_case(case)));
        return testkit::run(tests.collect());
    };

    let case = CASES
        .iter()
        .find(|case| case.name == name)
        .expect("a known case");
    let library = Libfabric::open().expect("opened by the parent");
    (case.act)(&mut Side::open(&library, case.domain));
    ExitCode::SUCCESS
}

/// The size of target and source.
const NBYTES: usize = 4096;

/// The number of entries of the completion queue.
const QUEUE_SIZE: usize = 8;

/// A write from the source.
#[derive(Clone, Copy)]
struct Write {
    nbytes: usize,
    desc: *mut c_void,
    address: u64,
    key: u64,
    context: *mut c_void,
}

/// An endpoint that communicates with itself.
struct Side {
    domain: *mut fi::fid_domain,
    table: *mut fi::fid_av,
    queue: *mut fi::fid_cq,
    endpoint: *mut fi::fid_ep,
    mr_mode: u64,
    to: fi::fi_addr_t,
    target: Vec<u64>,
    source: Vec<u64>,
    contexts: Vec<fi::fi_context2>,
}

fn ok(code: i32) {
    assert_eq!(code, 0, "a call must succeed");
}

/// Returns libfabric's entry of a domain of this provider.
fn find(library: &Libfabric, domain: &str) -> *mut fi::fi_info {
    // SAFETY: null requests an empty entry.
    let hints = unsafe { library.dupinfo(null()) };
    // SAFETY: `hints` points to a new entry, which nothing else refers to.
    let requested = unsafe { &mut *hints };
    requested.caps = fi::FI_MSG | fi::FI_RMA;
    requested.mode = fi::FI_CONTEXT | fi::FI_CONTEXT2;

    // SAFETY: `domain_attr` points to a part of the new entry, as `dupinfo` makes it.
    let attr = unsafe { &mut *requested.domain_attr };
    // All modes of registration from FI_MR_LOCAL to FI_MR_HMEM.
    attr.mr_mode = 0x7FC;
    let name = std::ffi::CString::new(domain).expect("a name");
    // SAFETY: `name` is a C string.
    attr.name = unsafe { libc::strdup(name.as_ptr()) };

    // SAFETY: `fabric_attr` points to a part of the new entry, as `dupinfo` makes it.
    let fabric_attr = unsafe { &mut *requested.fabric_attr };
    // SAFETY: the argument is a C string.
    fabric_attr.prov_name = unsafe { libc::strdup(c"strict".as_ptr()) };

    let mut info = null_mut();
    // SAFETY: `hints` points to a valid entry.
    ok(unsafe { library.getinfo(hints, &mut info) });
    info
}

impl Side {
    /// Opens all objects; the endpoint is not enabled.
    fn open(library: &Libfabric, domain: &str) -> Side {
        let info = find(library, domain);
        // SAFETY: `info` points to an entry of libfabric, which nothing else refers to.
        let entry = unsafe { &mut *info };
        // SAFETY: an entry that `getinfo` has returned has the part `domain_attr`.
        let mr_mode = unsafe { (*entry.domain_attr).mr_mode } as u64;

        let mut fabric = null_mut();
        // SAFETY: `fabric_attr` is a part of an entry that `getinfo` has returned.
        ok(unsafe { library.fabric(entry.fabric_attr, &mut fabric) });
        let mut domain = null_mut();
        // SAFETY: `fabric` is open, and `info` is an entry of it.
        ok(unsafe { fi::fi_domain(fabric, info, &mut domain) });

        // SAFETY: a C struct of numbers and pointers, for which zeros are valid.
        let mut attr: fi::fi_av_attr = unsafe { std::mem::zeroed() };
        let mut table = null_mut();
        // SAFETY: `domain` is open.
        ok(unsafe { fi::fi_av_open(domain, &mut attr, &mut table) });

        // SAFETY: a C struct of numbers and pointers, for which zeros are valid.
        let mut attr: fi::fi_cq_attr = unsafe { std::mem::zeroed() };
        attr.size = QUEUE_SIZE;
        attr.format = fi::FI_CQ_FORMAT_CONTEXT;
        attr.wait_obj = fi::FI_WAIT_NONE;
        let mut queue = null_mut();
        // SAFETY: `domain` is open.
        ok(unsafe { fi::fi_cq_open(domain, &mut attr, &mut queue) });

        let mut endpoint = null_mut();
        // SAFETY: `domain` is open, and `info` is its entry.
        ok(unsafe { fi::fi_endpoint(domain, info, &mut endpoint) });

        let context = fi::fi_context2 {
            internal: [null_mut(); 8],
        };
        Side {
            domain,
            table,
            queue,
            endpoint,
            mr_mode,
            to: fi::ADDR_NOTAVAIL,
            target: vec![0; NBYTES / 8],
            source: vec![7; NBYTES / 8],
            contexts: vec![context; 64],
        }
    }

    /// Enables the endpoint and inserts its address.
    fn enable(&mut self) -> &mut Side {
        let endpoint = self.endpoint.cast();
        // SAFETY: the endpoint and the queue are open.
        ok(unsafe { fi::fi_bind(endpoint, self.queue.cast(), fi::FI_TRANSMIT | fi::FI_RECV) });
        // SAFETY: the endpoint and the address vector are open.
        ok(unsafe { fi::fi_bind(endpoint, self.table.cast(), 0) });
        // SAFETY: the endpoint is open and bound.
        ok(unsafe { fi::fi_enable(endpoint) });
        self.insert();
        self
    }

    /// Inserts its address, as that of one more peer.
    fn insert(&mut self) {
        let mut name = [0u64; 64];
        let mut nbytes = size_of_val(&name);
        // SAFETY: the endpoint is open, and `name` has room for `nbytes` bytes.
        ok(unsafe { fi::fi_getname(self.endpoint, name.as_mut_ptr().cast(), &mut nbytes) });
        // SAFETY: `table` is an open address vector, and `name` holds an address.
        let n = unsafe { fi::fi_av_insert(self.table, name.as_ptr().cast(), &mut self.to) };
        assert_eq!(n, 1);
    }

    /// Posts an empty message with the context of this number; returns libfabric's result.
    fn send_nothing(&mut self, number: usize) -> isize {
        let from = self.source.as_ptr().cast();
        let context = self.context(number);
        // SAFETY: the endpoint is open, and `source` lives as long as the process.
        unsafe { fi::fi_send(self.endpoint, from, 0, null_mut(), self.to, context) }
    }

    /// Reads at most one completion from the queue. Returns libfabric's result.
    fn poll(&mut self) -> isize {
        let mut entry = fi::fi_cq_entry {
            op_context: null_mut(),
        };
        // SAFETY: the queue is open, and `entry` has room for one entry of its format.
        unsafe { fi::fi_cq_read(self.queue, (&raw mut entry).cast(), 1) }
    }

    /// Reads an error from the queue. Returns its code.
    fn error(&mut self) -> i32 {
        assert_eq!(self.poll(), -(fi::FI_EAVAIL as isize));
        // SAFETY: a C struct of numbers and pointers, for which zeros are valid.
        let mut entry: fi::fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open.
        assert_eq!(unsafe { fi::fi_cq_readerr(self.queue, &mut entry) }, 1);
        entry.err
    }

    fn requires(&self, mode: u64) -> bool {
        self.mr_mode & mode != 0
    }

    fn registered(&self, base: *const u64, access: u64) -> *mut fi::fid_mr {
        let mut mr = null_mut();
        // SAFETY: the domain is open, and source and target live as long as the process. The
        // provider does not access other memory, since it ends the process first.
        ok(unsafe { fi::fi_mr_reg(self.domain, base.cast(), NBYTES, access, 5, &mut mr) });
        mr
    }

    /// Registers the target as the profile requires. Returns the key.
    fn target(&self) -> u64 {
        let access = fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE;
        let mr = self.registered(self.target.as_ptr(), access);
        if self.requires(fi::FI_MR_ENDPOINT) {
            // SAFETY: the registration and the endpoint are open.
            ok(unsafe { fi::fi_bind(mr.cast(), self.endpoint.cast(), 0) });
            // SAFETY: `mr` is an open registration.
            ok(unsafe { fi::fi_enable(mr.cast()) });
        }
        if self.requires(fi::FI_MR_RAW) {
            let key = raw_key(mr);
            return self.mapped(key.base, &key.bytes);
        }
        // SAFETY: `mr` is an open registration.
        unsafe { (*mr).key }
    }

    /// Maps a raw key of a registration with this base address. Returns the mapped key.
    fn mapped(&self, base: u64, raw: &[u8]) -> u64 {
        let mut key = fi::KEY_NOTAVAIL;
        // SAFETY: the domain is open, and `raw` points to `raw.len()` bytes.
        let code =
            unsafe { fi::fi_map_raw_key(self.domain, base, raw.as_ptr(), raw.len(), &mut key) };
        ok(code);
        key
    }

    /// Returns the descriptor of the source, if the profile requires one.
    fn desc(&self) -> *mut c_void {
        if !self.requires(fi::FI_MR_LOCAL) {
            return null_mut();
        }
        // SAFETY: `registered` returns an open registration.
        unsafe { (*self.registered(self.source.as_ptr(), fi::FI_WRITE)).mem_desc }
    }

    fn address(&self) -> u64 {
        if self.requires(fi::FI_MR_VIRT_ADDR) {
            self.target.as_ptr().expose_provenance() as u64
        } else {
            0
        }
    }

    fn context(&mut self, i: usize) -> *mut c_void {
        (&raw mut self.contexts[i]).cast()
    }

    /// Returns a write of 8 bytes to the start of the target that keeps the rules, once the
    /// endpoint is enabled.
    fn valid_write(&mut self) -> Write {
        Write {
            nbytes: 8,
            desc: self.desc(),
            address: self.address(),
            key: self.target(),
            context: self.context(0),
        }
    }

    /// Posts a write from the source, again and again while the provider returns FI_EAGAIN.
    fn write(&mut self, write: Write) {
        for _ in 0..100_000 {
            // SAFETY: the endpoint is open, and `source` lives as long as the process.
            let code = unsafe {
                fi::fi_write(
                    self.endpoint,
                    self.source.as_ptr().cast(),
                    write.nbytes,
                    write.desc,
                    self.to,
                    write.address,
                    write.key,
                    write.context,
                )
            };
            if code == 0 {
                return;
            }
            assert_eq!(code, -(fi::FI_EAGAIN as isize));
        }
        panic!("no write was accepted");
    }

    /// Reads the queue until there is a completion. Panics if there is an error.
    fn wait(&mut self) {
        for _ in 0..100_000 {
            let n = self.poll();
            if n == 1 {
                return;
            }
            if n == -(fi::FI_EAVAIL as isize) {
                panic!("entry: -{}", self.error());
            }
        }
        panic!("nothing has completed");
    }
}

/// A raw key, and the base address of its registration.
struct RawKey {
    base: u64,
    bytes: Vec<u8>,
}

/// Returns the raw key of a registration.
fn raw_key(mr: *mut fi::fid_mr) -> RawKey {
    let mut base = 0;
    let mut nbytes = 0;
    // SAFETY: `mr` is an open registration, and a size of 0 says that there is no room.
    let code = unsafe { fi::fi_raw_key(mr, &mut base, null_mut(), &mut nbytes) };
    assert_eq!(code, -(fi::FI_ETOOSMALL as i32));

    let mut bytes = vec![0; nbytes];
    // SAFETY: `mr` is an open registration, and `bytes` has room for `nbytes` bytes.
    ok(unsafe { fi::fi_raw_key(mr, &mut base, bytes.as_mut_ptr(), &mut nbytes) });
    RawKey { base, bytes }
}

fn keeps_the_rules(side: &mut Side) {
    let write = side.enable().valid_write();
    for i in 0..50 {
        let context = side.context(i);
        side.write(Write { context, ..write });
        side.wait();
    }

    // The completion of a write may precede its effect at the target.
    for _ in 0..1000 {
        side.poll();
    }
    // SAFETY: `target` is memory of this process.
    assert_eq!(unsafe { side.target.as_ptr().read_volatile() }, 7);
}

fn posts_before_enable(side: &mut Side) {
    let context = side.context(0);
    side.write(Write {
        nbytes: 8,
        desc: null_mut(),
        address: 0,
        key: 0,
        context,
    });
}

fn enables_unbound(side: &mut Side) {
    side.enable();
    let mr = side.registered(side.target.as_ptr(), fi::FI_REMOTE_WRITE);
    // SAFETY: `mr` is an open registration.
    unsafe { fi::fi_enable(mr.cast()) };
}

fn registers_nothing(side: &mut Side) {
    side.registered(std::ptr::without_provenance(1 << 40), fi::FI_REMOTE_WRITE);
}

fn uses_a_key_too_early(side: &mut Side) {
    let write = side.enable().valid_write();
    let mr = side.registered(side.target.as_ptr(), fi::FI_REMOTE_WRITE);
    // SAFETY: the registration and the endpoint are open.
    ok(unsafe { fi::fi_bind(mr.cast(), side.endpoint.cast(), 0) });
    // SAFETY: `mr` is an open registration.
    let key = unsafe { (*mr).key };
    side.write(Write { key, ..write });
    side.wait();
}

fn uses_a_wrong_key(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(Write {
        key: write.key + 1,
        ..write
    });
    // The completion may precede the error of the target.
    side.wait();
    side.wait();
}

fn maps_no_key(side: &mut Side) {
    let write = side.enable().valid_write();
    let mr = side.registered(side.target.as_ptr(), fi::FI_REMOTE_WRITE);
    // SAFETY: `mr` is an open registration.
    let key = unsafe { (*mr).key };
    side.write(Write { key, ..write });
}

fn unmaps_too_early(side: &mut Side) {
    let write = side.enable().valid_write();
    // SAFETY: the domain is open, and the key was mapped in it.
    ok(unsafe { fi::fi_unmap_key(side.domain, write.key) });
    side.write(write);
}

fn maps_part_of_a_key(side: &mut Side) {
    let key = raw_key(side.registered(side.target.as_ptr(), fi::FI_REMOTE_WRITE));
    side.mapped(key.base, &key.bytes[..8]);
}

fn maps_with_another_base(side: &mut Side) {
    let key = raw_key(side.registered(side.target.as_ptr(), fi::FI_REMOTE_WRITE));
    side.mapped(key.base + 8, &key.bytes);
}

fn unmaps_nothing(side: &mut Side) {
    // SAFETY: the domain is open.
    unsafe { fi::fi_unmap_key(side.domain, 5) };
}

fn closes_before_it_unmaps(side: &mut Side) {
    let mr = side.registered(side.target.as_ptr(), fi::FI_REMOTE_WRITE);
    let key = raw_key(mr);
    side.mapped(key.base, &key.bytes);
    // Everything else is closed in order.
    let fids: [*mut fi::fid; 5] = [
        mr.cast(),
        side.endpoint.cast(),
        side.queue.cast(),
        side.table.cast(),
        side.domain.cast(),
    ];
    for fid in fids {
        // SAFETY: `fid` is an open object, which nothing uses any more.
        ok(unsafe { fi::fi_close(fid) });
    }
}

fn goes_beyond_the_end(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(Write {
        address: NBYTES as u64 - 4,
        ..write
    });
    side.wait();
    side.wait();
}

fn uses_offsets(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(Write {
        address: 0,
        ..write
    });
    side.wait();
    side.wait();
}

fn brings_no_descriptor(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(Write {
        desc: null_mut(),
        ..write
    });
}

fn brings_another_descriptor(side: &mut Side) {
    let write = side.enable().valid_write();
    // SAFETY: `registered` returns an open registration.
    let desc = unsafe { (*side.registered(side.target.as_ptr(), fi::FI_WRITE)).mem_desc };
    side.write(Write { desc, ..write });
}

fn brings_no_context(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(Write {
        context: null_mut(),
        ..write
    });
}

fn uses_a_context_twice(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(write);
    side.write(write);
}

fn writes_to_a_context(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(write);
    side.contexts[0].internal[3] = null_mut();
    side.wait();
}

fn changes_a_source(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(write);
    side.source[0] = 8;
    side.wait();
}

fn injects_too_much(side: &mut Side) {
    side.enable();
    let from = side.source.as_ptr().cast();
    // SAFETY: the endpoint is open, and `source` lives as long as the process.
    unsafe { fi::fi_inject(side.endpoint, from, 17, side.to) };
}

fn sends_too_much(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(Write {
        nbytes: (1 << 20) + 1,
        ..write
    });
}

fn closes_in_use(side: &mut Side) {
    let write = side.enable().valid_write();
    side.write(write);
    // SAFETY: a registration's descriptor is its address, with this provider.
    unsafe { fi::fi_close(write.desc.cast()) };
}

fn closes_the_endpoint_first(side: &mut Side) {
    side.enable().target();
    // SAFETY: the endpoint is open.
    unsafe { fi::fi_close(side.endpoint.cast()) };
}

fn closes_the_domain_first(side: &mut Side) {
    // SAFETY: the domain is open.
    unsafe { fi::fi_close(side.domain.cast()) };
}

fn overruns_the_queue(side: &mut Side) {
    let write = side.enable().valid_write();
    // One more than there is room for.
    for i in 0..=QUEUE_SIZE {
        let context = side.context(i);
        side.write(Write { context, ..write });
    }
}

fn inserts_no_name(side: &mut Side) {
    let name = [0u64; 64];
    // SAFETY: `table` is an open address vector, and `name` is not shorter than an address.
    unsafe { fi::fi_av_insert(side.table, name.as_ptr().cast(), &mut side.to) };
}

fn addresses_nobody(side: &mut Side) {
    let write = side.enable().valid_write();
    side.to += 1;
    side.write(write);
    side.wait();
}

/// A post to a peer while a connection to it is being set up.
struct Connecting {
    peer: fi::fi_addr_t,
    /// The result of the post.
    code: isize,
}

/// Starts to connect to `n` peers. The provider refuses the first connection in the queue.
fn connects(side: &mut Side, n: usize) -> Vec<Connecting> {
    side.enable();
    let mut started = Vec::new();
    for i in 0..n {
        if i > 0 {
            side.insert();
        }
        started.push(Connecting {
            peer: side.to,
            code: side.send_nothing(i),
        });
    }
    assert_eq!(started[0].code, 0, "a refusal that comes later");
    started
}

fn connects_as_often_as_it_may(side: &mut Side) {
    let again = -(fi::FI_EAGAIN as isize);
    let started = connects(side, 4);
    let pending = &started[1..];
    assert!(pending.iter().all(|connecting| connecting.code == again));
    assert_eq!(side.error(), fi::FI_ECONNREFUSED);

    for (number, connecting) in (4..).zip(pending) {
        side.to = connecting.peer;
        // While the connection is set up, the next 20 posts fail.
        assert!((0..20).all(|_| side.send_nothing(number) == again));
    }

    // Four further connections may be in setup now. One more attempt, the sixth of all, is refused
    // at once.
    let refused = -(fi::FI_ECONNREFUSED as isize);
    for expected in [again, refused, again, again, again] {
        side.insert();
        assert_eq!(side.send_nothing(8), expected);
    }
}

fn connects_once_too_often(side: &mut Side) {
    connects(side, 5);
}
