//! The suite that every provider must pass.
//!
//! A provider's test calls [`suite`] with the functions that open it. Each case then runs with the
//! numbers of PEs that it lists, usually 2 and 3, and 4 in `cargo xtask test --full`. Every PE is a
//! process: the test program starts itself once per PE. The PEs exchange addresses and synchronize
//! over sockets that they inherit, never over the transport under test. Cases assert outcomes and
//! order, never times; a job has a limit of minutes that only a hang reaches.
//!
//! `cargo test -p rushmem-transport-tcp --test conformance CASE` runs one case.
//!
//! This crate depends on no provider.

mod atomic;
mod completion;
mod job;
pub mod loss;
pub mod malformed;
mod member;
mod memory;
mod order;
mod passive;
mod pattern;
mod random;
mod rma;
mod sessions;
mod side;
mod strided;
mod unused;
pub mod verbs;

pub use member::{Member, Opener, TestAmo, TestEndpoint, TestSignal, TestWord, word};
pub use pattern::Random;
pub use random::{Soak, soak};
pub use sessions::in_sessions;

use std::time::Duration;

use testkit::{Test, patient};

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// The numbers of PEs with which the case runs, one job after the other.
    pub sizes: &'static [u32],
    /// Bytes of each PE's heap segment; untouched parts cost nothing.
    pub heap_bytes: usize,
    /// The time that a job may take before it is ended as hung, on a machine of usual speed.
    pub limit: Duration,
    /// The function that each PE runs.
    pub body: fn(&Member),
}

/// The usual time limit of a job.
pub const LIMIT: Duration = testkit::LIMIT;

const EVERY_SIZE: &[u32] = &[2, 3, 4];

const fn case(heap_bytes: usize, body: fn(&Member)) -> Case {
    Case {
        sizes: EVERY_SIZE,
        heap_bytes,
        limit: LIMIT,
        body,
    }
}

const MIB: usize = 1 << 20;

/// Puts and gets of every small size and alignment and around powers of two.
const SIZES: Case = case(8 * MIB, rma::sizes);
/// Operations across the borders of the blocks in which a large heap may be registered.
const BLOCK_BORDERS: Case = Case {
    sizes: &[3],
    ..case(208 * MIB, rma::block_borders)
};
/// Strided blocks, between other operations on the same memory.
const STRIDED: Case = case(8 * MIB, strided::blocks);
/// Signals follow their data.
const SIGNALS: Case = case(4 * MIB, order::signals);
/// A signal that changes a word of its own data is carried out after the data have arrived.
const SIGNAL_AFTER_ITS_DATA: Case = case(MIB, order::signal_after_its_data);
/// Non-blocking operations are complete after quiet.
const QUIET: Case = case(8 * MIB, completion::quiet);
/// Threads issue random operations, each on endpoints of its own.
const THREADS: Case = case(16 * MIB, random::own_endpoints);

/// The cases that run with the default limits of the provider.
const CASES: [(&str, Case); 29] = [
    ("sizes", SIZES),
    ("zero_length", case(MIB, rma::zero_length)),
    ("segments", case(MIB, rma::segments)),
    ("strided", STRIDED),
    (
        "large",
        Case {
            sizes: &[2],
            ..case(64 * MIB, rma::large)
        },
    ),
    (
        "far_offsets",
        Case {
            sizes: &[2],
            ..case((4 << 30) + 16 * MIB, rma::far_offsets)
        },
    ),
    ("block_borders", BLOCK_BORDERS),
    // A flag that was put after a fence is never seen before the data.
    ("data_before_flag", case(4 * MIB, order::data_before_flag)),
    // A large put after a fence is never seen before small operations, nor a flag before the put.
    (
        "small_before_large",
        case(4 * MIB, order::small_before_large),
    ),
    // The data of the later of two puts with a fence between them remain.
    ("later_put_stays", case(4 * MIB, order::later_put_stays)),
    ("signals", SIGNALS),
    ("signal_after_its_data", SIGNAL_AFTER_ITS_DATA),
    // Two PEs answer each other, each by a put for which the other one polls its memory.
    ("ping_pong", case(MIB, order::ping_pong)),
    // A sleep that an arrival does not end is a hang.
    (
        "ping_pong_asleep",
        Case {
            sizes: &[2, 4],
            ..case(MIB, order::ping_pong_asleep)
        },
    ),
    // Every AMO, width and form against a model.
    ("amos", case(MIB, atomic::semantics)),
    // Sets, swaps and fetches carry any bits of a float.
    ("float_bits", case(MIB, atomic::float_bits)),
    ("contended_counter", case(MIB, atomic::contended_counter)),
    // All PEs add floating-point numbers to the same words.
    ("contended_sums", case(MIB, atomic::contended_sums)),
    ("compare_swap_lock", case(MIB, atomic::compare_swap_lock)),
    ("quiet", QUIET),
    // An endpoint becomes quiet after each fetch, by its own polls alone.
    (
        "quiet_after_fetches",
        case(MIB, completion::quiet_after_fetches),
    ),
    ("pe_quiet", case(8 * MIB, completion::pe_quiet)),
    // The operations of an endpoint are complete when it has been dropped.
    ("drop_completes", case(MIB, completion::drop_completes)),
    // Operations on a PE that computes are carried out.
    ("passive_target", case(8 * MIB, passive::target)),
    // Operations that a PE issued arrive while it computes.
    ("passive_origin", case(8 * MIB, passive::origin)),
    // Random operations of all PEs against a model.
    ("random", case(16 * MIB, random::random)),
    ("threads", THREADS),
    // A request that cannot be carried out is a loss, and never complete.
    (
        "malformed_requests",
        Case {
            sizes: &[2],
            ..case(MIB, malformed::requests)
        },
    ),
    // Peers that are not used take hardly any memory.
    (
        "unused_peers",
        Case {
            sizes: &[2],
            ..case(MIB, unused::peers)
        },
    ),
];

