//! Two PEs of a job in one process, as values, for unit tests of the protocols between PEs.
//!
//! Each has a mapping of its own of the memory that they share, so both find the other one as PEs
//! in two processes do. They share what is still static in the process: none opens a network.

#![allow(unsafe_code)]

use crate::own_pe::OwnPe;
use rushmem_bootstrap::{JobSession, NodeMap};
use rushmem_collectives::choice::Table;
use rushmem_communication::access::endpoints::Endpoints;
use rushmem_communication::links::Links;
use rushmem_communication::net::flags::FlagArea;
use rushmem_communication::net::network::Network;
use rushmem_communication::sync::finalizing::{self, EndlessWait, PeerCheck};
use rushmem_communication::sync::mailbox::message_wait;
use rushmem_communication::sync::waits;
use rushmem_explain::status::{
    AwaitedObject, Collective, Finalizing, InFlight, Stage, Status, SymmetricLocation, Words,
};
use rushmem_explain::status_slot;
use rushmem_heap::huge_pages::PageSize;
use rushmem_heap::{Layout, NodeMapping, NodeMemory};
use rushmem_pe::call::{Call, call};
use rushmem_pe::constants::SHMEM_THREAD_SINGLE;
use rushmem_pe::job::members::Members;
use rushmem_pe::job::{CurrentTable, Job};
use rushmem_pe::memory::address::{AddressMap, Deltas, Images};
use rushmem_pe::memory::areas::{Areas, MESSAGE};
use rushmem_pe::memory::statics;
use rushmem_pe::settings::Settings;
use rushmem_system::lock::lock;
use rushmem_transport::{Amos, Directory, EndpointUser, Host, Open, Pe, PeRecord, Segment};
use rushmem_transport_tcp::PROVIDER;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

const N_PES: u32 = 2;
pub(crate) const CALL: Call = call!("test");
/// The time after which a test fails because a PE waits in vain.
const LIMIT: Duration = Duration::from_secs(15);

/// A job in this process, all of whose PEs have the memory of the others mapped.
#[derive(Clone)]
pub(crate) struct TestJob {
    pub(crate) n_pes: u32,
    /// The sizes of its nodes, by which algorithms are chosen.
    pub(crate) nodes: Vec<u32>,
    /// Rows by which algorithms are chosen, before those that are built in.
    pub(crate) rows: String,
    pub(crate) has_threads_somewhere: bool,
    /// True if the PEs map only the memory of their node, and reach the others over loopback.
    pub(crate) is_over_tcp: bool,
}

impl TestJob {
    /// Returns a job on one node.
    pub(crate) fn of(n_pes: u32) -> TestJob {
        TestJob {
            n_pes,
            nodes: vec![n_pes],
            rows: String::new(),
            has_threads_somewhere: false,
            is_over_tcp: false,
        }
    }
}

/// Makes the PE `me` of a job whose memory is in `memory`.
fn new_pe(me: u32, job: &TestJob, memory: OwnedFd) -> &'static OwnPe {
    let n_pes = job.n_pes;
    let mut table = Table::default();
    table.read(&job.rows).expect("the rows of a test are valid");
    table.complete();
    let areas = Areas::new(n_pes, 1);
    let layout = Layout::new(1 << 20, areas.nbytes(), PageSize::Mib2).expect("it fits");
    let mapped = NodeMemory::map(NodeMapping {
        memory: Some(memory),
        layout,
        n_local: n_pes,
        local: me,
        reserved: None,
        pages: None,
        published_bytes: 0,
        statics: statics::own(),
        peers: &[],
    });
    let memory: &NodeMemory = Box::leak(Box::new(mapped.expect("the kernel has memory")));

    let nodes = NodeMap::from_runs((0..).zip(job.nodes.iter().copied())).expect("no node is empty");
    let is_mapped = |pe| !job.is_over_tcp || nodes.node_of(pe) == nodes.node_of(me);
    let leaked = |table| Deltas::of_table(Box::leak(table));
    let mapped = (0..n_pes).map(|pe| is_mapped(pe).then(|| memory.delta(pe)));
    let deltas = leaked(Deltas::table(mapped));
    let is_alone_on_node = nodes.size(nodes.node_of(me)) == 1;
    let map: &AddressMap = Box::leak(Box::new(AddressMap::closed()));
    let none = leaked(Deltas::table((0..n_pes).map(|_| None)));
    let images_of = |segment, deltas| -> &'static Images {
        Box::leak(Box::new(Images::new(segment, deltas)))
    };
    map.publish(deltas, none);
    map.open_heap(memory.heap(), layout.heap_bytes());

    let job = Job {
        me: Pe(me),
        n_pes,
        nodes,
        has_statics_apart: false,
        is_alone_on_node,
        map,
        images: [
            images_of(Segment::Heap, deltas),
            images_of(Segment::Static, none),
        ],
        memory,
        allocator: Mutex::new(None),
        cpus_per_pe: 0,
        is_oversubscribed: true,
        is_oversubscribed_somewhere: true,
        has_equal_heap_addresses: false,
        has_equal_constants: true,
        thread_level: SHMEM_THREAD_SINGLE,
        has_threads_somewhere: job.has_threads_somewhere,
        settings: Settings::read(|_| None).expect("the defaults are valid"),
        algorithms: CurrentTable::new(Box::leak(Box::new(table))),
        secret: [0; 32],
        is_on_one_stack: true,
        session: Mutex::new(JobSession::alone()),
    };
    let net: &Net = Box::leak(Box::new(Net::new(Box::leak(Endpoints::boxed()))));
    let area = FlagArea::new(memory, areas, images_of(Segment::Internal, deltas), net);
    let world = Members::world(n_pes);
    let links = Box::leak(Box::new(Links::new(job, area, net)));
    Box::leak(Box::new(OwnPe::new(
        links,
        [world.clone(), world.clone(), world],
    )))
}

