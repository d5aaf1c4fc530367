//! Initialisation and finalization (OpenSHMEM 1.6, §9.1), and queries about this PE and the others.
#![allow(unsafe_code)]

mod addresses;
mod algorithms;
mod amos;
mod available;
mod child;
mod choice;
mod connect;
mod cpus;
mod leave;
mod locality;
mod locked;
mod mistakes;
mod node_peers;
mod path;
mod probe;
mod record;
mod threads;

pub use connect::{OnThisMachine, transports};
pub use path::transport;

use crate::api;
use crate::api::ctx;
use crate::api::lock;
use crate::base::call::{self, Call, fail};
use crate::base::caller;
use crate::base::constants::{
    SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE,
    SHMEM_VENDOR_STRING,
};
use crate::base::digest::digest;
use crate::base::handle::TeamHandle;
use crate::base::in_force::InForce;
use crate::base::job::{self, Job};
use crate::base::members::Members;
use crate::base::process;
use crate::base::settings::{self, Settings, VirtualNodes};
use crate::base::stdio;
use crate::coll::collectives::barrier_all;
use crate::memory::address;
use crate::memory::areas::Areas;
use crate::memory::blocks;
use crate::memory::statics;
use crate::net::cma;
use crate::net::cma::Probe;
use crate::net::{endpoints, network};
use crate::sync::flags::{self, FlagArea};
use crate::teams::active_set;
use crate::teams::team::{self, Teams};
use core::ffi::{c_int, c_void};
use record::Record;
use rushmem_bootstrap::{NodeMap, Protocol, Session};
use rushmem_collectives::choice::Facts;
use rushmem_heap::{Allocator, Layout, NodeMemory, Reservation};
use rushmem_transport::setting::environment;
use rushmem_transport::{Directory, Pe, Provider};
use std::sync::Mutex;

/// `shmem_init` (§9.1.1). `providers` are the transports that this build has.
pub fn init(call: Call, providers: &[Provider]) {
    enter(call, providers, SHMEM_THREAD_SINGLE);
}

/// `shmem_init_thread` (§9.2.1): as init. Returns the level that is provided, which is the one that
/// the first init requested; `None` if `requested` is not a level.
pub fn init_thread(call: Call, providers: &[Provider], requested: c_int) -> Option<c_int> {
    let levels = SHMEM_THREAD_SINGLE..=SHMEM_THREAD_MULTIPLE;
    levels.contains(&requested).then(|| enter(call, providers, requested).thread_level)
}

/// `start_pes` (§9.1.13): an init that is finalized when the program exits. Further calls do
/// nothing. A child process that exits is not the program. A PE that exits with another status than
/// 0 while others go on does not finalize: that is a failure, which ends the job.
pub fn start_pes(call: Call, providers: &[Provider]) {
    if process::depth() > 0 {
        return;
    }
    enter(call, providers, SHMEM_THREAD_SINGLE);
    extern "C" fn finalize_at_exit(status: c_int, _: *mut c_void) {
        if leave::may_finalize(status) {
            close(Call(&"start_pes (at exit)"));
        }
    }
    leave::starts(finalize_at_exit);
}

/// Count an init; the first one joins the job, the first one after a last finalize returns to it.
fn enter(call: Call, providers: &[Provider], thread_level: c_int) -> &'static Job {
    if process::is_child() {
        job::refuse_child(call);
    }
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _entering = process::lock(&ONE_AT_A_TIME);
    if process::depth() > 0 {
        process::deepen();
        return job::require(call);
    }
    let job = threads::noting(|| open(call, providers, thread_level));
    let (heap, heap_bytes) = (job.memory.heap(), job.memory.layout().heap_bytes());
    address::open(heap, heap_bytes, job.settings.check);
    caller::initialized_here();
    process::deepen();
    // Other PEs may enter by another routine.
    barrier_all(Call(&"shmem_init"));
    job
}

