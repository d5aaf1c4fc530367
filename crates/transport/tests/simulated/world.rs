//! The simulated world: its events, in the order of their times, and the state of all PEs. It is
//! one per thread, since the wires that the engine owns, and the code that it calls, share it.
//!
//! A wait of a call runs the next events, among them calls of other PEs, which may wait as well. So
//! a call can end only after those that began during its last wait. No wait of the engine depends
//! on the program of another PE, so this cannot block.

use crate::actor::{Actor, SharedCounter};
use crate::call::Habits;
use crate::clock;
use crate::kinds::WireKind;
use crate::memory::Memory;
use crate::model::Model;
use crate::network::{self, SimulatedPe};
use crate::operation::{Fetch, Operation, Work};
use crate::program;
use crate::queue::WireState;
use fastrand::Rng;
use rushmem_transport::Pe;
use rushmem_transport::engine::driver::Driver;
use rushmem_transport::engine::target::RequestTarget;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

/// Events that are later than this by nanoseconds run only when a thread sleeps.
const HORIZON: u64 = 3_000_000;
/// The time without progress after which a wait will never end.
const DEADLOCK: u64 = 60_000_000_000;
/// The longest sleep of a service thread that must poll.
const LONGEST_SLEEP: u64 = 2_000_000_000;
/// The time without progress after which a service thread polls no more, so that a world ends.
const LAST_LOOK: u64 = 5_000_000_000;
/// Calls of wires without an event after which a call will never end.
const LIVELOCK: u32 = 200_000;

/// An event.
#[derive(Debug)]
pub enum Event {
    /// The first operation in the queue of a wire to a PE leaves.
    Leave { wire: usize, pe: Pe },
    /// A part of a write arrives: these of its bytes.
    Piece {
        operation: usize,
        from: usize,
        to: usize,
    },
    /// A read, an atomic operation or a request arrives.
    Arrive { operation: usize },
    /// The data of a read, or an old value, arrive at the origin.
    Return { operation: usize, bytes: Vec<u8> },
    /// The completion of an operation arrives at the origin.
    Over { operation: usize },
    /// A flush arrives, after what it covers.
    Flush { wire: usize, pe: Pe, last: u64 },
    /// A flush has ended, which covers the first `last` operations of the wire to the PE.
    Flushed { wire: usize, pe: Pe, last: u64 },
    /// A part of the data that a target fetches arrives.
    Fetched {
        fetch: usize,
        from: usize,
        to: usize,
    },
    /// A reply arrives.
    Reply {
        wire: usize,
        bytes: Vec<u8>,
        follow: Vec<u8>,
    },
    /// A connection is established.
    Connected { wire: usize, pe: Pe },
    /// The queues of a wire have room again.
    Room { wire: usize },
    /// The service thread of a PE runs.
    Service { pe: Pe },
    /// A program makes its next call.
    Act { actor: usize },
    /// A PE dies.
    Die { pe: Pe },
    /// The network of a PE notices that another one died.
    Notice { pe: Pe },
    /// The runtime of a PE learns that another one died.
    Learn { pe: Pe },
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub time: u64,
    pub what: &'static str,
    pub numbers: [u64; 3],
}

struct Scheduled {
    time: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

/// The service thread of a PE.
#[derive(Clone, Copy, Default)]
pub struct ServiceThread {
    is_scheduled: bool,
    /// The length of its next sleep, if it must poll again.
    sleep: u64,
}

/// How the network shows that a PE died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// Operations to it fail, and wires know which connection broke.
    Broken,
    /// Operations to it fail, and so do polls while any are in flight.
    Failed,
    /// Only a check shows it.
    Silent,
}

/// The state of the world.
pub struct World {
    pub rng: Rng,
    pub kind: WireKind,
    pub log: Vec<Entry>,
    /// The memory of each PE.
    pub memories: Vec<Memory>,
    pub pes: Vec<Arc<SimulatedPe>>,
    /// The target of the requests to each PE.
    pub targets: Vec<Rc<RequestTarget<usize, usize>>>,
    pub wires: Vec<WireState>,
    pub operations: Vec<Operation>,
    pub fetches: Vec<Fetch>,
    pub actors: Vec<Actor>,
    /// The operations of each actor on each PE.
    pub models: Vec<Model>,
    pub counters: Vec<SharedCounter>,
    pub habits: Habits,
    /// The service thread of each PE.
    pub services: Vec<ServiceThread>,
    /// The PE that died.
    pub dead: Option<Pe>,
    pub symptom: Symptom,
    /// One in this number of delays is longer than most.
    pub haste: u32,
    /// Some delays are so long that threads sleep. This is so in few worlds, since each sleep of
    /// the engine begins with yields, which take long on a busy machine.
    has_long_delays: bool,
    events: BinaryHeap<Reverse<Scheduled>>,
    n_events: u64,
    /// The time of the last event that was more than a look of a service thread.
    progress: u64,
    /// Calls of wires since the last event.
    calls: u32,
}