/// The cases that run with tiny limits, so that queues fill up.
const TINY_CASES: [(&str, Case); 8] = [
    // All PEs send everything to everyone at once.
    ("back_pressure", case(16 * MIB, random::back_pressure)),
    (
        "tiny_sizes",
        Case {
            sizes: &[2],
            ..SIZES
        },
    ),
    ("tiny_block_borders", BLOCK_BORDERS),
    ("tiny_strided", STRIDED),
    ("tiny_signals", SIGNALS),
    ("tiny_signal_after_its_data", SIGNAL_AFTER_ITS_DATA),
    ("tiny_quiet", QUIET),
    ("tiny_threads", THREADS),
];

/// Runs a case: a process that is no PE starts the PEs and checks how they end; a PE runs its part.
/// Leaves out numbers of PEs above `RUSHMEM_CONFORMANCE_PES`.
///
/// `test` is the name of the calling test, by which the program that is started for a PE runs the
/// same test.
///
/// # Panics
/// If the provider fails the case.
pub fn run(test: &str, open: Opener, case: Case) {
    if let Some(position) = job::position() {
        run_pe(position, open, &case);
        return;
    }

    let most = job::max_pes();
    for &n_pes in case.sizes {
        if n_pes <= most {
            job::run(test, n_pes, case.limit);
        }
    }
}

/// Runs one PE's part of a case.
fn run_pe(position: job::Position, open: Opener, case: &Case) {
    // The process that has started the PEs ends them at their limit, unless it was ended itself.
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

/// Runs a case if the provider is here. If it is not, `needs` ends the test by [`testkit::absent`].
pub fn run_where(needs: fn(), test: &str, open: Opener, case: Case) {
    // A PE is started only if the provider is here.
    if job::position().is_none() {
        needs();
    }
    run(test, open, case);
}

/// Returns a test of each case, for a `main` that runs them by [`testkit::run`]. Their names begin
/// with `start`. `usual` and `tiny` open the provider with its default limits and with tiny ones:
/// windows and queues of a few operations, transfers and batches of a few hundred bytes. If the
/// provider is absent, `needs` ends the test as in [`run_where`].
pub fn suite(start: &str, usual: Opener, tiny: Opener, needs: fn()) -> Vec<Test> {
    let test = |name: &str, case, open| {
        let name = format!("{start}{name}");
        Test::new(name.clone(), move || run_where(needs, &name, open, case))
    };

    let mut tests = Vec::new();
    for (name, case) in CASES {
        tests.push(test(name, case, usual));
    }
    for (name, case) in TINY_CASES {
        tests.push(test(name, case, tiny));
    }

    // A message that is longer than its target's buffers is carried out or refused.
    let oversized = Case {
        sizes: &[2],
        ..case(MIB, malformed::oversized)
    };
    let open = malformed::opener(usual, tiny);
    tests.push(test("oversized_messages", oversized, open));

    let huge = Case {
        sizes: &[2],
        ..case(1 << 30, rma::large)
    };
    tests.push(test("huge", huge, usual).ignored("takes 6 GiB of memory"));
    tests
}