/// Join the job, or return to it, and connect to its PEs.
fn open(call: Call, providers: &[Provider], thread_level: c_int) -> &'static Job {
    let job = match job::known() {
        Some(job) => {
            if let Err(error) = job.session().resumed() {
                fail!(call, "{error}");
            }
            job
        }
        None => job::set(join(call, providers, thread_level)),
    };
    let (heap, heap_bytes) = (job.memory.heap(), job.memory.layout().heap_bytes());
    // SAFETY: the heap is mapped for the life of the process; its last allocator is gone, as are
    // the blocks that it handed out.
    let allocator = unsafe { Allocator::new(heap, heap_bytes, job.memory.layout().stride()) };
    *job.allocator() = Some(if job.settings.check { allocator.guarded() } else { allocator });
    connect::connect(call, job, providers);
    job
}

/// Join the job: the environment, the launcher, the node's memory, the predefined teams.
fn join(call: Call, providers: &[Provider], thread_level: c_int) -> Job {
    let settings = Settings::read(environment);
    let protocol = settings.as_ref().map_or(Protocol::Any, |settings| settings.bootstrap);
    let opened = Session::open(protocol, |pe, aborter| process::set_identity(Pe(pe), aborter));
    // Reported only now, since a PE that has joined names itself and ends the whole job.
    let settings = settings.unwrap_or_else(|error| fail!(call, "{error}"));
    let mut session = opened.unwrap_or_else(|error| fail!(call, "{error}"));
    if !session.is_launched() && statics::were_offered_a_place() {
        fail!(
            call,
            "oshrun started this process, but its variables are gone from the environment: the program has removed them, or \
             another copy of the library in this process has joined the job; keep the environment, and link one copy alone \
             (docs/rust.md says how Rust and C share one)"
        );
    }
    let (me, n_pes) = (Pe(session.pe()), session.n_pes());
    child::watch(call);
    if session.is_launched() {
        stdio::print_line_by_line();
        leave::at_exit();
    }
    if let Some(level) = settings.debug {
        // A subscriber that the program has set before keeps printing.
        let _ =
            tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).try_init();
    }
    if me == Pe(0) {
        announce(&settings, providers);
    }
    let mut table = algorithms::table(&settings).unwrap_or_else(|error| fail!(call, "{error}"));

    let machines = session.nodes().clone();
    let nodes = who_shares_memory(call, &settings, &machines);
    let mut secret = [0; 32];
    if let Err(error) = getrandom::fill(&mut secret) {
        fail!(call, "the kernel gives no random bytes for the job's secret: {error}");
    }
    let machine = machines.node_of(me.0);
    let (n_local, local) = (machines.size(machine), machines.local_index(me.0));
    let areas = Areas::new(n_pes);
    let layout = Layout::new(settings.symmetric_size, areas.nbytes());
    let reserved =
        layout.map_or_else(Vec::new, |layout| Reservation::all(&layout, (n_local, local)));
    let statics_at = statics::at();
    let own = Record {
        symmetric_size: settings.symmetric_size,
        check: settings.check,
        forced: algorithms::forced(&table),
        tuned: algorithms::tuned(&table),
        stack: record::stack(),
        secret,
        cpus: cpus::usable(),
        thread_level,
        statics: digest(statics::own().fingerprint()),
        statics_at,
        statics_start: statics::own().start(),
        reserved: reserved.iter().map(Reservation::slice).collect(),
        probe: Probe::new(secret, statics_at.is_none() && session.is_launched()),
    };
    let records = match session.exchange(&own.encode()) {
        Ok(records) => records,
        Err(error) => fail!(call, "{error}"),
    };
    let records = (0..).zip(&records).map(|(pe, bytes)| match Record::decode(bytes) {
        Ok(record) => record,
        Err(error) => fail!(call, "the record of PE {pe} cannot be read: {error}"),
    });
    let records: Vec<Record> = records.collect();
    if let Some(pe) = records.iter().position(|r| r.symmetric_size != own.symmetric_size) {
        fail!(
            call,
            "SHMEM_SYMMETRIC_SIZE is {} bytes here and {} on PE {pe}; it must be the same on all",
            own.symmetric_size,
            records[pe].symmetric_size
        );
    }
    if let Some(pe) = records.iter().position(|r| r.check != own.check) {
        let (here, there) = (u8::from(own.check), u8::from(!own.check));
        fail!(
            call,
            "SHMEM_CHECK is {here} here and {there} on PE {pe}; it must be the same on all"
        );
    }
    if let Some(pe) = records.iter().position(|r| r.forced != own.forced) {
        fail!(
            call,
            "PE {pe} and PE {me} have different algorithms in the variables SHMEM_..._ALGORITHM; they must be the same on all"
        );
    }
    if let Some(pe) = records.iter().position(|r| r.tuned != own.tuned) {
        fail!(
            call,
            "PE {pe} and PE {me} read different rows from the file of SHMEM_COLL_TUNING; give each host the same file"
        );
    }
    if let Some(pe) = records.iter().position(|r| r.statics != own.statics) {
        fail!(
            call,
            "PE {pe} runs another program than PE {me}: its static data are laid out differently; \
             start all PEs with the same executable"
        );
    }
    let heap_address = addresses::of_heap(&records);
    let reserved = addresses::keep(reserved, heap_address);
    addresses::report(me, &records, heap_address);
    let usable =
        |machine| cpus::of_node(machines.members(machine).map(|pe| &records[pe as usize].cpus));
    let oversubscribed = |machine| machines.size(machine) as usize > usable(machine);

    let statics_at: Vec<Option<u64>> =
        machines.members(machine).map(|pe| records[pe as usize].statics_at).collect();
    let directory = Directory::most_bytes(n_pes, rushmem_bootstrap::proto::MAX_RECORD);
    let place = (n_local, local);
    let map = |layout| {
        let memory = session.take_node_memory();
        let statics = statics::own();
        NodeMemory::map(memory, layout, place, reserved, directory, statics, &statics_at)
    };
    let mapped = layout.ok_or(rushmem_heap::Error::TooLarge).and_then(map);
    let memory: &'static NodeMemory = match mapped {
        Ok(memory) => Box::leak(Box::new(memory)),
        Err(error) => fail!(
            call,
            "a symmetric heap of {} bytes for each of {n_local} PEs cannot be mapped: {error}; {}",
            settings.symmetric_size,
            error.remedy()
        ),
    };
    locality::place_memory(me, memory, &own.cpus);
    if local == 0 && settings.symmetric_size_is_set {
        warn_of_shortage(settings.symmetric_size, n_local);
    }
    let node = nodes.node_of(me.0);
    let deltas = |of: &dyn Fn(u32) -> Option<isize>| -> Vec<Option<isize>> {
        let mapped = |pe| nodes.node_of(pe) == node;
        (0..n_pes).map(|pe| of(machines.local_index(pe)).filter(|_| mapped(pe))).collect()
    };
    let heap_deltas = deltas(&|local| Some(memory.delta(local)));
    address::publish(&heap_deltas, &deltas(&|local| memory.statics_delta(local)));
    let found = node_peers::find(&mut session, me, &nodes, &records);
    let (node_peers, have_node_peers, path) = found.unwrap_or_else(|error| fail!(call, "{error}"));
    if nodes.n_nodes() > 1 || have_node_peers {
        let beside = machines.members(machine).map(|pe| &records[pe as usize].cpus);
        locality::choose_nic(me, &settings.nic, beside, local);
    }
    if let Some(why) = statics::refusal() {
        tracing::debug!(pe = me.0, "the static data of this PE are not in shared memory: {why}");
    }
    tracing::debug!(
        pe = me.0,
        n_pes,
        n_local,
        usable_cpus = usable(machine),
        heap_bytes = memory.layout().heap_bytes(),
        n_nodes = nodes.n_nodes(),
        static_bytes = statics::own().nbytes(),
        static_data = path,
        "joined the job"
    );
    flags::set(FlagArea::new(memory, areas));
    cma::set(node_peers, have_node_peers);
    let world = Members::world(n_pes);
    let oversubscribed_somewhere = (0..machines.n_nodes()).any(oversubscribed);
    let threads_somewhere =
        records.iter().any(|record| record.thread_level >= SHMEM_THREAD_MULTIPLE);
    let facts = Facts {
        members: n_pes,
        per_node: world.per_node(&nodes),
        oversubscribed: oversubscribed_somewhere,
        team: true,
        shared_buffers: !threads_somewhere,
    };
    table.retain_for(&facts);
    if me == Pe(0) {
        algorithms::show(&table, &facts);
    }
    let predefined = [world, beside(&nodes, me), beside(&machines, me)];
    team::set(Teams::new(me, &nodes, predefined));
    Job {
        me,
        n_pes,
        alone: nodes.size(nodes.node_of(me.0)) == 1,
        nodes,
        memory,
        allocator: Mutex::new(None),
        oversubscribed: oversubscribed(machine),
        oversubscribed_somewhere,
        equal_heap_addresses: heap_address.is_some() || n_pes == 1,
        thread_level,
        threads_somewhere,
        secret: records[0].secret,
        one_stack: records.iter().all(|record| record.stack == own.stack),
        settings,
        algorithms: InForce::new(table),
        session: Mutex::new(session),
    }
}

