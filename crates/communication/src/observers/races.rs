//! Reports the events of this PE to the race detector of `SHMEM_CHECK=races`: a separate library,
//! opened here, whose instances in all PEs share memory.
#![allow(unsafe_code)]

use super::CollectiveBlocks;
use super::event::{AccessEvent, AccessKind, Action, ByteBlocks, Effect, Event, Membership};
use core::ffi::{CStr, c_int};
use libloading::Library;
use rushmem_explain::process::pid_namespace;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::Job;
use rushmem_pe::memory::buffers::Buffer;
use rushmem_pe::memory::{address, statics};
use rushmem_race_interface::{
    ALL_CONTEXTS, AccessOperation, BlockList, BufferPlace, CheckedAccess, CollectiveEvent,
    Detector, DetectorOpening, LIBRARY, Order, SYMBOL, Text, VERSION,
};
use rushmem_transport::{Pe, Segment};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::OnceLock;

static DETECTOR: OnceLock<&'static Detector> = OnceLock::new();

/// Returns the detector, if there is one.
pub(crate) fn detector() -> Option<&'static Detector> {
    DETECTOR.get().copied()
}

/// Closes the detector, in the last finalize.
pub fn close() {
    if let Some(detector) = detector() {
        (detector.close)();
    }
}

/// Reports the begin of an event to the detector, if there is one.
pub(super) fn begin(event: &Event) {
    let Some(detector) = detector() else { return };
    match event.action {
        Action::Access(access) => {
            if let Some(checked) = checked(event, access) {
                (detector.begin)(&checked);
            }
        }
        Action::Collective(membership) | Action::Request(membership) => {
            (detector.enter)(&collective(event, membership));
        }
        Action::Quiet { .. }
        | Action::PeQuiet
        | Action::QuietOfAll
        | Action::QuietTest
        | Action::Flush
        | Action::PeFlush
        | Action::LocalComplete => order(detector, event, Order::Begin),
        _ => {}
    }
}

/// Reports the end of an event to the detector, if there is one. `blocks` are what a collective has
/// accessed, if not what the event says.
pub(super) fn end(event: &Event, blocks: Option<&CollectiveBlocks>) {
    let Some(detector) = detector() else { return };
    let addr = event.remote.addr;

    match event.action {
        Action::Access(access) => {
            if let Some(checked) = checked(event, access) {
                (detector.end)(&checked);
            }
        }
        Action::Collective(membership) | Action::Request(membership) => {
            let left = match blocks {
                None => collective(event, membership),
                Some(CollectiveBlocks { source, dest }) => CollectiveEvent {
                    source: BlockList::new(source),
                    dest: BlockList::new(dest),
                    ..collective(event, membership)
                },
            };
            (detector.leave)(&left);
        }
        Action::Fence => order(detector, event, Order::Fence),
        Action::Quiet { .. } | Action::QuietOfAll | Action::QuietTest => {
            order(detector, event, Order::Quiet);
        }
        Action::PeQuiet => order(detector, event, Order::PeQuiet),
        Action::Flush | Action::LocalComplete => order(detector, event, Order::Flush),
        Action::PeFlush => order(detector, event, Order::PeFlush),
        Action::Seen { has_surplus } => (detector.seen)(address::own_in_heap(addr, 1), has_surplus),
        Action::LockHeld(is_taken) => (detector.lock)(addr, is_taken),
        Action::Block { is_allocated } => {
            let call = Text::new(event.call.name());
            (detector.block)(call, addr, event.remote.nbytes, is_allocated);
        }
        _ => {}
    }
}

/// Shows the detector, if there is one, the registered buffers of this PE.
pub fn show_buffers(buffers: &[Buffer]) {
    let Some(detector) = detector() else { return };
    let places = buffers.iter().map(|buffer| BufferPlace {
        start: buffer.start,
        nbytes: buffer.nbytes,
        in_heap: buffer.in_heap,
    });
    let places = places.collect::<Vec<_>>();
    (detector.buffers)(places.as_ptr(), places.len());
}

/// Reports that this PE, which has entered the collective `call`, may write `dest` of `pe`.
pub(super) fn report_writes(detector: &Detector, call: Call, dest: ByteBlocks, pe: Pe) {
    let addr = address::on_pe(dest.addr, pe);
    (detector.writes)(Text::new(call.name()), ByteBlocks { addr, ..dest }, pe.0);
}

fn order(detector: &Detector, event: &Event, order: Order) {
    let ctx = match event.action {
        Action::QuietOfAll | Action::LocalComplete => ALL_CONTEXTS,
        _ => event.ctx.index() as u64,
    };
    (detector.order)(order, ctx, event.pe as u32);
}

