//! What every provider must pass.
//!
//! A provider's test calls [`conformance!`](macro@crate::conformance) with the functions that open it; each
//! case then runs with 1 to 4 PEs, every PE a process of its own: the test binary starts itself once
//! per PE, and the PEs exchange addresses and meet over sockets that they inherit, never over the
//! transport under test. Cases assert outcomes and order, never times; a job has 60 seconds.
//!
//! This module must never know a provider. It is compiled with the feature `conformance` alone.

mod atomic;
mod completion;
mod job;
mod member;
mod memory;
mod order;
mod passive;
mod pattern;
mod random;
mod rma;
mod side;
mod threads;
pub mod verbs;

pub use member::{End, Member, Opener};
pub use pattern::Random;
pub use random::{Soak, soak};

use std::time::Duration;

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
pub const LIMIT: Duration = Duration::from_secs(60);

const EVERY_SIZE: &[u32] = &[1, 2, 3, 4];

const fn case(heap_bytes: usize, body: fn(&Member)) -> Case {
    Case { sizes: EVERY_SIZE, heap_bytes, limit: LIMIT, body }
}

const MIB: usize = 1 << 20;

/// Puts and gets of every small size and alignment and around powers of two.
pub const SIZES: Case = case(8 * MIB, rma::sizes);
/// The same with 2 PEs alone.
pub const SIZES_OF_A_PAIR: Case = Case { sizes: &[2], ..SIZES };
/// Transfers of no bytes.
pub const ZERO_LENGTH: Case = case(MIB, rma::zero_length);
/// The two segments are two.
pub const SEGMENTS: Case = case(MIB, rma::segments);
/// Transfers of 64 MiB.
pub const LARGE: Case = Case { sizes: &[2], ..case(64 * MIB, rma::large) };
/// Transfers of 1 GiB.
pub const HUGE: Case =
    Case { sizes: &[2], limit: Duration::from_secs(300), ..case(1 << 30, rma::large) };
/// Offsets around and beyond 4 GiB.
pub const FAR_OFFSETS: Case =
    Case { sizes: &[1, 2], ..case((4 << 30) + 16 * MIB, rma::far_offsets) };
/// A flag that was put after a fence is never seen before the data.
pub const DATA_BEFORE_FLAG: Case = case(4 * MIB, order::data_before_flag);
/// The later of two puts with a fence between them stays.
pub const LATER_PUT_STAYS: Case = case(4 * MIB, order::later_put_stays);
/// Signals follow their data.
pub const SIGNALS: Case = case(4 * MIB, order::signals);
/// Two PEs answer each other through memory alone.
pub const PING_PONG: Case = case(MIB, order::ping_pong);
/// Every AMO, width and form against a model.
pub const AMOS: Case = case(MIB, atomic::semantics);
/// Sets, swaps and fetches carry any bits of a float.
pub const FLOAT_BITS: Case = case(MIB, atomic::float_bits);
/// Updates of all PEs on one word are all counted.
pub const CONTENDED_COUNTER: Case = case(MIB, atomic::contended_counter);
/// A lock made of compare-and-swap excludes.
pub const COMPARE_SWAP_LOCK: Case = case(MIB, atomic::compare_swap_lock);
/// Non-blocking operations are complete after quiet.
pub const QUIET: Case = case(8 * MIB, completion::quiet);
/// A quiet towards one PE completes what went there.
pub const PE_QUIET: Case = case(8 * MIB, completion::pe_quiet);
/// What a dropped endpoint issued arrives.
pub const DROP_COMPLETES: Case = case(MIB, completion::drop_completes);
/// PEs that compute are served.
pub const PASSIVE_TARGET: Case = case(8 * MIB, passive::target);
/// What a PE issued arrives while it computes.
pub const PASSIVE_ORIGIN: Case = case(8 * MIB, passive::origin);
/// All PEs send everything to everyone at once, with a provider whose queues are tiny.
pub const BACK_PRESSURE: Case = case(16 * MIB, random::back_pressure);
/// Random operations of all PEs against a model.
pub const RANDOM: Case = case(16 * MIB, random::random);
/// Threads with an endpoint each.
pub const THREADS: Case = case(16 * MIB, threads::own_endpoints);

/// Run a case: the parent starts the PEs and decides them, a PE does its part.
///
/// `test` is the full path of the calling test, `module_path!()` with the function's name.
///
/// # Panics
/// When the provider fails the case.
pub fn run(test: &str, open: Opener, case: Case) {
    match job::position() {
        Some(position) => run_pe(position, open, &case),
        None => {
            let most = job::most_pes();
            for &n_pes in case.sizes.iter().filter(|&&n_pes| n_pes <= most) {
                job::run(test, n_pes, job::patient(case.limit));
            }
        }
    }
}

/// One PE's part of a case.
fn run_pe(position: job::Position, open: Opener, case: &Case) {
    let limit = job::patient(case.limit) + Duration::from_secs(10);
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("a PE outlived its job");
        std::process::exit(3);
    });
    let member = Member::join(position, open, case.heap_bytes);
    (case.body)(&member);
    member.barrier();
}

/// As [`run`], where the provider is here: `here` says so, and says why not.
pub fn run_where(here: fn() -> bool, test: &str, open: Opener, case: Case) {
    // A PE was started because it is.
    if job::position().is_some() || here() {
        run(test, open, case);
    }
}

/// Instantiate the suite: `conformance!(open, open_with_tiny_queues);` makes a test of each case.
/// Both are an [`Opener`](crate::conformance::Opener). A third argument, a function, says whether the
/// provider is here at all.
#[macro_export]
macro_rules! conformance {
    ($open:expr, $tiny:expr $(,)?) => {
        $crate::conformance!($open, $tiny, || true);
    };
    ($open:expr, $tiny:expr, $here:expr $(,)?) => {
        $crate::conformance!(@cases $here, $open;
            sizes SIZES, zero_length ZERO_LENGTH, segments SEGMENTS, large LARGE,
            far_offsets FAR_OFFSETS, data_before_flag DATA_BEFORE_FLAG,
            later_put_stays LATER_PUT_STAYS, signals SIGNALS, ping_pong PING_PONG, amos AMOS,
            float_bits FLOAT_BITS, contended_counter CONTENDED_COUNTER,
            compare_swap_lock COMPARE_SWAP_LOCK, quiet QUIET, pe_quiet PE_QUIET,
            drop_completes DROP_COMPLETES, passive_target PASSIVE_TARGET,
            passive_origin PASSIVE_ORIGIN, random RANDOM, threads THREADS,
        );
        $crate::conformance!(@cases $here, $tiny;
            back_pressure BACK_PRESSURE, tiny_sizes SIZES_OF_A_PAIR, tiny_signals SIGNALS,
            tiny_quiet QUIET, tiny_threads THREADS,
        );
        /// Transfers of 1 GiB: takes 6 GiB of memory.
        #[test]
        #[ignore = "takes 6 GiB of memory"]
        fn huge() {
            let test = concat!(module_path!(), "::huge");
            $crate::conformance::run_where($here, test, $open, $crate::conformance::HUGE);
        }
    };
    (@cases $here:expr, $open:expr; $($name:ident $case:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            let test = concat!(module_path!(), "::", stringify!($name));
            $crate::conformance::run_where($here, test, $open, $crate::conformance::$case);
        }
    )*};
}