/// A PE of a job of two, with the steps of the tests below.
#[derive(Clone, Copy)]
pub(crate) struct TestPe(pub(crate) &'static OwnPe);

impl Deref for TestPe {
    type Target = OwnPe;

    fn deref(&self) -> &OwnPe {
        self.0
    }
}

impl TestPe {
    /// Enters finalize, as the routine does before it waits for the other PE.
    fn enter_finalize(&self, entered: Vec<(u64, u64)>, n_in_flight: u64) {
        self.write_status(Some(Finalizing { entered }), n_in_flight);
        finalizing::enter(self.job(), self.area());
    }

    fn write_status(&self, finalizing: Option<Finalizing>, n_in_flight: u64) {
        let status = Status {
            in_flight: Some(InFlight {
                n: n_in_flight,
                ..InFlight::default()
            }),
            finalizing,
            ..Status::new(0, Stage::Initialized)
        };
        self.area().write_status(&status_slot::encode(&status));
    }

    /// Examines a wait of this PE twice. Returns what either has found.
    fn examined_twice<'a>(&self, subject: &'a AwaitedObject) -> [Option<EndlessWait<'a>>; 2] {
        let mut check = PeerCheck::default();
        [(); 2].map(|()| check.examine(self.job(), self.area(), subject))
    }

    /// Tells the other PE that this one has reached a step, and waits until that one has, too.
    fn meet(&self, step: u64) {
        let on_other = self.area().areas().pair_flag(self.job().me);
        self.area().raise(self.other(), on_other, step);
        let own = self.area().areas().pair_flag(self.other());
        waits::until_rung(
            self.links,
            &[],
            || message_wait(CALL)(self.other()),
            || self.area().flag(own) >= step,
        );
    }

    fn send(&self, tag: u64, first_word: u64) {
        let message = [first_word; MESSAGE];
        self.links
            .send_message(&message_wait(CALL), self.other(), tag, &message);
    }

    fn receive(&self, tag: u64) -> Option<u64> {
        let message = self
            .links
            .receive_message(&message_wait(CALL), self.other(), tag);
        message.map(|words| words[0])
    }

    fn area(&self) -> &'static FlagArea {
        &self.0.links.area
    }

    fn other(&self) -> Pe {
        Pe(1 - self.job().me.0)
    }
}

/// Where the PEs of a job exchange what they announce of their transports.
struct Meeting {
    announced: Mutex<Vec<Option<(Vec<u8>, [Vec<u8>; Segment::COUNT])>>>,
    all: Barrier,
}

impl Meeting {
    fn of(n_pes: u32) -> Meeting {
        Meeting {
            announced: Mutex::new(vec![None; n_pes as usize]),
            all: Barrier::new(n_pes as usize),
        }
    }