/// Converts an access for the detector; `None` for a copy by a collective, and for a negative PE,
/// which the access itself refuses.
fn checked(event: &Event, access: AccessEvent) -> Option<CheckedAccess> {
    use AccessKind::*;
    let operation = match access.kind {
        Put | P | PutStrided | PutSignal => AccessOperation::Put,
        PutNbi | PutSignalNbi => AccessOperation::PutNbi,
        Get | G | GetStrided => AccessOperation::Get,
        GetNbi => AccessOperation::GetNbi,
        Amo => AccessOperation::Update,
        AmoFetch => AccessOperation::Fetch,
        AmoFetchNbi => AccessOperation::FetchNbi,
        Collective => return None,
    };

    Some(CheckedAccess {
        call: Text::new(event.call.name()),
        operation,
        reads_only: access.effect == Effect::Reads,
        of_shared: access.of_shared,
        word: access.word,
        ctx: event.ctx.index() as u64,
        pe: u32::try_from(event.pe).ok()?,
        remote: event.remote,
        local: ByteBlocks {
            addr: address::own_in_heap(event.local.addr, event.local.span()),
            ..event.local
        },
        signal: access.signal,
        counts: access.counts,
    })
}

fn collective(event: &Event, membership: Membership) -> CollectiveEvent {
    CollectiveEvent {
        call: Text::new(event.call.name()),
        team: membership.team,
        nth: membership.nth,
        n: membership.n,
        me: membership.me,
        follows: membership.follows,
        member: membership.followed_member,
        source: BlockList::new(slice::from_ref(&event.local)),
        dest: BlockList::new(slice::from_ref(&event.remote)),
    }
}

/// Opens the library of the detector, and attaches to the memory that PE 0 creates. Ends the job
/// with an error if that is not possible: for example, the PEs are not all on one machine, or the
/// library is not installed.
pub fn open(call: Call, job: &Job) {
    require_supported(call, job);
    let detector = detector().unwrap_or_else(|| load(call));

    let heaps = on_all_pes(job, Segment::Heap, job.memory.heap().addr());
    let statics = on_all_pes(job, Segment::Static, statics::own().start());
    let json = job.settings.races_json.clone().unwrap_or_default();
    let opening = DetectorOpening {
        pe: job.me.0,
        n_pes: job.n_pes,
        heap_bytes: job.memory.layout().heap_bytes(),
        static_bytes: statics::own().nbytes(),
        heaps: heaps.as_ptr(),
        statics: statics.as_ptr(),
        // The detector keeps both texts for the life of the process.
        json: Text::new(json.leak()),
        suppressions: Text::new(read_suppressions(call, job).leak()),
        status: job.settings.races_status.into(),
    };

    let created = create_on_first_pe(call, job, detector, &opening);
    let error = if created.fd < 0 {
        -created.fd
    } else {
        (detector.attach)(&opening, created.pid, created.fd)
    };
    if error != 0 {
        let why = std::io::Error::from_raw_os_error(error);
        fail!(
            call,
            "the race detector of SHMEM_CHECK=races gets no memory that all PEs share: {why}; it takes 9 times the \
             address space of all heaps: set a smaller SHMEM_SYMMETRIC_SIZE"
        );
    }

    // A later init of the process has the same detector.
    let _ = DETECTOR.set(detector);
}

/// Ends the job with an error if no detector can observe it.
fn require_supported(call: Call, job: &Job) {
    let n_machines = job.membership().nodes().n_nodes();
    if n_machines > 1 {
        fail!(
            call,
            "SHMEM_CHECK=races needs all PEs on one machine, since they share the record of their accesses, and \
             this job has {n_machines} machines; run it on one with more PEs than cores, or split that into nodes with \
             SHMEM_VIRTUAL_NODES"
        );
    }
    if statics::own().of_static_program() {
        fail!(
            call,
            "SHMEM_CHECK is races, but a program that is statically linked, or has loaded this library by dlmopen, \
             cannot open {LIBRARY}, which finds them; link the program dynamically"
        );
    }
}

