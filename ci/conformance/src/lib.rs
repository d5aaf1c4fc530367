//! What every provider must pass.
//!
//! A provider's test calls [`suite`] with the functions that open it; each case then runs with 1 to
//! 4 PEs, every PE a process of its own: the test binary starts itself once per PE, and the PEs
//! exchange addresses and meet over sockets that they inherit, never over the transport under test.
//! Cases assert outcomes and order, never times; a job has 60 seconds.
//!
//! This crate depends on no provider; the tests of a provider depend on it.

mod atomic;
mod completion;
mod job;
pub mod loss;
mod member;
mod memory;
mod order;
mod passive;
mod pattern;
mod random;
mod rma;
mod side;
mod threads;
mod unused;
pub mod verbs;

pub use member::{Member, Opener, TestEndpoint};
pub use pattern::Random;
pub use random::{Soak, soak};

use std::time::Duration;

use testkit::{Test, patient};

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// The numbers of PEs to run it with.
    pub sizes: &'static [u32],
    /// Bytes of each PE's heap segment; untouched parts cost nothing.
    pub heap_bytes: usize,
    /// How long a job may take before it is ended as hung.
    pub limit: Duration,
    /// What each PE does.
    pub body: fn(&Member),
}

/// The usual time limit of a job.
pub const LIMIT: Duration = testkit::LIMIT;

const EVERY_SIZE: &[u32] = &[1, 2, 3, 4];

const fn case(heap_bytes: usize, body: fn(&Member)) -> Case {
    Case { sizes: EVERY_SIZE, heap_bytes, limit: LIMIT, body }
}

const MIB: usize = 1 << 20;

/// Puts and gets of every small size and alignment and around powers of two.
const SIZES: Case = case(8 * MIB, rma::sizes);
/// The same with 2 PEs alone.
const SIZES_OF_A_PAIR: Case = Case { sizes: &[2], ..SIZES };
/// Transfers of no bytes.
const ZERO_LENGTH: Case = case(MIB, rma::zero_length);
/// The two segments are two.
const SEGMENTS: Case = case(MIB, rma::segments);
/// Transfers of 64 MiB.
const LARGE: Case = Case { sizes: &[2], ..case(64 * MIB, rma::large) };
/// Transfers of 1 GiB.
pub const HUGE: Case =
    Case { sizes: &[2], limit: Duration::from_secs(300), ..case(1 << 30, rma::large) };
/// Offsets around and beyond 4 GiB.
pub const FAR_OFFSETS: Case =
    Case { sizes: &[1, 2], ..case((4 << 30) + 16 * MIB, rma::far_offsets) };
/// A flag that was put after a fence is never seen before the data.
const DATA_BEFORE_FLAG: Case = case(4 * MIB, order::data_before_flag);
/// The later of two puts with a fence between them stays.
const LATER_PUT_STAYS: Case = case(4 * MIB, order::later_put_stays);
/// Signals follow their data.
const SIGNALS: Case = case(4 * MIB, order::signals);
/// Two PEs answer each other through memory alone.
const PING_PONG: Case = case(MIB, order::ping_pong);
/// Every AMO, width and form against a model.
const AMOS: Case = case(MIB, atomic::semantics);
/// Sets, swaps and fetches carry any bits of a float.
const FLOAT_BITS: Case = case(MIB, atomic::float_bits);
/// Updates of all PEs on one word are all counted.
const CONTENDED_COUNTER: Case = case(MIB, atomic::contended_counter);
/// A lock made of compare-and-swap excludes.
const COMPARE_SWAP_LOCK: Case = case(MIB, atomic::compare_swap_lock);
/// Non-blocking operations are complete after quiet.
const QUIET: Case = case(8 * MIB, completion::quiet);
/// A quiet towards one PE completes what went there.
const PE_QUIET: Case = case(8 * MIB, completion::pe_quiet);
/// What a dropped endpoint issued arrives.
const DROP_COMPLETES: Case = case(MIB, completion::drop_completes);
/// PEs that compute are served.
const PASSIVE_TARGET: Case = case(8 * MIB, passive::target);
/// What a PE issued arrives while it computes.
const PASSIVE_ORIGIN: Case = case(8 * MIB, passive::origin);
/// All PEs send everything to everyone at once, with a provider whose queues are tiny.
const BACK_PRESSURE: Case = case(16 * MIB, random::back_pressure);
/// Random operations of all PEs against a model.
const RANDOM: Case = case(16 * MIB, random::random);
/// Threads with an endpoint each.
const THREADS: Case = case(16 * MIB, threads::own_endpoints);