thread_local! {
    static WORLD: RefCell<Option<ManuallyDrop<World>>> = const { RefCell::new(None) };
}

/// Calls `work` with the world. The engine must not be called within.
#[track_caller]
pub fn with<T>(work: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| work(world.as_mut().expect("a world was begun")))
}

/// Begins a world, in which nothing has happened.
pub fn begin(world: World) {
    clock::reset();
    WORLD.set(Some(ManuallyDrop::new(world)));
}

/// Ends the world, whose endpoints were dropped. Returns its log.
pub fn end() -> Vec<Entry> {
    let world = WORLD.take().expect("a world was begun");
    ManuallyDrop::into_inner(world).log
}

/// Gives up a world in which a check has failed, and returns its log. Nothing of it is dropped,
/// since its endpoints would complete their operations.
pub fn give_up() -> Vec<Entry> {
    let mut world = WORLD.take().expect("a world was begun");
    std::mem::take(&mut world.log)
}

impl World {
    /// Returns a world without PEs.
    pub fn new(mut rng: Rng, kind: WireKind) -> World {
        let symptoms = [Symptom::Broken, Symptom::Failed, Symptom::Silent];
        World {
            symptom: symptoms[rng.usize(..3)],
            haste: [3, 10, 30][rng.usize(..3)],
            has_long_delays: rng.u32(..8) == 0,
            kind,
            log: Vec::new(),
            memories: Vec::new(),
            pes: Vec::new(),
            targets: Vec::new(),
            wires: Vec::new(),
            operations: Vec::new(),
            fetches: Vec::new(),
            actors: Vec::new(),
            models: Vec::new(),
            counters: Vec::new(),
            habits: Habits::draw(&mut rng),
            rng,
            services: Vec::new(),
            dead: None,
            events: BinaryHeap::new(),
            n_events: 0,
            progress: 0,
            calls: 0,
        }
    }

    /// Adds an entry to the log.
    pub fn log(&mut self, what: &'static str, numbers: [u64; 3]) {
        let time = clock::now();
        self.log.push(Entry {
            time,
            what,
            numbers,
        });
    }

    /// Schedules an event after a delay, but not before a time. Returns its time.
    pub fn schedule(&mut self, delay: u64, not_before: u64, event: Event) -> u64 {
        let time = (clock::now() + delay).max(not_before);
        self.n_events += 1;
        self.events.push(Reverse(Scheduled {
            time,
            number: self.n_events,
            event,
        }));
        time
    }

    /// Draws the time that something takes on the network.
    pub fn delay(&mut self) -> u64 {
        match self.rng.u32(..1000) {
            0..2 if self.has_long_delays => 1_500_000_000,
            0..10 => self.rng.u64(100_000..2_500_000),
            n if n.is_multiple_of(self.haste) => self.rng.u64(5_000..100_000),
            _ => self.rng.u64(100..5_000),
        }
    }

    /// Has the service thread of a PE run soon if calls have left anything unfinished.
    pub fn wake_service(&mut self, pe: Pe) {
        let has_work =
            self.pes[pe.index()].issuers().are_any_unfinished() || self.collects_anything(pe);

        let service = &mut self.services[pe.index()];
        if has_work && !std::mem::replace(&mut service.is_scheduled, true) {
            service.sleep = 50_000;
            let delay = self.rng.u64(1_000..60_000);
            self.schedule(delay, 0, Event::Service { pe });
        }
    }

    /// Returns true if a PE is alive.
    pub fn is_alive(&self, pe: Pe) -> bool {
        self.dead != Some(pe)
    }

    /// Records that a program goes on.
    pub fn make_progress(&mut self) {
        self.calls = 0;
        self.progress = clock::now();
    }