    /// Opens and connects the transport of a PE, as `start::connect` does by the session.
    fn connect(&self, pe: &'static OwnPe) {
        let job = pe.job();
        let open = Open {
            pe: job.me,
            n_pes: job.n_pes,
            secret: job.secret,
            one_machine: true,
            cpus_per_pe: 0,
            amos: Amos::Software,
            part: None,
            host: Arc::new(TestHost(pe)),
        };
        let mut transport = (PROVIDER.open)(&open).expect("loopback works");
        let layout = job.memory.layout();
        let mut keys: [Vec<u8>; Segment::COUNT] = Default::default();
        for (segment, base, nbytes) in [
            (Segment::Heap, job.memory.heap(), layout.heap_bytes()),
            (
                Segment::Internal,
                job.memory.internal(),
                layout.internal_bytes(),
            ),
        ] {
            // SAFETY: the memory is mapped for the life of the process.
            let key = unsafe { transport.register(segment, base, nbytes) };
            keys[segment as usize] = key.expect("TCP registers all").0;
        }
        lock(&self.announced)[job.me.index()] = Some((transport.address(), keys));
        self.all.wait();

        let announced = lock(&self.announced);
        let all: Vec<_> = announced.iter().flatten().collect();
        let records = all.iter().map(|(address, keys)| PeRecord {
            address,
            keys: keys.each_ref().map(Vec::as_slice),
        });
        let directory = Arc::new(Directory::new(Directory::encode(records)));
        drop(announced);
        transport.connect(directory).expect("loopback works");
        let endpoint = transport.endpoint(EndpointUser::Runtime);
        pe.links
            .endpoints
            .set_of_library(endpoint.expect("there is one"));
        pe.links.network.open(transport);
        self.all.wait();
    }

    fn close(&self, pe: &'static OwnPe) {
        pe.links.endpoints.complete(CALL);
        self.all.wait();
        pe.links.close_network();
    }
}

/// The host of a PE's transport.
struct TestHost(&'static OwnPe);

impl Host for TestHost {
    fn arrived(&self, place: u8) {
        assert_eq!(place, 0, "there are no proxies");
        self.0.links.area.ring(self.0.job().me);
    }
}

/// Lets two PEs of a job each run `body` in a thread. Returns their results.
pub(crate) fn run<R: Send + 'static>(
    has_threads_somewhere: bool,
    body: impl Fn(&TestPe) -> R + Clone + Send + 'static,
) -> [R; 2] {
    let job = TestJob {
        has_threads_somewhere,
        ..TestJob::of(N_PES)
    };
    let results = run_job(&job, move |pe| body(&TestPe(pe)));
    results.try_into().ok().expect("one of each PE")
}

/// Lets the PEs of a job each run `body` in a thread. Returns their results.
pub(crate) fn run_job<R: Send + 'static>(
    job: &TestJob,
    body: impl Fn(&'static OwnPe) -> R + Clone + Send + 'static,
) -> Vec<R> {
    let memory = memfd_create(
        "several PEs",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )
    .expect("the kernel has memory");

    let meeting = Arc::new(Meeting::of(job.n_pes));
    let is_over_tcp = job.is_over_tcp;
    let receivers: Vec<Receiver<R>> = (0..job.n_pes)
        .map(|me| {
            let memory = memory.try_clone().expect("there are descriptors");
            let pe = new_pe(me, job, memory);
            let body = body.clone();
            let (sender, receiver) = channel();
            // Not joined, since the thread of a PE that waits in vain does not end.
            let meeting = meeting.clone();
            thread::spawn(move || {
                if is_over_tcp {
                    meeting.connect(pe);
                }
                let result = body(pe);
                if is_over_tcp {
                    meeting.close(pe);
                }
                sender.send(result)
            });
            receiver
        })
        .collect();
    let result =
        |receiver: Receiver<R>| receiver.recv_timeout(LIMIT).expect("the PE ends its calls");
    receivers.into_iter().map(result).collect()
}

#[test]
fn messages_of_other_tags_are_kept_in_their_order() {
    let received = run(true, |pe| match pe.job().me {
        Pe(0) => {
            pe.send(7, 70);
            pe.send(7, 71);
            pe.send(8, 80);
            Vec::new()
        }
        _ => [8, 7, 7].map(|tag| pe.receive(tag)).to_vec(),
    });
    assert_eq!(received[1], [Some(80), Some(70), Some(71)]);
}

/// A mailbox has room for one message, so each PE waits while the other one sends, too.
#[test]
fn both_send_before_they_receive() {
    let received = run(true, |pe| {
        for word in 0..100 {
            pe.send(7, word);
        }
        (0..100).map(|_| pe.receive(7)).collect::<Vec<_>>()
    });
    let all: Vec<_> = (0..100).map(Some).collect();
    assert_eq!(received, [all.clone(), all]);
}

#[test]
fn a_message_of_another_agreement_ends_the_wait_unless_there_are_threads() {
    let received = run(false, |pe| {
        pe.send(u64::from(pe.job().me.0), 70);
        pe.receive(u64::from(pe.job().me.0))
    });
    assert_eq!(received, [None, None]);
}

