//! Makes jobs whose PEs are values in this process: [`job`] lets each PE of a [`Shape`] run a body
//! in a thread of its own, and returns the results.
//!
//! The PE of the process is never set, so a look-up of it that is left in the routines under test
//! ends the process, unless it is one that finds no PE, as `job::known` and `network::is_open` do.
//! A thread acts for one PE alone, since the library keeps state in thread-locals. A panic of a PE
//! fails the test at once, with its message. A job in which nothing happens any more fails it after
//! [`STALLED`], with what each PE waits for. All that a PE consists of is freed after its threads
//! have ended, unless the test fails or the shape keeps it.

pub(crate) mod lateness;
mod network;
mod parts;

use crate::coll::collectives::{self, TeamOrActiveSet};
use crate::own_pe::{Caller, OwnPe};
use lateness::Lateness;
use network::Meeting;
use parts::Parts;
use rushmem_bootstrap::{Membership, NodeMap};
use rushmem_collectives::choice::Table;
use rushmem_communication::access::endpoints::Endpoints;
use rushmem_communication::links::Links;
use rushmem_communication::net::flags::FlagArea;
use rushmem_communication::net::network::Network;
use rushmem_explain::status_slot;
use rushmem_heap::huge_pages::PageSize;
use rushmem_heap::{Layout, NodeMapping, NodeMemory};
use rushmem_pe::call::{Call, call};
use rushmem_pe::constants::{SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE};
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::job::members::Members;
use rushmem_pe::job::{CurrentTable, Job};
use rushmem_pe::memory::address::AddressMap;
use rushmem_pe::memory::areas::{Areas, RECEIVE_BUFFER_SETS};
use rushmem_pe::memory::images::{Deltas, Images};
use rushmem_pe::memory::statics;
use rushmem_pe::settings::Settings;
use rushmem_system::lock::{lock, read, write};
use rushmem_transport::{Pe, Segment};
use std::any::Any;
use std::cell::Cell;
use std::fmt::Write;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The call that messages and statuses name.
pub(crate) const CALL: Call = call!("a test");
/// The world, for collectives.
pub(crate) const WORLD: TeamOrActiveSet = TeamOrActiveSet::Team(TeamHandle::WORLD);
/// The bytes of the heap of each PE.
pub(crate) const HEAP_BYTES: usize = 4 << 20;
/// The time without any step of a PE after which a test fails.
const STALLED: Duration = Duration::from_secs(20);
/// The time that a job may take whatever it does.
const LIMIT: Duration = Duration::from_secs(200);

/// What a job consists of.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The sizes of its nodes.
    pub(crate) nodes: Vec<u32>,
    /// Rows by which algorithms are chosen, before those that are built in.
    pub(crate) rows: String,
    /// The thread level of each PE.
    pub(crate) thread_level: i32,
    /// True if PEs of other nodes are reached over loopback; otherwise all memory is mapped, and
    /// the nodes only decide which algorithms are chosen.
    pub(crate) is_over_tcp: bool,
    /// The seed by which PEs are late, if they are.
    pub(crate) late: Option<u64>,
    /// True if the PEs live as long as the process.
    pub(crate) is_kept: bool,
}

impl Shape {
    /// Returns a job of these nodes, all of whose memory is mapped.
    pub(crate) fn of(nodes: &[u32]) -> Shape {
        Shape {
            nodes: nodes.to_vec(),
            rows: String::new(),
            thread_level: SHMEM_THREAD_SINGLE,
            is_over_tcp: false,
            late: None,
            is_kept: false,
        }
    }

    /// Returns a job whose nodes reach each other over loopback.
    pub(crate) fn over_tcp(nodes: &[u32]) -> Shape {
        Shape {
            is_over_tcp: true,
            ..Shape::of(nodes)
        }
    }

    /// Chooses algorithms by these rows first.
    pub(crate) fn rows(self, rows: &str) -> Shape {
        Shape {
            rows: rows.to_owned(),
            ..self
        }
    }

    /// Lets several threads of a PE be in the library at once.
    pub(crate) fn threads(self) -> Shape {
        Shape {
            thread_level: SHMEM_THREAD_MULTIPLE,
            ..self
        }
    }

    /// Makes PEs late, at steps that depend on a seed.
    pub(crate) fn late(self, seed: u64) -> Shape {
        Shape {
            late: Some(seed),
            ..self
        }
    }

