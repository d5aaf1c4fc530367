//! The litmus tests of the memory model (docs/c.md) over the simulated wires, those whose
//! operations the engine carries out. Loads and waits read the memory of the PE, as the CPU of the
//! target does.
//!
//! The calls of the PEs are made in any order. An event of the world happens before the next call
//! now and then, and during each call that waits.
#![allow(unsafe_code)]

use crate::call::amo;
use crate::kinds::{self, WireKind};
use crate::memory::{CONSTANT, at};
use crate::model::Model;
use crate::network::SimulatedNetwork;
use crate::{program, simulation, world};
use fastrand::Rng;
use rushmem_transport::engine::WireEndpoint;
use rushmem_transport::{
    AmoOp, Completion, DestBuf, Endpoint, Error, Get, OldValue, Pe, Put, RemoteAddr, Segment,
    SignalOrder, SourceBuf,
};

/// The number of seeds of each shape over each kind of wire.
const SEEDS: u64 = 150;
/// What a put writes: the words are 0 at first.
static ONE: u64 = 1;
/// The time by which the clock advances if no event is near.
const NAP: u64 = 100_000_000;

/// A word of each PE.
#[derive(Clone, Copy)]
enum Word {
    X,
    /// In another cache line than X.
    Y,
    /// Of the library.
    Flag,
}

use Word::{Flag, X, Y};

impl Word {
    fn addr(self) -> RemoteAddr {
        match self {
            X => at(Segment::Heap, CONSTANT as u64),
            Y => at(Segment::Heap, CONSTANT as u64 + 64),
            Flag => at(Segment::Internal, 0),
        }
    }
}

/// An operation of a PE. The number is that of the target.
#[derive(Clone, Copy)]
enum Step {
    Put(Word, u32),
    PutNbi(Word, u32),
    /// Puts X, with Y as the signal.
    PutSignal(u32),
    Signal(Word, u32),
    /// Signals after all earlier operations.
    Raise(Word, u32),
    Add(Word, u32),
    Fence,
    Quiet,
    /// Notes the value.
    Get(Word, u32),
    GetUntilNew(Word, u32),
    /// Waits for a word of this PE.
    Wait(Word),
    /// Notes a word of this PE.
    Load(Word),
}

use Step::{
    Add, Fence, Get as Fetch, GetUntilNew, Load, PutNbi, PutSignal, Quiet, Raise, Signal, Wait,
};

/// The operations of a few PEs, and an outcome: what each of them notes.
struct Shape {
    name: &'static str,
    pes: &'static [&'static [Step]],
    outcome: &'static [&'static [u64]],
}

const fn put(word: Word, pe: u32) -> Step {
    Step::Put(word, pe)
}

const OLD: &[&[u64]] = &[&[], &[0]];
const OLD_AT_1_OF_3: &[&[u64]] = &[&[], &[0], &[]];
const OLD_AT_2: &[&[u64]] = &[&[], &[], &[0]];
const WAIT_LOAD: &[Step] = &[Wait(Y), Load(X)];
const AWAIT_FLAG: &[Step] = &[Wait(Flag), Load(X)];

