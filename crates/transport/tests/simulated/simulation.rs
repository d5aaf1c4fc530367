//! Makes a world of a seed, runs it, and checks how it ends.

use crate::actor::{Actor, SharedCounter};
use crate::kinds::WireKind;
use crate::memory::{self, CONSTANT, FLAGS, HEAP, Memory, STATIC, at};
use crate::model::{Cell, Content, Model};
use crate::network;
use crate::program;
use crate::wire::SimulatedWire;
use crate::world::{self, Entry, Event, World};
use fastrand::Rng;
use rushmem_transport::engine::Issuer;
use rushmem_transport::engine::target::RequestTarget;
use rushmem_transport::{AmoWidth, EndpointUser, Pe, RemoteAddr, Segment};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs the world of a seed. Returns its log.
pub fn run(seed: u64, kind: fn(&mut Rng) -> WireKind) -> Vec<Entry> {
    let mut rng = Rng::with_seed(seed);

    let kind = kind(&mut rng);
    world::begin(World::new(rng, kind));

    populate();
    world::run_all();
    check_arrived();

    let n_actors = world::with(|world| world.actors.len());
    for actor in 0..n_actors {
        let pe = world::with(|world| world.actors[actor].pe);
        if world::with(|world| world.is_alive(pe)) {
            program::finish(actor);
        }
    }

    world::run_all();
    check_end();
    end()
}

/// Ends a world in which nothing is left to happen. Returns its log.
pub fn end() -> Vec<Entry> {
    // Dropped outside the world, since endpoints complete what they have issued.
    let endpoints: Vec<_> = world::with(|world| {
        let actors = world.actors.iter_mut();
        actors.map(|actor| actor.endpoint.take()).collect()
    });
    drop(endpoints);

    world::end()
}

/// Adds PEs, their contexts, and the memory that their programs change.
fn populate() {
    let kind = world::with(|world| world.kind);
    let fewest = if kind.proxies { 3 } else { 2 };
    let n_pes = world::with(|world| world.rng.u32(fewest..=4));

    add_pes(n_pes, kind);

    let calls = world::with(|world| world.rng.u32(4..40));
    for pe in (0..n_pes).map(Pe) {
        for _ in 0..world::with(|world| world.rng.u32(1..=2)) {
            add_actor(pe, calls);
        }
    }

    world::with(|world| {
        let mut room = vec![Room::default(); n_pes as usize];
        for actor in 0..world.actors.len() {
            for pe in (0..n_pes).map(Pe) {
                let salt = 10_000 * (1 + actor as u64) + 100 * u64::from(pe.0);
                let memory = &world.memories[pe.index()];
                let cells = cells(&mut world.rng, &mut room[pe.index()], salt, memory);
                world.models.push(Model::new(actor, pe, cells));
            }
        }

        for pe in (0..n_pes).map(Pe) {
            for width in [AmoWidth::Four, AmoWidth::Eight] {
                let room = &mut room[pe.index()];
                let word = room.take(Segment::Heap, 8, width.nbytes(), 0);
                world.counters.push(SharedCounter::new(pe, word, width));
            }
        }

        for actor in 0..world.actors.len() {
            let delay = world.rng.u64(..5_000);
            world.schedule(delay, 0, Event::Act { actor });
        }

        if world.rng.u32(..4) == 0 {
            let pe = Pe(world.rng.u32(..n_pes));
            let delay = world.rng.u64(..100_000);
            world.schedule(delay, 0, Event::Die { pe });
        }
    });
}

/// Adds PEs without contexts.
pub fn add_pes(n_pes: u32, kind: WireKind) {
    world::with(|world| {
        world.memories = (0..n_pes).map(|pe| Memory::new(Pe(pe))).collect();
        for pe in (0..n_pes).map(Pe) {
            let n_wires = world.rng.usize(1..=2);
            let simulated = network::pe(pe, kind, n_wires, &world.memories);
            world.pes.push(Arc::new(simulated));
            world.targets.push(Rc::new(RequestTarget::new(pe)));
        }

        world.services = vec![Default::default(); n_pes as usize];
    });
}

/// Adds a context of a PE.
pub fn add_actor(pe: Pe, calls: u32) {
    let simulated = world::with(|world| Arc::clone(&world.pes[pe.index()]));
    let endpoint = simulated.endpoint(EndpointUser::Context);
    let endpoint = endpoint.expect("there is always one more");
    let wire = number_of(endpoint.issuer());
    world::with(|world| {
        let calls = calls + world.rng.u32(..10);
        world.actors.push(Actor::new(pe, wire, endpoint, calls));
    });
}

fn number_of(issuer: &Issuer<SimulatedWire>) -> usize {
    let mut origin = issuer.origin.lock().expect("nobody panicked");
    origin.wire().number
}

/// The memory of a PE that is not in use: where it starts in each segment.
#[derive(Clone, Default)]
struct Room([usize; Segment::COUNT]);

impl Room {
    /// Returns the address of unused memory, at least `gap` bytes after the memory in use, and
    /// `skew` bytes after a multiple of 8.
    fn take(&mut self, segment: Segment, gap: usize, nbytes: usize, skew: usize) -> RemoteAddr {
        let (first, end) = match segment {
            Segment::Heap => (CONSTANT, HEAP),
            Segment::Internal => (0, FLAGS),
            Segment::Static => (0, STATIC),
        };

        let unused = &mut self.0[segment as usize];
        let start = ((*unused).max(first) + gap).next_multiple_of(8) + skew;
        *unused = start + nbytes;
        assert!(*unused <= end, "the segment {segment:?} is too short");
        at(segment, start as u64)
    }
}