    /// Keeps the PEs, since they register buffers: the handlers of forks, which a process has once,
    /// keep the first PE that does.
    pub(crate) fn kept(self) -> Shape {
        Shape {
            is_kept: true,
            ..self
        }
    }

    pub(crate) fn n_pes(&self) -> u32 {
        self.nodes.iter().sum()
    }
}

/// A PE under test. As a [`Caller`] it makes the calls of the library.
#[derive(Clone, Copy)]
pub(crate) struct TestPe {
    own: &'static OwnPe,
    lateness: &'static Lateness,
    reports: &'static Sender<Report>,
}

/// A thread of the PE has ended, or has panicked.
type Report = (u32, Result<(), Box<dyn Any + Send>>);

impl Deref for TestPe {
    type Target = OwnPe;

    fn deref(&self) -> &OwnPe {
        self.own
    }
}

impl Caller for TestPe {
    fn enter(self) -> (&'static OwnPe, Call) {
        (self.own, CALL)
    }
}

/// The library counts the requests of a process, whichever PE has made them. So a test whose result
/// depends on that count excludes those with requests.
static REQUESTS: RwLock<()> = RwLock::new(());

/// Lets a test make requests.
pub(crate) fn with_requests() -> RwLockReadGuard<'static, ()> {
    read(&REQUESTS)
}

/// Excludes tests that make requests.
pub(crate) fn without_requests() -> RwLockWriteGuard<'static, ()> {
    write(&REQUESTS)
}

thread_local! {
    /// The PE for which this thread acts.
    static CURRENT: Cell<Option<TestPe>> = const { Cell::new(None) };
}

/// Returns the PE for which the calling thread acts.
pub(crate) fn current() -> TestPe {
    CURRENT.get().expect("a thread of a PE calls this")
}

impl TestPe {
    /// Returns the number of this PE.
    pub(crate) fn me(&self) -> usize {
        self.job().me.index()
    }

    /// Returns the number of PEs of the job.
    pub(crate) fn n(&self) -> usize {
        self.job().n_pes as usize
    }

    /// Returns the PE for routines that take it.
    pub(crate) fn enter_pe(self) -> &'static OwnPe {
        self.own
    }

    pub(crate) fn links(&self) -> &'static Links {
        self.own.links
    }

    /// Returns the internal areas, as this PE reaches them.
    pub(crate) fn area(&self) -> &'static FlagArea {
        &self.own.links.area
    }

    /// Syncs all PEs, so that the arrays of earlier steps can be used again.
    pub(crate) fn sync_all(self) {
        collectives::sync_all(self);
    }

    /// Lets `n` more threads of this PE each call `body` with its number, and waits for them.
    pub(crate) fn with_threads(self, n: usize, body: impl Fn(TestPe, usize) + Sync) {
        thread::scope(|scope| {
            for number in 0..n {
                let body = &body;
                scope.spawn(move || {
                    CURRENT.set(Some(self));
                    lateness::act_for(self.lateness);
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(self, number))) {
                        // The receiver may have ended the test already.
                        let _ = self.reports.send((self.job().me.0, Err(panic)));
                    }
                });
            }
        });
    }

    /// Describes what this PE waits for, for a message.
    fn describe_waits(self) -> String {
        let area = self.area();
        let slot = area.areas().status();
        let me = self.job().me;
        let status = status_slot::read(|nbytes| Some(area.bytes_of(me, slot, nbytes)));

        let mut text = String::new();
        for wait in status.into_iter().flat_map(|status| status.waits) {
            // A write to a string does not fail.
            let _ = write!(
                text,
                "\n  PE {me} waits in {} for {:?}",
                wait.call, wait.subject
            );
        }
        if text.is_empty() {
            text = format!("\n  PE {me} is in no wait of the library");
        }
        text
    }
}

/// Lets the PEs of a job each run `body`. Returns their results, in the order of the PEs.
///
/// # Panics
/// If a PE panics, or nothing happens any more before all have returned.
#[track_caller]
pub(crate) fn job<R: Send + 'static>(
    shape: &Shape,
    body: impl Fn(TestPe) -> R + Send + Sync + 'static,
) -> Vec<R> {
    start(shape, body).finish()
}