/// Who shares memory with whom: the PEs of a machine, unless the environment splits it.
fn who_shares_memory(call: Call, settings: &Settings, machines: &NodeMap) -> NodeMap {
    let n_pes = machines.n_pes();
    let sizes = match settings.onnode {
        false => vec![1; n_pes as usize],
        true if settings.virtual_nodes == VirtualNodes::No => return machines.clone(),
        true => settings.virtual_nodes.sizes(n_pes).unwrap_or_else(|| {
            fail!(
                call,
                "SHMEM_VIRTUAL_NODES does not fit the {n_pes} PEs of the job: no node may be empty, \
                 and a list must add up to them"
            )
        }),
    };
    if settings.onnode && machines.n_nodes() > 1 {
        fail!(call, "SHMEM_VIRTUAL_NODES splits one machine, but the job is on several");
    }
    let runs = sizes.into_iter().enumerate().map(|(node, size)| (node as u32, size));
    NodeMap::from_runs(runs).expect("no node is empty")
}

fn announce(chosen: &Settings, providers: &[Provider]) {
    let of_providers = providers.iter().flat_map(|provider| provider.settings);
    for warning in mistakes::found(of_providers.clone()) {
        eprintln!("warning: {warning}");
    }
    if chosen.version {
        println!("{SHMEM_VENDOR_STRING} (OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION})");
    }
    if chosen.info {
        for row in settings::ALL.iter().chain(of_providers) {
            println!("{}: {}; now {}", row.names(), row.description(), settings::state(row));
        }
    }
}

