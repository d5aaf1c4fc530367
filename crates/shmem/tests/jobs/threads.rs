//! Threads of a PE that use contexts of their own while another one allocates, drops and enters
//! epochs, also over a network.
#![allow(unsafe_code)]

use shmem::{Atomic, Context, ContextOptions, Movable, Shared, Shmem, SymSlice, Threads};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{env, thread};

/// The number of elements that each thread uses.
const OWN: usize = 512;

/// Puts and gets on a context of this thread until `is_over`. Returns true if all gets returned the
/// values that were put.
fn exchange<C: Threads>(
    context: &Context<'_, C>,
    array: &SymSlice<u64>,
    peer: usize,
    is_over: &AtomicBool,
) -> bool {
    let mut is_right = true;
    let target = context.pe(peer);
    for round in 1.. {
        // Relaxed: nothing that the other thread writes before is read here.
        if is_over.load(Relaxed) {
            break;
        }

        let source = [round; 8];
        context.scope(|s| {
            let target = s.pe(peer);
            for part in array.chunks(8) {
                part.on(target).put(&source);
            }
        });

        // The put may be incomplete when the other thread completes the operations of this PE.
        array[..8].on(target).put(&source);
        let mut got = [0; 8];
        array[OWN - 8..].on(target).get(&mut got);
        is_right &= got == source;
    }
    is_right
}

shmem::test!(
    contexts_of_threads_are_used_beside_epochs_and_drops,
    pes = 2,
    || {
        let shmem = shmem::init_shared().expect("it is the first");
        let peer = 1 - shmem.my_pe();
        let array = shmem.array::<u64>(2 * OWN);
        let mut other = shmem.array::<u64>(64);
        let is_over = AtomicBool::new(false);

        thread::scope(|threads| {
            let shmem = &shmem;
            let is_over = &is_over;
            let (one, two) = array.split_at(OWN);
            let private =
                threads.spawn(move || exchange(&shmem.world().context(), one, peer, is_over));
            let serialized = threads.spawn(move || {
                let world = shmem.world();
                let context = ContextOptions::new().create_as::<Movable>(world);
                exchange(&context.expect("there is room"), two, peer, is_over)
            });

            for _ in 0..40 {
                other.epoch(|own| own[0] += 1);
            }
            for _ in 0..10 {
                drop(shmem.array::<u64>(10));
            }

            is_over.store(true, Relaxed);
            assert!(private.join().expect("it ends"));
            assert!(serialized.join().expect("it ends"));
        });
        assert_eq!(other[0].load(), 40);
        shmem.barrier_all();
    }
);

shmem::test!(threads_share_arrays_peers_and_teams, pes = 2, || {
    let shmem = shmem::init_shared().expect("it is the first");
    let counters = shmem.array::<Atomic<u64>>(4);
    let home = shmem.pe(0);
    let world = shmem.world();

    thread::scope(|threads| {
        for counter in &counters {
            let world = &world;
            threads.spawn(move || {
                let own = world.context();
                counter.on(own.pe(0)).add(1);
                counter.on(home).add(1);
            });
        }
    });

    shmem.barrier_all();
    assert_eq!(counters.on(home).load_each(), [4; 4]);
});

/// Keeps the process in its exit until the library refuses a call of a thread and ends the process,
/// as it does over a network; on a node no call is refused. It is registered before the first init,
/// so it runs after the library's function.
fn stay_in_the_exit() {
    extern "C" fn stay() {
        if env::var_os("SHMEM_ONNODE").is_some_and(|mode| mode == "off") {
            loop {
                thread::park();
            }
        }
    }
    unsafe extern "C" {
        safe fn atexit(function: extern "C" fn()) -> core::ffi::c_int;
    }
    assert_eq!(atexit(stay), 0);
}

shmem::test!(threads_are_still_there_at_the_exit, pes = 2, || {
    stay_in_the_exit();
    let shmem = shmem::init_shared().expect("it is the first");
    let shmem: &'static Shmem<Shared> = Box::leak(Box::new(shmem));
    let array: &'static SymSlice<u64> = Box::leak(Box::new(shmem.array::<u64>(4096)));
    // Two threads and this one.
    let begun: &'static Barrier = Box::leak(Box::new(Barrier::new(3)));

    for _ in 0..2 {
        thread::spawn(move || {
            let team = shmem.world();
            let context = team.context();
            let next = array.on(context.next());
            next.put(&[1; 4096]);
            begun.wait();
            loop {
                next.put(&[1; 4096]);
            }
        });
    }
    begun.wait();
    shmem.barrier_all();
});

#[test]
fn contexts_of_threads_are_used_beside_epochs_and_drops_over_tcp() {
    for _ in 0..2 {
        crate::over_tcp::passes("threads::contexts_of_threads_are_used_beside_epochs_and_drops");
    }
}

#[test]
fn a_thread_at_the_exit_is_named_as_the_mistake_that_it_is() {
    let outcome = crate::over_tcp::run("threads::threads_are_still_there_at_the_exit");
    let message = "called by a thread while the program exits; join all threads";
    assert!(!outcome.status.success(), "{outcome}");
    assert!(outcome.stderr.contains(message), "{outcome}");
}