/// The outcomes that the standard forbids, those that Rushmem does, and those on which the library
/// relies.
const FORBIDDEN: [Shape; 13] = [
    Shape {
        name: "MP: put, fence, put",
        pes: &[&[put(X, 1), Fence, put(Y, 1)], WAIT_LOAD],
        outcome: OLD,
    },
    Shape {
        name: "MP: put, quiet, put",
        pes: &[&[put(X, 1), Quiet, put(Y, 1)], WAIT_LOAD],
        outcome: OLD,
    },
    Shape {
        name: "MP: put with signal",
        pes: &[&[PutSignal(1)], WAIT_LOAD],
        outcome: OLD,
    },
    Shape {
        name: "MP: nbi put, fence, AMO",
        pes: &[&[PutNbi(X, 1), Fence, Add(Y, 1)], WAIT_LOAD],
        outcome: OLD,
    },
    Shape {
        name: "MP: AMO, fence, nbi put",
        pes: &[&[Add(X, 1), Fence, PutNbi(Y, 1)], WAIT_LOAD],
        outcome: OLD,
    },
    Shape {
        name: "MP of 2 PEs: put, quiet, put | wait, get",
        pes: &[&[put(X, 2), Quiet, put(Y, 1)], &[Wait(Y), Fetch(X, 2)], &[]],
        outcome: OLD_AT_1_OF_3,
    },
    Shape {
        name: "SB: put, quiet, get",
        pes: &[
            &[put(X, 2), Quiet, Fetch(Y, 2)],
            &[put(Y, 2), Quiet, Fetch(X, 2)],
            &[],
        ],
        outcome: &[&[0], &[0], &[]],
    },
    Shape {
        name: "WRC: put | get, put | wait, load",
        pes: &[&[put(X, 2)], &[GetUntilNew(X, 2), put(Y, 2)], WAIT_LOAD],
        outcome: OLD_AT_2,
    },
    Shape {
        name: "ISA2: put with signal | wait, put | wait, get",
        pes: &[
            &[PutSignal(1)],
            &[Wait(Y), put(Y, 2)],
            &[Wait(Y), Fetch(X, 1)],
        ],
        outcome: OLD_AT_2,
    },
    Shape {
        name: "CoRR: put | get, get",
        pes: &[&[put(X, 2)], &[Fetch(X, 2), Fetch(X, 2)], &[]],
        outcome: &[&[], &[1, 0], &[]],
    },
    Shape {
        name: "MP: nbi put, flag",
        pes: &[&[PutNbi(X, 1), Raise(Flag, 1)], AWAIT_FLAG],
        outcome: OLD,
    },
    Shape {
        name: "MP: AMOs, flag",
        pes: &[&[Add(Y, 1), Add(X, 1), Raise(Flag, 1)], AWAIT_FLAG],
        outcome: OLD,
    },
    Shape {
        name: "MP: flag, signal after all",
        pes: &[&[Raise(Flag, 1), Raise(X, 1)], &[Wait(X), Load(Flag)]],
        outcome: OLD,
    },
];

/// Not IRIW: the wires carry out one operation after the other.
const ALLOWED: [Shape; 4] = [
    Shape {
        name: "MP: put, put",
        pes: &[&[put(X, 1), put(Y, 1)], WAIT_LOAD],
        outcome: OLD,
    },
    Shape {
        name: "MP: put, signal",
        pes: &[&[put(X, 1), Signal(Y, 1)], WAIT_LOAD],
        outcome: OLD,
    },
    Shape {
        name: "MP of 2 PEs: put, fence, put | wait, get",
        pes: &[&[put(X, 2), Fence, put(Y, 1)], &[Wait(Y), Fetch(X, 2)], &[]],
        outcome: OLD_AT_1_OF_3,
    },
    Shape {
        name: "SB: put, fence, get",
        pes: &[
            &[put(X, 2), Fence, Fetch(Y, 2)],
            &[put(Y, 2), Fence, Fetch(X, 2)],
            &[],
        ],
        outcome: &[&[0], &[0], &[]],
    },
];

/// A kind of wire, which a seed completes.
type Kind = fn(&mut Rng) -> WireKind;

const KINDS: [(&str, Kind); 5] = [
    ("tcp", kinds::tcp),
    ("ucx_by_cpu", kinds::ucx_by_cpu),
    ("ucx_by_nic", kinds::ucx_by_nic),
    ("ofi_by_cpu", kinds::ofi_by_cpu),
    ("ofi_by_nic", kinds::ofi_by_nic),
];

/// Returns the number of worlds in which the outcome of a shape was seen.
fn count(shape: &Shape, kind: Kind) -> usize {
    let outcomes = (0..SEEDS).map(|seed| outcome(shape, seed, kind));
    outcomes.filter(|noted| noted == shape.outcome).count()
}

/// Runs a shape in the world of a seed. Returns what each PE has noted.
fn outcome(shape: &Shape, seed: u64, kind: Kind) -> Vec<Vec<u64>> {
    let mut rng = Rng::with_seed(seed);
    let kind = kind(&mut rng);
    let mut order = rng.fork();
    world::begin(world::World::new(rng, kind));

    let n_pes = shape.pes.len();
    simulation::add_pes(n_pes as u32, kind);
    for pe in (0..n_pes as u32).map(Pe) {
        simulation::add_actor(pe, 0);
    }
    world::with(|world| {
        for actor in 0..n_pes {
            let pes = (0..n_pes as u32).map(Pe);
            world
                .models
                .extend(pes.map(|pe| Model::new(actor, pe, Vec::new())));
        }
    });

    let mut noted = vec![Vec::new(); n_pes];
    let mut done = vec![0; n_pes];
    while let Some(pe) = draw_unfinished(shape, &done, &mut order) {
        if order.bool() {
            done[pe] += usize::from(carry_out(pe, shape.pes[pe][done[pe]], &mut noted[pe]));
        } else if !world::serve() {
            world::sleep(NAP);
        }
    }

    for pe in 0..n_pes {
        program::finish(pe);
    }
    world::run_all();
    simulation::end();
    noted
}