/// A job that runs.
pub(crate) struct RunningJob<R> {
    shape: Shape,
    parts: Parts,
    pes: Vec<TestPe>,
    threads: Vec<JoinHandle<()>>,
    reports: Receiver<Report>,
    results: Arc<Mutex<Vec<Option<R>>>>,
}

/// Starts a job, each of whose PEs runs `body`.
pub(crate) fn start<R: Send + 'static>(
    shape: &Shape,
    body: impl Fn(TestPe) -> R + Send + Sync + 'static,
) -> RunningJob<R> {
    let n_pes = shape.n_pes();
    let memory = map_memory(shape);
    let mut parts = Parts::default();
    let (sender, reports) = channel();
    let sender: &Sender<Report> = parts.keep(Box::new(sender));
    let mut pes = Vec::new();
    for me in 0..n_pes {
        let own = new_pe(me, shape, &memory, &mut parts);
        let seed = shape.late.map(|seed| seed * 1000 + u64::from(me));
        pes.push(TestPe {
            own,
            lateness: parts.keep(Box::new(Lateness::of(seed))),
            reports: sender,
        });
    }

    let body = Arc::new(body);
    let results = Arc::new(Mutex::new((0..n_pes).map(|_| None).collect::<Vec<_>>()));
    let meeting = Arc::new(Meeting::of(n_pes));
    let mut threads = Vec::new();
    for &pe in &pes {
        let body = Arc::clone(&body);
        let results = Arc::clone(&results);
        let meeting = shape.is_over_tcp.then(|| Arc::clone(&meeting));
        let run = move || {
            CURRENT.set(Some(pe));
            lateness::act_for(pe.lateness);
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let result = run_pe(pe, meeting.as_deref(), &*body);
                lock(&results)[pe.me()] = Some(result);
            }));
            // The receiver may have ended the test already.
            let _ = pe.reports.send((pe.job().me.0, ended));
        };
        let thread = thread::Builder::new().name(format!("PE {}", pe.me()));
        threads.push(thread.spawn(run).expect("the kernel has threads"));
    }
    RunningJob {
        shape: shape.clone(),
        parts,
        pes,
        threads,
        reports,
        results,
    }
}

/// Runs the body of a PE, between what init and finalize do for it.
fn run_pe<R>(pe: TestPe, meeting: Option<&Meeting>, body: &impl Fn(TestPe) -> R) -> R {
    if let Some(meeting) = meeting {
        meeting.connect(pe);
    }
    let result = body(pe);

    pe.own.requests.complete_all(CALL);
    if let Some(meeting) = meeting {
        meeting.close(pe);
    }
    pe.own.requests.end_all();
    pe.own.kept.clear();
    pe.own.teams.clear(&pe.own.slots);
    result
}

impl<R> RunningJob<R> {
    /// Waits until all PEs have returned, and frees them. Returns their results.
    ///
    /// # Panics
    /// As [`job`].
    #[track_caller]
    pub(crate) fn finish(self) -> Vec<R> {
        let limit = Instant::now() + testkit::patient(LIMIT);
        let mut last_step = Instant::now();
        let mut steps = 0;
        let mut n_ended = 0;

        while n_ended < self.pes.len() {
            match self.reports.recv_timeout(Duration::from_secs(1)) {
                Ok((_, Ok(()))) => {
                    n_ended += 1;
                    last_step = Instant::now();
                }
                Ok((pe, Err(panic))) => self.fail(&format!("PE {pe}: {}", message(&*panic))),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the job has a sender"),
                Err(RecvTimeoutError::Timeout) => {}
            }

            let taken = self.pes.iter().map(|pe| pe.lateness.steps()).sum();
            if steps != taken {
                steps = taken;
                last_step = Instant::now();
            }
            if last_step.elapsed() > testkit::patient(STALLED) || Instant::now() > limit {
                let waits: String = self.pes.iter().map(|pe| pe.describe_waits()).collect();
                self.fail(&format!(
                    "{n_ended} PEs have ended, the others do not:{waits}"
                ));
            }
        }
        self.free()
    }

    /// Fails the test. The PEs are not freed, since their threads may go on.
    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        panic!("{why}\nin a job of {:?}", self.shape)
    }

    /// Frees the PEs, whose bodies have returned. Returns their results.
    fn free(self) -> Vec<R> {
        if !self.shape.is_kept {
            let links = self.pes.iter().map(|pe| pe.links());
            self.parts.free_after(self.threads, links);
        }

        let results = std::mem::take(&mut *lock(&self.results));
        let result = |result: Option<R>| result.expect("the PE has returned");
        results.into_iter().map(result).collect()
    }
}