/// Warn if more memory is asked for than is available: pages are allocated on first touch, so the
/// mapping succeeds.
fn warn_of_shortage(symmetric_size: u64, n_local: u32) {
    let asked = symmetric_size.saturating_mul(n_local.into());
    if let Some(available) = available::bytes().filter(|&available| asked > available) {
        eprintln!(
            "warning: SHMEM_SYMMETRIC_SIZE asks for {asked} bytes on this node ({n_local} PEs), of \
             which {available} are available; a program that touches more will be killed"
        );
    }
}

/// The PEs on this PE's node, including itself.
fn beside(nodes: &NodeMap, me: Pe) -> Members {
    Members::listed(nodes.members(nodes.node_of(me.0)).collect())
}

/// `shmem_finalize` (§9.1.4): the one that matches the first init destroys what is left and closes
/// the library; any other is a barrier. One that matches no init has no effect but a warning, since
/// programs that do this run with other libraries.
pub fn finalize(call: Call) {
    if process::depth() == 0 && !process::is_child() {
        let pe = process::pe_for_messages();
        eprintln!("warning: {pe}{call}: called more often than shmem_init; the call has no effect");
        return;
    }
    let job = job::require(call);
    caller::check_finalizer(call, job);
    if !process::job_has_ended() {
        close(call);
        return;
    }
    // Nothing remains to be synchronised.
    process::rise();
    if let Err(error) = job.session().finalized() {
        fail!(call, "{error}");
    }
}

