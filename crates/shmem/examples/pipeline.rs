//! Two pipelines through all PEs, one in each direction, on one thread: while one waits, the other
//! continues. A block and the signal that it has come are one put. Each PE has room for a few
//! blocks.

use shmem::{Peer, Shmem, Signal, SymArray, SymBox, SymSlice, block_on};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

const BLOCK: usize = 512;
const BLOCKS: u64 = 20;
/// The number of blocks for which a PE has room.
const ROOM: u64 = 3;

/// This PE's stage of a pipeline.
struct Stage<'s> {
    shmem: &'s Shmem,
    before: Option<Peer<'s>>,
    after: Option<Peer<'s>>,
    inbox: SymArray<'s, u64>,
    /// The number of blocks that were put into the inbox of this PE.
    arrived: SymBox<'s, Signal>,
    /// The number of blocks that the next PE has taken from its inbox.
    taken: SymBox<'s, Signal>,
}

impl<'s> Stage<'s> {
    fn new(shmem: &'s Shmem, before: Option<Peer<'s>>, after: Option<Peer<'s>>) -> Stage<'s> {
        let inbox = shmem.array(BLOCK * ROOM as usize);
        Stage {
            shmem,
            before,
            after,
            inbox,
            arrived: shmem.zeroed(),
            taken: shmem.zeroed(),
        }
    }

    fn room(&self, number: u64) -> &SymSlice<u64> {
        let first = BLOCK * (number % ROOM) as usize;
        &self.inbox[first..first + BLOCK]
    }

    /// Waits for the block with this number, and returns it.
    async fn receive(&self, number: u64) -> Vec<u64> {
        let Some(before) = self.before else {
            return vec![number; BLOCK];
        };

        self.shmem.until(self.arrived.gt(number)).await;
        let block = self.room(number).to_vec();
        self.taken.on(before).add(1);
        block
    }

    /// Waits for room on the next PE, and sends a block to it.
    async fn send(&self, number: u64, block: Vec<u64>) {
        let Some(after) = self.after else {
            assert_eq!(block, [number + self.shmem.n_pes() as u64; BLOCK]);
            return;
        };

        // The room of this block is free when the next PE has taken the one `ROOM` blocks before.
        let taken = (number + 1).saturating_sub(ROOM);
        self.shmem.until(self.taken.ge(taken)).await;
        self.room(number)
            .on(after)
            .put_with(&block, self.arrived.add(1));
    }

    /// Receives all blocks, adds 1 to their elements, and sends them.
    async fn run(&self) {
        for number in 0..BLOCKS {
            let mut block = self.receive(number).await;
            block.iter_mut().for_each(|element| *element += 1);
            self.send(number, block).await;
        }
    }
}

/// Polls two futures in turn until both are ready.
async fn both(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let mut one = pin!(one);
    let mut other = pin!(other);
    let mut is_one_pending = true;
    let mut is_other_pending = true;
    poll_fn(|context| {
        // A future must not be polled again when it is ready.
        is_one_pending = is_one_pending && one.as_mut().poll(context).is_pending();
        is_other_pending = is_other_pending && other.as_mut().poll(context).is_pending();
        if is_one_pending || is_other_pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

fn main() {
    let shmem = shmem::init();
    let left = shmem.neighbor(-1);
    let right = shmem.neighbor(1);
    let forth = Stage::new(&shmem, left, right);
    let back = Stage::new(&shmem, right, left);

    block_on(both(forth.run(), back.run()));
    println!(
        "PE {} has passed on {BLOCKS} blocks in each direction",
        shmem.my_pe()
    );
}