    /// Counts a call of a wire.
    pub fn count_call(&mut self) {
        self.calls += 1;
        assert!(
            self.calls < LIVELOCK,
            "a call goes on without any event: {}",
            self.waiting()
        );
    }

    /// Removes the next event, unless it is later than `until`.
    fn pop(&mut self, until: u64) -> Option<Event> {
        if self.events.peek()?.0.time > until {
            return None;
        }
        let Reverse(Scheduled { time, event, .. }) = self.events.pop()?;
        clock::advance_to(time);

        if !matches!(event, Event::Service { .. }) {
            self.make_progress();
        }
        Some(event)
    }

    /// Fails if nothing has happened for long, so that what a thread waits for never will.
    fn check_deadlock(&self) {
        assert!(
            clock::now() - self.progress < DEADLOCK,
            "no event is left, but calls wait: {}",
            self.waiting()
        );
    }

    /// Returns the actors that are in calls, for messages.
    fn waiting(&self) -> String {
        let mut waiting = Vec::new();
        for actor in self.actors.iter().filter(|actor| actor.is_in_call) {
            waiting.push(format!("PE {} in {}", actor.pe, actor.call));
        }
        waiting.join(", ")
    }
}

/// Runs the next event, if it is near. Returns false if it is not.
pub fn serve() -> bool {
    run_next(clock::now() + HORIZON)
}

/// Advances the time to the next event, but by `at_most` nanoseconds.
pub fn sleep(at_most: u64) {
    with(|world| {
        let next = world.events.peek().map(|next| next.0.time);
        let end = clock::now() + at_most;
        clock::advance_to(next.map_or(end, |next| next.min(end)));

        world.calls = 0;
        world.check_deadlock();
    });
}

/// Runs all events.
pub fn run_all() {
    while run_next(u64::MAX) {}
}

fn run_next(until: u64) -> bool {
    let Some(event) = with(|world| world.pop(until)) else {
        return false;
    };

    match event {
        Event::Leave { wire, pe } => with(|world| world.leave(wire, pe)),
        Event::Piece {
            operation,
            from,
            to,
        } => with(|world| world.store_piece(operation, from..to)),
        Event::Arrive { operation } => match with(|world| world.operations[operation].work) {
            Work::Request { .. } => network::take_request(operation),
            _ => with(|world| world.execute(operation)),
        },
        Event::Return { operation, bytes } => with(|world| world.take_result(operation, &bytes)),
        Event::Over { operation } => with(|world| world.complete(operation)),
        Event::Flush { wire, pe, last } => with(|world| world.answer_flush(wire, pe, last)),
        Event::Flushed { wire, pe, last } => with(|world| world.end_flush(wire, pe, last)),
        Event::Fetched { fetch, from, to } => network::take_fetched(fetch, from..to),
        Event::Reply {
            wire,
            bytes,
            follow,
        } => network::take_reply(wire, &bytes, follow),
        Event::Connected { wire, pe } => with(|world| world.connect(wire, pe)),
        Event::Room { wire } => with(|world| world.wake_service(world.wires[wire].pe)),
        Event::Service { pe } => run_service(pe),
        Event::Act { actor } => program::act(actor),
        Event::Die { pe } => network::die(pe),
        Event::Notice { pe } => with(|world| world.notice(pe)),
        Event::Learn { pe } => network::learn_of_death(pe),
    }
    true
}

/// Lets the service thread of a PE poll once. It polls again later if it must, less often if it
/// finds no work; otherwise the next event of the PE's wires wakes it.
fn run_service(pe: Pe) {
    let simulated = with(|world| {
        world.log("service", [pe.0.into(), 0, 0]);
        world.release_collected(pe);
        world.services[pe.index()].is_scheduled = false;
        Arc::clone(&world.pes[pe.index()])
    });

    let must_poll = simulated.network().flush(simulated.issuers());
    with(|world| {
        let is_over = clock::now() - world.progress > LAST_LOOK || !world.is_alive(pe);
        let service = &mut world.services[pe.index()];
        service.sleep = (2 * service.sleep).min(LONGEST_SLEEP);

        if must_poll && !service.is_scheduled && !is_over {
            service.is_scheduled = true;
            let sleep = service.sleep;
            world.schedule(sleep, 0, Event::Service { pe });
        }
    });
}