fn close(call: Call) {
    let job = job::require(call);
    let is_last = process::depth() == 1;
    if is_last {
        leave::ends();
        lock::finalize(call);
        blocks::check_all_guards(call, job);
    }
    // Other PEs may leave by another routine.
    barrier_all(Call(&"shmem_finalize"));
    if !is_last {
        process::rise();
        return;
    }
    ctx::destroy_of(call, None);
    if network::is_open() {
        // No PE leaves while others still complete operations on its memory, including the flags of
        // the barrier.
        endpoints::complete(call);
        if let Err(error) = job.session().barrier() {
            fail!(call, "{error}");
        }
        endpoints::close();
    }
    active_set::clear();
    team::teams().clear();
    address::close();
    *job.allocator() = None;
    process::rise();
    if let Err(error) = job.session().finalized() {
        fail!(call, "{error}");
    }
}

/// The number of inits without a finalize yet; `None` where a finalize does not wait for other PEs,
/// since there is nothing to finalize or all of them have come to their exit.
pub fn inits_in_force() -> Option<u32> {
    let inits = process::depth();
    (inits > 0 && !process::job_has_ended()).then_some(inits)
}

/// `shmem_global_exit` (§9.1.6): end the job with `status`, whatever the other PEs do.
pub fn global_exit(call: Call, status: c_int) -> ! {
    job::require(call);
    let status = exit_status(status);
    leave::begin_exit();
    stdio::flush();
    let launched = process::aborter().is_some_and(|aborter| aborter.global_exit(status));
    if !launched {
        // SAFETY: the program's own exit handlers run, as the standard asks.
        unsafe { libc::exit(status) }
    }
    call::leave(launched, status)
}

/// The exit status of the job. An operating system keeps the low 8 bits of a status: where these
/// are 0 and the status is not, the job must not look as if it had succeeded.
fn exit_status(status: c_int) -> c_int {
    match status & 0xff {
        0 if status != 0 => 255,
        low => low,
    }
}

/// `shmem_my_pe` (§9.1.2).
#[inline]
pub fn my_pe(call: Call) -> c_int {
    job::require_or_inherited(call).me.0 as c_int
}

/// `shmem_n_pes` (§9.1.3).
#[inline]
pub fn n_pes(call: Call) -> c_int {
    job::require_or_inherited(call).n_pes as c_int
}

/// `shmem_ptr` (§9.1.9): where this PE can load and store `pe`'s copy of `dest`; null when it
/// cannot.
pub fn ptr(call: Call, dest: *const c_void, pe: c_int) -> *mut c_void {
    job::require_pe(call, "pe", pe);
    address::loadable(dest, pe).unwrap_or(std::ptr::null_mut())
}

/// `shmem_team_ptr` (§9.1.10): as [`ptr`], `pe` numbered as in `team`; null for the invalid team.
pub fn team_ptr(call: Call, team: TeamHandle, dest: *const c_void, pe: c_int) -> *mut c_void {
    job::require(call);
    match api::team::translate_pe(call, team, pe, TeamHandle::WORLD) {
        -1 => std::ptr::null_mut(),
        world_pe => ptr(call, dest, world_pe),
    }
}

/// `shmem_addr_accessible` (§9.1.8): 1 if routines can access `addr` on `pe`, else 0.
pub fn addr_accessible(call: Call, addr: *const c_void, pe: c_int) -> c_int {
    c_int::from(pe_accessible(call, pe) == 1 && address::place(addr.addr(), 1).is_some())
}

/// `shmem_pe_accessible` (§9.1.7): 1 if `pe` is a PE of the job that can be reached, else 0.
pub fn pe_accessible(call: Call, pe: c_int) -> c_int {
    c_int::from((0..n_pes(call)).contains(&pe))
}

/// `shmem_query_initialized` (§9.1.5): at any time.
pub fn query_initialized() -> c_int {
    c_int::from(process::depth() > 0)
}

/// `shmem_query_thread` (§9.2.2).
pub fn query_thread(call: Call) -> c_int {
    job::require(call).thread_level
}