/// Peers that are not used take no memory.
const UNUSED_PEERS: Case = Case { sizes: &[2], ..case(MIB, unused::peers) };

/// Every case with the usual queues.
const CASES: [(&str, Case); 21] = [
    ("sizes", SIZES),
    ("zero_length", ZERO_LENGTH),
    ("segments", SEGMENTS),
    ("large", LARGE),
    ("far_offsets", FAR_OFFSETS),
    ("data_before_flag", DATA_BEFORE_FLAG),
    ("later_put_stays", LATER_PUT_STAYS),
    ("signals", SIGNALS),
    ("ping_pong", PING_PONG),
    ("amos", AMOS),
    ("float_bits", FLOAT_BITS),
    ("contended_counter", CONTENDED_COUNTER),
    ("compare_swap_lock", COMPARE_SWAP_LOCK),
    ("quiet", QUIET),
    ("pe_quiet", PE_QUIET),
    ("drop_completes", DROP_COMPLETES),
    ("passive_target", PASSIVE_TARGET),
    ("passive_origin", PASSIVE_ORIGIN),
    ("random", RANDOM),
    ("threads", THREADS),
    ("unused_peers", UNUSED_PEERS),
];

/// Those that are worth it with tiny queues.
const TINY_CASES: [(&str, Case); 5] = [
    ("back_pressure", BACK_PRESSURE),
    ("tiny_sizes", SIZES_OF_A_PAIR),
    ("tiny_signals", SIGNALS),
    ("tiny_quiet", QUIET),
    ("tiny_threads", THREADS),
];

/// Run a case: the parent starts the PEs and decides them, a PE does its part.
///
/// `test` is the name of the calling test, as its program lists it.
///
/// # Panics
/// When the provider fails the case.
pub fn run(test: &str, open: Opener, case: Case) {
    match job::position() {
        Some(position) => run_pe(position, open, &case),
        None => {
            let most = job::max_pes();
            for &n_pes in case.sizes.iter().filter(|&&n_pes| n_pes <= most) {
                job::run(test, n_pes, case.limit);
            }
        }
    }
}

/// One PE's part of a case.
fn run_pe(position: job::Position, open: Opener, case: &Case) {
    let limit = patient(case.limit) + Duration::from_secs(10);
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("a PE outlived its job");
        std::process::exit(3);
    });
    let member = Member::join(position, open, case.heap_bytes);
    (case.body)(&member);
    member.barrier();
}

/// As [`run`], where the provider is here: where it is not, `needs` ends the test by
/// [`testkit::absent`].
pub fn run_where(needs: fn(), test: &str, open: Opener, case: Case) {
    // A PE was started because it is.
    if job::position().is_none() {
        needs();
    }
    run(test, open, case);
}

/// A test of each case, for a `main` that runs them by [`testkit::run`]. Their names begin with
/// `start`. Where the provider is absent, `needs` says so as in [`run_where`].
pub fn suite(start: &str, usual: Opener, tiny: Opener, needs: fn()) -> Vec<Test> {
    let test = |open| {
        move |&(name, case): &(&str, Case)| {
            let name = format!("{start}{name}");
            Test::new(name.clone(), move || run_where(needs, &name, open, case))
        }
    };
    let mut tests: Vec<Test> = CASES.iter().map(test(usual)).collect();
    tests.extend(TINY_CASES.iter().map(test(tiny)));
    tests.push(test(usual)(&("huge", HUGE)).ignored("takes 6 GiB of memory"));
    tests
}