/// Returns the text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => panic
            .downcast_ref::<&str>()
            .unwrap_or(&"a panic")
            .to_string(),
    }
}

/// Returns the layout of the internal areas of a job.
fn areas_of(shape: &Shape) -> Areas {
    let has_threads = shape.thread_level == SHMEM_THREAD_MULTIPLE;
    let n_sets = if has_threads { RECEIVE_BUFFER_SETS } else { 1 };
    Areas::new(shape.n_pes(), n_sets)
}

/// Maps the memory of the PEs of a job, once for all of them: each reaches the others at addresses
/// at which these find themselves, so that ThreadSanitizer sees which accesses are to one word.
fn map_memory(shape: &Shape) -> NodeMemory {
    let nbytes = areas_of(shape).nbytes();
    let mapped = NodeMemory::map(NodeMapping {
        memory: None,
        layout: Layout::new(HEAP_BYTES as u64, nbytes, PageSize::Mib2).expect("it fits"),
        n_local: shape.n_pes(),
        local: 0,
        reserved: None,
        pages: None,
        published_bytes: 0,
        statics: statics::own(),
        peers: &[],
    });
    mapped.expect("the kernel has memory")
}

/// Makes the PE `me` of a job with this memory, as `start::join` does.
fn new_pe(me: u32, shape: &Shape, memory: &NodeMemory, parts: &mut Parts) -> &'static OwnPe {
    let n_pes = shape.n_pes();
    let memory = parts.keep(Box::new(memory.of_peer(me)));

    let sizes = shape.nodes.iter().copied();
    let nodes = NodeMap::from_runs((0..).zip(sizes)).expect("no node is empty");
    let is_mapped = |pe| !shape.is_over_tcp || nodes.node_of(pe) == nodes.node_of(me);
    let mapped = (0..n_pes).map(|pe| is_mapped(pe).then(|| memory.delta(pe)));
    let mut deltas_of = |table: Box<[_]>| {
        let table = parts.keep(Box::new(table));
        Deltas::of_table(table)
    };
    let deltas = deltas_of(Deltas::table(mapped));
    let none = deltas_of(Deltas::table((0..n_pes).map(|_| None)));

    let map = parts.keep(Box::new(AddressMap::closed()));
    map.publish(deltas, none);
    map.open_heap(memory.heap(), memory.layout().heap_bytes());
    let mut images_of = |segment, deltas| parts.keep(Box::new(Images::new(segment, deltas)));
    let images = [
        images_of(Segment::Heap, deltas),
        images_of(Segment::Static, none),
    ];
    let internal = images_of(Segment::Internal, deltas);

    let mut table = Table::default();
    table
        .read(&shape.rows)
        .expect("the rows of a test are valid");
    table.complete();
    let job = Job {
        me: Pe(me),
        n_pes,
        has_statics_apart: false,
        needs_transport: shape.is_over_tcp,
        is_alone_on_node: nodes.size(nodes.node_of(me)) == 1,
        nodes,
        map,
        images,
        memory,
        allocator: Mutex::new(None),
        cpus_per_pe: 0,
        is_oversubscribed: true,
        is_oversubscribed_somewhere: true,
        has_equal_heap_addresses: false,
        has_equal_constants: true,
        thread_level: shape.thread_level,
        has_threads_somewhere: shape.thread_level == SHMEM_THREAD_MULTIPLE,
        settings: Settings::read(|_| None).expect("the defaults are valid"),
        algorithms: CurrentTable::new(parts.keep(Box::new(table))),
        secret: [0; 32],
        is_on_one_stack: true,
        membership: Mutex::new(Membership::alone()),
    };

    let endpoints = parts.keep(Endpoints::boxed());
    let network = parts.keep(Box::new(Network::new()));
    let area = FlagArea::new(memory, areas_of(shape), internal, endpoints);
    let node = Members::listed(job.nodes.members(job.nodes.node_of(me)).collect());
    let world = Members::world(n_pes);
    let links = parts.keep(Box::new(Links::new(job, area, network)));
    parts.keep(Box::new(OwnPe::new(links, [world.clone(), node, world])))
}
