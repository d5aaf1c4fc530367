//! Threads of a PE that wait while another thread of the PE receives the data.

use conformance::{Case, LIMIT, Member};
use rushmem_transport::{Error, Open, Transport};
use rushmem_transport_tcp::PROVIDER;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn usual(with: &Open) -> Result<Box<dyn Transport>, Error> {
    (PROVIDER.open)(with)
}

/// So long that the test exceeds its limit if one sleep lasts to its end.
const FOREVER: Duration = LIMIT;

/// One thread of PE 1 sleeps until a word changes, while another one polls all the time and so
/// receives the put to the word.
fn polled_in_by_another(member: &Member) {
    let transport = member.transport();
    for round in 1..=200 {
        if member.me() == 0 {
            let mut end = member.endpoint();
            end.put_word(1, 0, round);
            end.quiet();
        } else {
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        transport.progress().expect("no loss");
                    }
                });

                while member.fetch::<u64>(0) != round {
                    transport
                        .wait(FOREVER, &[], &mut || false)
                        .expect("no loss");
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        member.barrier();
    }
}

#[test]
fn a_sleeper_learns_what_another_thread_took_in() {
    let name = "waits::a_sleeper_learns_what_another_thread_took_in";
    let case = Case {
        sizes: &[2],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: polled_in_by_another,
    };
    conformance::run(name, usual, case);
}
