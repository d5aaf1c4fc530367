//! Futures of the library in `tokio::select!`, which drops those that are pending when another one
//! wins: nothing is lost, no freed memory is written, and nothing blocks.

use crate::futures::{LEN, Stopped, arrays, is_over_network, run};
use shmem::{Shmem, Signal, SymSlice};
use std::collections::VecDeque;
use std::time::Duration;

/// The number of gets that are pending at the same time.
const PENDING_GETS: usize = 50;
/// The number of rounds in which futures are dropped while both PEs run.
const ROUNDS: u64 = 300;

/// Vectors that were allocated after the vector of a transfer was dropped. They may have its memory
/// if the library has freed it too early.
#[derive(Default)]
struct AfterDrop(VecDeque<Vec<u64>>);

impl AfterDrop {
    fn allocate(&mut self) {
        self.0.push_back(vec![7; LEN]);
        if self.0.len() > PENDING_GETS {
            self.check_first();
        }
    }

    fn check_first(&mut self) {
        let first = self.0.pop_front().expect("there is one");
        assert_eq!(first, [7; LEN], "a transfer wrote to freed memory");
    }

    fn check_all(mut self) {
        while !self.0.is_empty() {
            self.check_first();
        }
    }
}

/// Starts a get and a wait, neither of which wins against a future that is ready, unless the get is
/// complete at once. Returns true if the get was dropped.
async fn drop_both(shmem: &Shmem, numbers: &SymSlice<u64>, never: &shmem::Sym<Signal>) -> bool {
    let next = shmem.next();
    tokio::select! {
        biased;
        got = numbers.on(next).get_owned(vec![9; LEN]) => {
            assert_eq!(got, vec![next.pe() as u64; LEN]);
            false
        }
        _ = shmem.until(never.ne(0)) => panic!("nobody sets it"),
        () = std::future::ready(()) => true,
    }
}

shmem::test!(select_drops_while_the_peer_is_stopped, pes = 2, |shmem| {
    let arrays = arrays(&shmem);
    let never = shmem.zeroed::<Signal>();
    if shmem.my_pe() == 0 {
        // If a drop waited for the peer, it would be stopped for ever.
        let stopped = is_over_network().then(|| Stopped::new(arrays.pids[1]));
        let mut after = AfterDrop::default();
        let mut n_dropped = 0;
        run(async {
            for _ in 0..PENDING_GETS {
                if drop_both(&shmem, &arrays.numbers, &never).await {
                    n_dropped += 1;
                }
                after.allocate();
            }
        });

        // On the node a get is complete when it has started.
        let expected = if is_over_network() { PENDING_GETS } else { 0 };
        assert_eq!(n_dropped, expected);

        drop(stopped);
        run(shmem.until_quiet());
        after.check_all();
    }
    shmem.barrier_all();
});

shmem::test!(select_loses_nothing, pes = 2, |shmem| {
    let arrays = arrays(&shmem);
    let next = shmem.next();
    // A neighbor may be one round ahead.
    let inbox = [(); 2].map(|()| shmem.array::<u64>(LEN));
    let [arrived, last] = [(); 2].map(|()| shmem.zeroed::<Signal>());
    let mut after = AfterDrop::default();
    run(async {
        for round in 1..=ROUNDS {
            let slot = &inbox[round as usize % 2];
            slot.on(next).put_with(&[round; LEN], arrived.set(round));
            drop_both(&shmem, &arrays.numbers, &last).await;
            after.allocate();

            // The wait is dropped and started again until it wins: usually against a future that is
            // ready, sometimes against one that gives the library time.
            let mut attempts = 0;
            let seen = loop {
                attempts += 1;
                tokio::select! {
                    biased;
                    value = shmem.until(arrived.ge(round)) => break value,
                    () = tokio::task::yield_now(), if attempts % 8 != 0 => {}
                    () = tokio::time::sleep(Duration::from_millis(1)), if attempts % 8 == 0 => {}
                }
            };
            assert!(seen == round || seen == round + 1);
            assert_eq!(slot.to_vec(), [round; LEN]);

            if round % 10 == 0 {
                let got = arrays.numbers.on(next).get_owned(vec![9; LEN]).await;
                assert_eq!(got, [next.pe() as u64; LEN]);
            }
        }
    });

    // A neighbor may still be in its last round, where nobody sets the signal.
    shmem.barrier_all();
    run(async {
        // The waits for it that were dropped have taken nothing from this one.
        last.on(next).set(1);
        assert_eq!(shmem.until(last.ne(0)).await, 1);
        shmem.until_quiet().await;
    });
    after.check_all();
    shmem.barrier_all();
});

#[test]
fn over_networks() {
    crate::over_tcp::passes_over_all("select::select_drops_while_the_peer_is_stopped");
    crate::over_tcp::passes_over_all("select::select_loses_nothing");
}