/// Returns the cells that an actor changes in the memory of a PE.
fn cells(rng: &mut Rng, room: &mut Room, salt: u64, memory: &Memory) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |content, blocks: Vec<RemoteAddr>| {
        let salt = salt + cells.len() as u64;
        cells.push(Cell::new(content, blocks, salt, memory));
    };

    let lengths = [
        (Segment::Heap, 1..20),
        (Segment::Heap, 8..9),
        (Segment::Heap, 20..257),
        (Segment::Heap, 257..3000),
        (Segment::Internal, 1..200),
        (Segment::Static, 1..300),
    ];

    for (segment, lengths) in lengths {
        let nbytes = rng.usize(lengths);
        let skew = if rng.bool() { 0 } else { rng.usize(..8) };
        let start = room.take(segment, rng.usize(..64), nbytes, skew);
        add(Content::Bytes { nbytes }, vec![start]);
    }

    // Strided blocks.
    let n = rng.usize(2..8);
    let nbytes = rng.usize(1..40);
    let stride = nbytes + rng.usize(..60);
    let first = room.take(Segment::Heap, 1, n * stride, rng.usize(..8));
    let blocks = (0..n).map(|i| RemoteAddr {
        offset: first.offset + (i * stride) as u64,
        ..first
    });
    add(Content::Bytes { nbytes }, blocks.collect());

    for segment in Segment::ALL {
        let word = room.take(segment, 1, 8, 0);
        add(Content::Word(AmoWidth::Eight), vec![word]);
    }

    let word = room.take(Segment::Heap, 1, 4, 4);
    add(Content::Word(AmoWidth::Four), vec![word]);

    for width in [AmoWidth::Four, AmoWidth::Eight] {
        let word = room.take(Segment::Heap, 1, width.nbytes(), 0);
        add(Content::Counter(width), vec![word]);
    }

    cells
}

/// Checks that everything that was issued has arrived although no call completed it: what calls
/// leave unfinished, the service threads finish.
fn check_arrived() {
    world::with(|world| {
        if world.dead.is_some() {
            return;
        }

        for model in &mut world.models {
            let memory = &world.memories[model.pe.index()];
            model.check_complete(memory, "the service threads have finished the calls");
        }
    });
}

/// Checks the end of a world: its memory, its losses, and that nothing is left in any table.
fn check_end() {
    world::with(|world| {
        for actor in &world.actors {
            actor.check_retired();
        }

        for pe in &world.pes {
            let losses = pe.network().host.losses.load(Ordering::Relaxed);
            let is_lost = world.dead.is_some();
            assert_eq!(losses, u32::from(is_lost), "a loss is reported once");
            assert_eq!(pe.network().first_loss().is_some(), is_lost);
        }

        if world.dead.is_some() {
            for actor in &world.actors {
                let is_reported = actor.loss.is_some() || !world.is_alive(actor.pe);
                assert!(is_reported, "a loss is reported to everybody");
            }
            return;
        }

        for (pe, memory) in world.memories.iter().enumerate() {
            check_memory_at_end(world, Pe(pe as u32), memory);
        }

        for counter in &mut world.counters {
            counter.check_olds();
        }

        for wire in &world.wires {
            assert!(wire.is_idle(), "a wire is not idle: {wire:?}");
        }

        // Only the text shows the private tables of a target.
        for target in &world.targets {
            let streams = format!("{target:?}");
            for table in ["beyond: [", "early: ["] {
                let n_tables = streams.matches(table).count();
                let n_empty = streams.matches(&format!("{table}]")).count();
                assert_eq!(n_tables, n_empty, "requests are left: {streams}");
            }
        }

        for pe in &world.pes {
            let left = pe.issuers().are_any_unfinished();
            assert!(!left, "an issuer is unfinished: {:?}", world.wires);
        }
    });
}

/// Checks that the memory of a PE has what was issued, and nothing else.
fn check_memory_at_end(world: &World, pe: Pe, memory: &Memory) {
    let expected = Memory::new(pe);
    for model in world.models.iter().filter(|model| model.pe == pe) {
        for cell in &model.cells {
            let bytes = cell.bytes(cell.issued);
            for (block, bytes) in cell.blocks.iter().zip(bytes.chunks(cell.nbytes())) {
                expected.set(*block, bytes);
            }
        }
    }

    for counter in world.counters.iter().filter(|counter| counter.pe == pe) {
        let bytes = counter.issued.to_le_bytes();
        expected.set(counter.word, &bytes[..counter.width.nbytes()]);
    }

    for segment in Segment::ALL {
        let start = at(segment, 0);
        let nbytes = memory::nbytes(segment);
        let found = memory.bytes(start, nbytes);
        let expected = expected.bytes(start, nbytes);

        if found == expected {
            continue;
        }

        let wrong = (0..nbytes).find(|offset| found[*offset] != expected[*offset]);
        panic!("byte {wrong:?} of the segment {segment:?} of PE {pe} has another value");
    }
}