/// Draws a PE that has steps left.
fn draw_unfinished(shape: &Shape, done: &[usize], order: &mut Rng) -> Option<usize> {
    let unfinished = (0..done.len()).filter(|pe| done[*pe] < shape.pes[*pe].len());
    order.choice(unfinished.collect::<Vec<_>>())
}

/// Carries out a step of a PE. Returns false if the PE must wait and then try it again.
fn carry_out(pe: usize, step: Step, noted: &mut Vec<u64>) -> bool {
    match step {
        Wait(word) => return load(pe, word) != 0,
        Load(word) => noted.push(load(pe, word)),
        Fetch(word, target) => noted.push(get(pe, word, target)),
        GetUntilNew(word, target) => return get(pe, word, target) != 0,
        _ => program::call(pe, "litmus", |endpoint| issue(endpoint, step)).expect("no PE is lost"),
    }
    true
}

fn load(pe: usize, word: Word) -> u64 {
    world::with(|world| {
        let bytes = world.memories[pe].bytes(word.addr(), 8);
        u64::from_ne_bytes(bytes.try_into().expect("8 bytes"))
    })
}

fn get(pe: usize, word: Word, target: u32) -> u64 {
    let mut value = 0u64;
    // SAFETY: `value` outlives the call, which returns when the get is over.
    let local = unsafe { DestBuf::new((&raw mut value).cast(), 8) };
    let get = Get {
        remote: word.addr(),
        local,
        completion: Completion::Now,
    };

    let got = program::call(pe, "get", |endpoint| endpoint.get(Pe(target), get));
    got.expect("no PE is lost");
    value
}

fn issue(endpoint: &mut WireEndpoint<SimulatedNetwork>, step: Step) -> Result<(), Error> {
    match step {
        Step::Put(word, pe) => endpoint.put(Pe(pe), put_of(word, 8, Completion::Now)),
        PutNbi(word, pe) => endpoint.put(Pe(pe), put_of(word, 8, Completion::AtQuiet)),
        PutSignal(pe) => {
            let put = put_of(X, 8, Completion::Now);
            let signal = amo(Y.addr(), AmoOp::Set, 1);
            endpoint.put_signal(Pe(pe), put, signal, SignalOrder::AfterData)
        }
        Signal(word, pe) => {
            let put = put_of(word, 0, Completion::Now);
            let signal = amo(word.addr(), AmoOp::Set, 1);
            endpoint.put_signal(Pe(pe), put, signal, SignalOrder::AfterData)
        }
        Raise(word, pe) => {
            let put = put_of(word, 0, Completion::Now);
            let signal = amo(word.addr(), AmoOp::Set, 1);
            endpoint.put_signal(Pe(pe), put, signal, SignalOrder::AfterAllNext)
        }
        Add(word, pe) => {
            let add = amo(word.addr(), AmoOp::Add, 1);
            endpoint.amo(Pe(pe), add, OldValue::Ignored).map(|_| ())
        }
        Fence => endpoint.fence(),
        Quiet => endpoint.quiet(),
        Fetch(..) | GetUntilNew(..) | Wait(_) | Load(_) => unreachable!("it returns a value"),
    }
}

fn put_of(word: Word, nbytes: usize, completion: Completion) -> Put {
    // SAFETY: the source is a static variable that nothing changes.
    let local = unsafe { SourceBuf::new((&raw const ONE).cast(), nbytes) };
    Put {
        remote: word.addr(),
        local,
        completion,
    }
}

#[test]
fn a_forbidden_outcome_is_never_seen() {
    for shape in &FORBIDDEN {
        for (name, kind) in KINDS {
            let seen = count(shape, kind);
            assert_eq!(seen, 0, "{}, over {name}, of {SEEDS}", shape.name);
        }
    }
}

/// So the test above could see a forbidden one.
#[test]
fn allowed_outcomes_are_seen() {
    for shape in &ALLOWED {
        let seen: usize = KINDS.iter().map(|(_, kind)| count(shape, *kind)).sum();
        assert!(seen > 0, "{}", shape.name);
    }
}
