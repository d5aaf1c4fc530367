//! Reports the events of this PE to the race detector of `SHMEM_CHECK=races`: a separate library,
//! opened here, whose instances in all PEs share memory.
#![allow(unsafe_code)]

use super::event::{AccessEvent, AccessKind, Action, ByteBlocks, Effect, Event, Membership};
use core::ffi::{CStr, c_int};
use libloading::Library;
use rushmem_explain::process::pid_namespace;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::Job;
use rushmem_pe::memory::{address, statics};
use rushmem_race_interface::{
    AccessOperation, CheckedAccess, CollectiveEvent, Detector, DetectorOpening, LIBRARY, Order,
    SYMBOL, Text, VERSION,
};
use rushmem_transport::{Pe, Segment};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
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
        Action::Quiet { .. } | Action::PeQuiet | Action::QuietTest => {
            order(detector, event, Order::Begin);
        }
        _ => {}
    }
}

/// Reports the end of an event to the detector, if there is one.
pub(super) fn end(event: &Event) {
    let Some(detector) = detector() else { return };
    let (addr, nbytes) = (event.remote.addr, event.remote.nbytes);
    match event.action {
        Action::Access(access) => {
            if let Some(checked) = checked(event, access) {
                (detector.end)(&checked);
            }
        }
        Action::Collective(membership) | Action::Request(membership) => {
            (detector.leave)(&collective(event, membership));
        }
        Action::Fence => order(detector, event, Order::Fence),
        Action::Quiet { .. } | Action::QuietTest => order(detector, event, Order::Quiet),
        Action::PeQuiet => order(detector, event, Order::PeQuiet),
        Action::Seen => (detector.seen)(addr),
        Action::LockHeld(is_taken) => (detector.lock)(addr, is_taken),
        Action::Block { is_allocated } => {
            (detector.block)(Text::new(event.call.name()), addr, nbytes, is_allocated);
        }
        _ => {}
    }
}

/// Reports that this PE, which has entered the collective `call`, may write `dest` of `pe`.
pub(super) fn report_writes(detector: &Detector, call: Call, dest: ByteBlocks, pe: Pe) {
    (detector.writes)(Text::new(call.name()), dest, pe.0);
}

fn order(detector: &Detector, event: &Event, order: Order) {
    (detector.order)(order, event.ctx.index() as u64, event.pe as u32);
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
    let Event {
        call,
        ctx,
        pe,
        remote,
        local,
        ..
    } = *event;
    Some(CheckedAccess {
        call: Text::new(call.name()),
        operation,
        reads_only: access.effect == Effect::Reads,
        of_shared: access.of_shared,
        word: access.word,
        ctx: ctx.index() as u64,
        pe: u32::try_from(pe).ok()?,
        remote,
        local,
        signal: access.signal,
    })
}

fn collective(event: &Event, membership: Membership) -> CollectiveEvent {
    let Membership {
        team,
        nth,
        n,
        me,
        follows: (follows, member),
    } = membership;
    let (call, source, dest) = (Text::new(event.call.name()), event.local, event.remote);
    CollectiveEvent {
        call,
        team,
        nth,
        n,
        me,
        follows,
        member,
        source,
        dest,
    }
}

/// Opens the library of the detector, and attaches to the memory that PE 0 creates. Ends the job
/// with an error if that is not possible: for example, the PEs are not all on one machine, or the
/// library is not installed.
pub fn open(call: Call, job: &Job) {
    let n_machines = job.session().nodes().n_nodes();
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
            "SHMEM_CHECK is races, but a statically linked program cannot open {LIBRARY}, which finds them; link the \
             program dynamically"
        );
    }
    let detector = detector().unwrap_or_else(|| load(call));
    let heap = job.memory.heap().addr();
    let n = job.n_pes;
    let on_all = |segment, own: usize| -> Vec<usize> {
        let delta = move |pe: u32| address::delta(segment, pe as c_int);
        (0..n)
            .map(|pe| delta(pe).map_or(0, |delta| own.wrapping_add_signed(delta)))
            .collect()
    };

    let heaps = on_all(Segment::Heap, heap);
    let statics = on_all(Segment::Static, statics::own().start());
    let suppressions = job.settings.races_suppressions.as_ref().map_or_else(String::new, |path| {
        std::fs::read_to_string(path).unwrap_or_else(|error| {
            fail!(call, "SHMEM_RACES_SUPPRESSIONS: {path} cannot be read: {error}; name a file that this host has")
        })
    });

    let json = job.settings.races_json.clone().unwrap_or_default();
    let opening = DetectorOpening {
        pe: job.me.0,
        n_pes: n,
        heap_bytes: job.memory.layout().heap_bytes(),
        static_bytes: statics::own().nbytes(),
        heaps: heaps.as_ptr(),
        statics: statics.as_ptr(),
        json: Text::new(json.leak()),
        suppressions: Text::new(suppressions.leak()),
        status: job.settings.races_status.into(),
    };
    let namespace = pid_namespace().unwrap_or(0);
    let own = match job.me.0 {
        0 => [
            &std::process::id().to_le_bytes()[..],
            &(detector.create)(&opening).to_le_bytes(),
            &namespace.to_le_bytes(),
        ]
        .concat(),
        _ => Vec::new(),
    };
    let records = match job.session().exchange(&own) {
        Ok(records) => records,
        Err(error) => fail!(call, "{error}"),
    };
    if namespace == 0 || records[0].get(8..) != Some(&namespace.to_le_bytes()[..]) {
        fail!(
            call,
            "the race detector of SHMEM_CHECK=races finds its memory in PE 0's process, which this PE does not see in /proc; \
             start all PEs in one PID namespace, with its /proc"
        );
    }
    let number = |at: usize| {
        records[0]
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
    };
    let (pid, fd) = (
        u32::from_le_bytes(number(0).unwrap_or([0; 4])),
        number(4).unwrap_or([0; 4]),
    );
    let fd = c_int::from_le_bytes(fd);
    let error = if fd < 0 {
        -fd
    } else {
        (detector.attach)(&opening, pid, fd)
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

/// Returns the functions of the library, which stays loaded.
fn load(call: Call) -> &'static Detector {
    let beside = beside_this_code().map(|dir| dir.join(LIBRARY));
    let found = beside.filter(|path| path.exists());
    let name = found.unwrap_or_else(|| PathBuf::from(LIBRARY));
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
    let detector = unsafe { library.get::<*const Detector>(SYMBOL) };
    // SAFETY: the library stays loaded, and nothing changes the value.
    let detector = detector
        .ok()
        .and_then(|detector| unsafe { detector.as_ref() });
    match detector {
        Some(detector) if detector.version == VERSION => detector,
        _ => fail!(
            call,
            "{LIBRARY} is of another version than this library; install both from one build"
        ),
    }
}

/// Returns the directory of the file that contains this code.
fn beside_this_code() -> Option<PathBuf> {
    let info = statics::object_info(beside_this_code as *const () as usize)?;
    // SAFETY: `dladdr` returns a string that lives as long as the object.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(
        Path::new(name.to_str().ok()?)
            .canonicalize()
            .ok()?
            .parent()?
            .to_owned(),
    )
}