/// Each PE raises a flag of the other one, in turn.
#[test]
fn a_wait_ends_when_the_other_pe_raises_the_flag() {
    run(false, |pe| {
        let flag = pe.area().areas().pair_flag(pe.other());
        let on_other = pe.area().areas().pair_flag(pe.job().me);
        let describe = || message_wait(CALL)(pe.other());
        for turn in 1..=100 {
            if pe.job().me == Pe(0) {
                pe.area().raise(pe.other(), on_other, turn);
            }

            waits::until_rung(pe.links, &[], describe, || pe.area().flag(flag) >= turn);
            assert_eq!(
                pe.area().flag(flag),
                turn,
                "the other PE waits for this one"
            );

            if pe.job().me == Pe(1) {
                pe.area().raise(pe.other(), on_other, turn);
            }
        }
    });
}

/// Returns waits that only the PE `other` can end: for its message, for a lock behind it, and for a
/// word that no third PE writes.
fn waits_for(other: Pe) -> [AwaitedObject; 3] {
    let word = SymmetricLocation::Static { address: 0 };
    [
        AwaitedObject::Message { from: other.0 },
        AwaitedObject::Lock {
            lock: word,
            behind: Some(other.0),
        },
        AwaitedObject::Words(Words {
            words: Vec::new(),
            more: 0,
            all: false,
            comparison: "==".to_owned(),
        }),
    ]
}

/// Returns the `nth` collective on the team 7 of both PEs.
fn collective(nth: u64) -> AwaitedObject {
    AwaitedObject::Collective(Collective {
        team: "a team".to_owned(),
        is_active_set: false,
        number: 7,
        members: rushmem_explain::status::Members::Strided {
            start: 0,
            stride: 1,
            n: N_PES,
        },
        nth,
        awaited: None,
    })
}

#[test]
fn a_wait_for_a_pe_in_finalize_is_endless_once_it_was_examined_twice() {
    run(false, |pe| {
        // Both have been in a finalize before.
        pe.enter_finalize(Vec::new(), 0);
        pe.meet(1);

        let subjects = waits_for(pe.other());
        if pe.job().me == Pe(0) {
            for subject in &subjects {
                let found = pe.examined_twice(subject);
                assert_eq!(found, [None, None], "PE 1 is not in another finalize");
            }
        }
        pe.meet(2);

        if pe.job().me == Pe(1) {
            pe.enter_finalize(Vec::new(), 0);
        }
        pe.meet(3);

        if pe.job().me == Pe(0) {
            let found = subjects
                .each_ref()
                .map(|subject| pe.examined_twice(subject));
            let endless = [
                EndlessWait::Message(1),
                EndlessWait::Lock(1),
                EndlessWait::Words,
            ];
            assert_eq!(found, endless.map(|wait| [None, Some(wait)]));
        }
    });
}

#[test]
fn a_pe_in_finalize_may_still_end_a_wait_by_operations_in_flight() {
    run(false, |pe| {
        if pe.job().me == Pe(1) {
            pe.enter_finalize(Vec::new(), 1);
        }
        pe.meet(1);

        if pe.job().me == Pe(0) {
            for subject in &waits_for(pe.other()) {
                assert_eq!(pe.examined_twice(subject), [None, None]);
            }
        }
    });
}

#[test]
fn a_collective_is_endless_if_a_member_is_in_finalize_and_has_not_entered_it() {
    run(false, |pe| {
        if pe.job().me == Pe(1) {
            // It has entered three collectives on the team.
            pe.enter_finalize(vec![(5, 9), (7, 3)], 1);
        }
        pe.meet(1);

        if pe.job().me == Pe(0) {
            assert_eq!(pe.examined_twice(&collective(3)), [None, None]);

            let next = collective(4);
            for endless in pe.examined_twice(&next) {
                let Some(EndlessWait::Collective(of, missing)) = endless else {
                    panic!("{endless:?}");
                };
                assert_eq!((of.nth, missing), (4, vec![1]));
            }
        }
    });
}

/// Each PE looks at the other one while both are in the same finalize, where each wait ends.
#[test]
fn no_wait_in_the_finalize_of_both_pes_is_endless() {
    run(false, |pe| {
        for turn in 1..=100 {
            pe.enter_finalize(vec![(7, 0)], 0);
            let [message, ..] = waits_for(pe.other());
            for subject in [message, collective(turn)] {
                let found = pe.examined_twice(&subject);
                assert_eq!(found, [None, None], "in finalize {turn}");
            }
            pe.meet(turn);
        }
    });
}
