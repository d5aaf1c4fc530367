//! Runs the engine in a simulated world: 2 to 4 PEs with 1 or 2 contexts each, in one thread, with
//! a clock that jumps from event to event.
//!
//! The programs put, get, signal, fence and so on at random, over wires with the capabilities of
//! each provider: `tcp`, `ucx` and `ofi`, each moved by CPUs or by a NIC, with the atomic
//! operations of the network or of the target's CPU, with sessions and proxies. The wires delay and
//! split what they carry, reorder it as far as their order allows, have no room now and then, lack
//! keys, and report completions late and in any order. In every fourth world a PE dies.
//!
//! After each event the memory of the PEs is checked: it shows nothing after a fence before
//! everything that precedes the fence, no signal before its data, and no torn word. A quiet returns
//! only once everything is stored; each result is the right one, stored once and nowhere else;
//! without a further call the service threads finish what calls have left; a loss is reported once
//! on each PE, and then by every call; at the end all queues and tables are empty. A call that
//! waits although no event is left fails.
//!
//! The seed determines a world. With `RUSHMEM_SEED=147`, the test of a wire repeats the world of
//! that seed, event by event.

mod actor;
mod call;
mod clock;
mod kinds;
mod litmus;
mod memory;
mod model;
mod network;
mod operation;
mod program;
mod queue;
mod simulation;
mod wire;
mod world;

use fastrand::Rng;
use kinds::WireKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use world::Entry;

/// The number of seeds of each kind of wire.
const SEEDS: u64 = 1000;
/// The number of seeds if `cargo xtask test --full` asks for more.
const MORE_SEEDS: u64 = 20_000;
/// The time that a run may take. It usually takes a few milliseconds.
const LIMIT: Duration = Duration::from_secs(60);
/// The number of the last entries of the log of a run that fails.
const SHOWN: usize = 60;

/// Runs the worlds of all seeds, or that of RUSHMEM_SEED.
fn simulate(name: &str, kind: fn(&mut Rng) -> WireKind) {
    let one = std::env::var("RUSHMEM_SEED").ok();
    let seeds = match one.map(|seed| seed.parse::<u64>()) {
        Some(seed) => {
            let seed = seed.expect("RUSHMEM_SEED is a number");
            seed..seed + 1
        }
        None if testkit::every_size() => 0..MORE_SEEDS,
        None => 0..SEEDS,
    };

    let begun = limited(name.to_owned());
    for seed in seeds {
        begun.send(seed).expect("the other end lives as long");
        run(name, seed, kind);
    }
}

/// Ends the process if a run takes too long: a loop of the engine that does not even call its wire
/// cannot be ended otherwise. The caller sends each seed when its run begins.
fn limited(name: String) -> Sender<u64> {
    let (begun, seeds) = channel();

    thread::spawn(move || {
        let mut running = None;
        loop {
            match seeds.recv_timeout(testkit::patient(LIMIT)) {
                Ok(seed) => running = Some(seed),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    eprintln!("the run of seed {running:?} of {name} does not end");
                    std::process::abort();
                }
            }
        }
    });

    begun
}

/// Runs the world of a seed. If a check fails, shows the end of the log, and how to repeat the run.
fn run(name: &str, seed: u64, kind: fn(&mut Rng) -> WireKind) -> Vec<Entry> {
    let run = catch_unwind(AssertUnwindSafe(|| simulation::run(seed, kind)));
    run.unwrap_or_else(|failure| {
        let log = world::give_up();
        for entry in &log[log.len().saturating_sub(SHOWN)..] {
            let Entry {
                time,
                what,
                numbers,
            } = entry;
            eprintln!("{time:>12} ns  {what:<24} {numbers:?}");
        }

        eprintln!(
            "repeat this with RUSHMEM_SEED={seed} cargo test -p rushmem-transport --test simulated {name}"
        );
        resume_unwind(failure)
    })
}

#[test]
fn tcp() {
    simulate("tcp", kinds::tcp);
}

#[test]
fn ucx_by_cpu() {
    simulate("ucx_by_cpu", kinds::ucx_by_cpu);
}

#[test]
fn ucx_by_nic() {
    simulate("ucx_by_nic", kinds::ucx_by_nic);
}

#[test]
fn ofi_by_cpu() {
    simulate("ofi_by_cpu", kinds::ofi_by_cpu);
}

#[test]
fn ofi_by_nic() {
    simulate("ofi_by_nic", kinds::ofi_by_nic);
}

#[test]
fn a_seed_repeats_its_run() {
    for kind in [
        kinds::tcp,
        kinds::ucx_by_cpu,
        kinds::ucx_by_nic,
        kinds::ofi_by_cpu,
        kinds::ofi_by_nic,
    ] {
        for seed in 0..20 {
            let [first, second] = [(); 2].map(|()| run("a_seed", seed, kind));
            assert!(first == second, "the runs of seed {seed} differ");
        }
    }
}
