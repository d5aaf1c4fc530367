//! An actor: a context of a PE, the memory of the operations that it has issued, and the results
//! that it expects. Also the counters that all actors share.

use crate::network::SimulatedNetwork;
use rushmem_transport::engine::WireEndpoint;
use rushmem_transport::{AmoWidth, Error, LocalBuf, Pe, RemoteAddr};

/// Bytes on each side of a destination that nothing may change.
pub const GUARD: usize = 16;
/// The contents of memory that no operation uses.
pub const UNUSED: u8 = 0xC5;

/// A context of a PE and its program.
pub struct Actor {
    pub pe: Pe,
    /// The number of its wire, which actors of the PE may share.
    pub wire: usize,
    pub endpoint: Option<WireEndpoint<SimulatedNetwork>>,
    /// The number of calls that it is still to make.
    pub left: u32,
    /// It has made no call. Many begin with a session.
    pub is_new: bool,
    /// The number of fences.
    pub epoch: u32,
    pub is_in_call: bool,
    /// The call that it is in, or has made last.
    pub call: &'static str,
    /// It waits until another actor does not use the wire.
    pub is_waiting: bool,
    pub is_in_session: bool,
    /// The loss that its calls return.
    pub loss: Option<Error>,
    /// Sources that operations may still read.
    pub sources: Vec<(Pe, Vec<u8>)>,
    pub dests: Vec<Dest>,
    /// Memory that no operation uses any more.
    retired: Vec<Vec<u8>>,
}

/// Memory for the result of an operation.
pub struct Dest {
    pub memory: Vec<u8>,
    pub nbytes: usize,
    pub pe: Pe,
    pub expected: Expected,
}

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// The bytes of constant memory at this offset of the heap, in blocks of a length at a
    /// distance.
    Constant {
        offset: u64,
        block: usize,
        stride: usize,
    },
    /// A version of a cell of the actor, this one or a later one.
    Since { cell: usize, version: u32 },
    /// This version of a cell.
    Version { cell: usize, version: u32 },
    /// A value that a shared counter had.
    Count { counter: usize },
}

/// A word to which all actors add 1.
pub struct SharedCounter {
    pub pe: Pe,
    pub word: RemoteAddr,
    pub width: AmoWidth,
    pub issued: u64,
    /// The old values that were returned.
    pub olds: Vec<u64>,
}

impl SharedCounter {
    /// Returns a counter that is 0.
    pub fn new(pe: Pe, word: RemoteAddr, width: AmoWidth) -> SharedCounter {
        SharedCounter {
            pe,
            word,
            width,
            issued: 0,
            olds: Vec::new(),
        }
    }

    /// Checks that no old value was returned twice.
    pub fn check_olds(&mut self) {
        let n = self.olds.len();
        self.olds.sort_unstable();
        self.olds.dedup();
        assert_eq!(self.olds.len(), n, "an old value was returned twice");
    }
}

impl Actor {
    /// Returns an actor that is to make this number of calls.
    pub fn new(pe: Pe, wire: usize, endpoint: WireEndpoint<SimulatedNetwork>, left: u32) -> Actor {
        Actor {
            pe,
            wire,
            endpoint: Some(endpoint),
            left,
            is_new: true,
            epoch: 1,
            is_in_call: false,
            call: "",
            is_waiting: false,
            is_in_session: false,
            loss: None,
            sources: Vec::new(),
            dests: Vec::new(),
            retired: Vec::new(),
        }
    }

    /// Returns memory with these bytes, which an operation on a PE reads.
    pub fn source(&mut self, pe: Pe, bytes: Vec<u8>) -> LocalBuf {
        self.sources.push((pe, bytes));
        let bytes = &mut self.sources.last_mut().expect("just added").1;

        LocalBuf {
            base: bytes.as_mut_ptr(),
            nbytes: bytes.len(),
        }
    }

    /// Returns memory for the result of an operation on a PE.
    pub fn dest(&mut self, pe: Pe, nbytes: usize, expected: Expected) -> LocalBuf {
        self.dests.push(Dest {
            memory: vec![UNUSED; nbytes + 2 * GUARD],
            nbytes,
            pe,
            expected,
        });

        let memory = &mut self.dests.last_mut().expect("just added").memory;
        LocalBuf {
            base: memory[GUARD..].as_mut_ptr(),
            nbytes,
        }
    }

    /// Retires the memory of operations, which use it no more.
    pub fn retire(&mut self, memory: impl IntoIterator<Item = Vec<u8>>) {
        for mut memory in memory {
            memory.fill(UNUSED);
            self.retired.push(memory);
        }
    }

    /// Retires all memory after a loss.
    pub fn retire_all(&mut self) {
        let sources = std::mem::take(&mut self.sources);
        let dests = std::mem::take(&mut self.dests);

        self.retire(sources.into_iter().map(|(_, memory)| memory));
        self.retire(dests.into_iter().map(|dest| dest.memory));
    }

    /// Checks that nothing has changed memory since the operations with it were over.
    pub fn check_retired(&self) {
        for memory in &self.retired {
            assert!(
                memory.iter().all(|byte| *byte == UNUSED),
                "memory of a call changed after its end: {memory:x?}"
            );
        }
    }
}