/// Creates the memory of the detectors, on PE 0, and returns it on all PEs. Its descriptor is a
/// negative error if PE 0 could create none. Ends the job with an error if the exchange fails, or
/// this PE cannot see the process of PE 0.
fn create_on_first_pe(
    call: Call,
    job: &Job,
    detector: &Detector,
    opening: &DetectorOpening,
) -> SharedDetectorMemory {
    let namespace = pid_namespace().unwrap_or(0);
    let mut own = Vec::new();
    if job.me.0 == 0 {
        let created = SharedDetectorMemory {
            pid: std::process::id(),
            fd: (detector.create)(opening),
            namespace,
        };
        own = created.to_bytes();
    }
    let records = match job.membership().exchange(&own) {
        Ok(records) => records,
        Err(error) => fail!(call, "{error}"),
    };

    match SharedDetectorMemory::of_bytes(&records[0]) {
        // In another namespace, or in one that is not known, the number may be that of another
        // process.
        Some(created) if namespace != 0 && created.namespace == namespace => created,
        _ => fail!(
            call,
            "the race detector of SHMEM_CHECK=races finds its memory in PE 0's process, which this PE does not see in /proc; \
             start all PEs in one PID namespace, with its /proc"
        ),
    }
}

/// Returns the address in this process of each PE's segment, which starts at `own` on this PE; 0
/// for a PE whose segment is not mapped here.
fn on_all_pes(job: &Job, segment: Segment, own: usize) -> Vec<usize> {
    let mut starts = Vec::new();
    for pe in 0..job.n_pes {
        let delta = address::delta(segment, pe as c_int);
        starts.push(delta.map_or(0, |delta| own.wrapping_add_signed(delta)));
    }
    starts
}

/// Returns the contents of the file that `SHMEM_RACES_SUPPRESSIONS` names; empty if it is not set.
fn read_suppressions(call: Call, job: &Job) -> String {
    let Some(path) = &job.settings.races_suppressions else {
        return String::new();
    };
    std::fs::read_to_string(path).unwrap_or_else(|error| {
        fail!(
            call,
            "SHMEM_RACES_SUPPRESSIONS: {path} cannot be read: {error}; name a file that this host has"
        )
    })
}

/// The memory of the detectors, as PE 0 names it to the others.
struct SharedDetectorMemory {
    /// The process of PE 0.
    pid: u32,
    /// The descriptor of the memory in that process, or the negative number of an error.
    fd: c_int,
    /// The PID namespace of that process; 0 if it is not known.
    namespace: u64,
}

impl SharedDetectorMemory {
    fn to_bytes(&self) -> Vec<u8> {
        let pid = self.pid.to_le_bytes();
        let fd = self.fd.to_le_bytes();
        let namespace = self.namespace.to_le_bytes();
        [&pid[..], &fd, &namespace].concat()
    }

    fn of_bytes(bytes: &[u8]) -> Option<SharedDetectorMemory> {
        let (pid, rest) = bytes.split_first_chunk()?;
        let (fd, rest) = rest.split_first_chunk()?;
        Some(SharedDetectorMemory {
            pid: u32::from_le_bytes(*pid),
            fd: c_int::from_le_bytes(*fd),
            namespace: u64::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

/// Returns the functions of the library, which stays loaded.
fn load(call: Call) -> &'static Detector {
    let beside = beside_this_code().map(|dir| dir.join(LIBRARY));
    let name = beside
        .filter(|path| path.exists())
        // Without a directory, the dynamic linker searches for the library.
        .unwrap_or_else(|| PathBuf::from(LIBRARY));

    // SAFETY: the library is part of Rushmem, and its initialization has no preconditions.
    let library = unsafe { Library::new(&name) };
    let library = match library {
        Ok(library) => ManuallyDrop::new(library),
        Err(error) => fail!(
            call,
            "SHMEM_CHECK=races needs {LIBRARY}, which cannot be opened: {error}; install it beside librushmem.so, or \
             name its directory in LD_LIBRARY_PATH"
        ),
    };

    // SAFETY: the library exports a value of this type by this name.
    let symbol = unsafe { library.get::<*const Detector>(SYMBOL) };
    // SAFETY: the symbol points to a value that nothing changes, in a library that stays loaded.
    let detector = symbol.ok().and_then(|symbol| unsafe { symbol.as_ref() });
    match detector {
        Some(detector) if detector.version == VERSION => detector,
        _ => fail!(
            call,
            "{LIBRARY} is of another version than this library; install both from one build"
        ),
    }
}

/// Returns the directory of the file that contains this code; `None` if the linker does not know
/// the file or the file is gone.
fn beside_this_code() -> Option<PathBuf> {
    let info = statics::object_info(beside_this_code as *const () as usize)?;
    // SAFETY: `dladdr` returns a string that lives as long as the object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    // The file itself, not a link to it that is elsewhere.
    let file = Path::new(name.to_str().ok()?).canonicalize().ok()?;
    Some(file.parent()?.to_owned())
}
