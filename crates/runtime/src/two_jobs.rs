//! Two PEs of a job in one process, as values, for unit tests of the protocols between PEs.
//!
//! Each has a mapping of its own of the memory that they share, so both find the other one as PEs
//! in two processes do. They share what is static in the process: neither opens a network, and the
//! status is written to the area of the PE that was made first.

use crate::teams::agreement::Slots;
use rushmem_bootstrap::{JobSession, NodeMap};
use rushmem_collectives::choice::Table;
use rushmem_communication::net::flags::{self, FlagArea};
use rushmem_communication::sync::finalizing::{self, EndlessWait, PeerCheck};
use rushmem_communication::sync::mailbox::{Mailboxes, message_wait};
use rushmem_communication::sync::waits;
use rushmem_explain::status::{
    AwaitedObject, Collective, Finalizing, InFlight, Members, Stage, Status, SymmetricLocation,
    Words,
};
use rushmem_explain::status_slot;
use rushmem_heap::huge_pages::PageSize;
use rushmem_heap::{Layout, NodeMapping, NodeMemory};
use rushmem_pe::call::{Call, call};
use rushmem_pe::constants::SHMEM_THREAD_SINGLE;
use rushmem_pe::job::{CurrentTable, Job};
use rushmem_pe::memory::address::Deltas;
use rushmem_pe::memory::areas::{Areas, MESSAGE};
use rushmem_pe::memory::statics;
use rushmem_pe::settings::Settings;
use rushmem_transport::Pe;
use rustix::fs::{MemfdFlags, memfd_create};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const N_PES: u32 = 2;
pub(crate) const CALL: Call = call!("test");
/// The time after which a test fails because a PE waits in vain.
const LIMIT: Duration = Duration::from_secs(60);

/// A PE with its state.
pub(crate) struct TestPe {
    pub(crate) job: Job,
    pub(crate) area: &'static FlagArea,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) slots: Slots,
}

impl TestPe {
    /// Makes the PE `me` of a job whose memory is in `memory`.
    fn new(me: u32, memory: OwnedFd, has_threads_somewhere: bool) -> TestPe {
        let areas = Areas::new(N_PES, 1);
        let layout = Layout::new(1 << 20, areas.nbytes(), PageSize::Mib2).expect("it fits");
        let mapped = NodeMemory::map(NodeMapping {
            memory: Some(memory),
            layout,
            n_local: N_PES,
            local: me,
            reserved: None,
            pages: None,
            published_bytes: 0,
            statics: statics::own(),
            peers: &[],
        });
        let memory: &NodeMemory = Box::leak(Box::new(mapped.expect("the kernel has memory")));
        let deltas = Deltas::new((0..N_PES).map(|pe| Some(memory.delta(pe))));

        // Long waits write the status to the area of the process, which is that of the first PE.
        flags::set(FlagArea::new(memory, areas, deltas));
        let area: &FlagArea = Box::leak(Box::new(FlagArea::new(memory, areas, deltas)));

        let job = Job {
            me: Pe(me),
            n_pes: N_PES,
            nodes: NodeMap::one_node(N_PES).expect("two PEs are a job"),
            has_statics_apart: false,
            is_alone_on_node: false,
            memory,
            allocator: Mutex::new(None),
            cpus_per_pe: 0,
            is_oversubscribed: true,
            is_oversubscribed_somewhere: true,
            has_equal_heap_addresses: false,
            has_equal_constants: true,
            thread_level: SHMEM_THREAD_SINGLE,
            has_threads_somewhere,
            settings: Settings::read(|_| None).expect("the defaults are valid"),
            algorithms: CurrentTable::new(Table::default()),
            secret: [0; 32],
            is_on_one_stack: true,
            session: Mutex::new(JobSession::alone()),
        };
        TestPe {
            job,
            area,
            mailboxes: Mailboxes::new(area),
            slots: Slots::new(0, 0),
        }
    }

    /// Enters finalize, as the routine does before it waits for the other PE.
    fn enter_finalize(&self, entered: Vec<(u64, u64)>, n_in_flight: u64) {
        self.write_status(Some(Finalizing { entered }), n_in_flight);
        finalizing::enter(&self.job, self.area);
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
        self.area.write_status(&status_slot::encode(&status));
    }

    /// Examines a wait of this PE twice. Returns what either has found.
    fn examined_twice<'a>(&self, subject: &'a AwaitedObject) -> [Option<EndlessWait<'a>>; 2] {
        let mut check = PeerCheck::default();
        [(); 2].map(|()| check.examine(&self.job, self.area, subject))
    }

    /// Tells the other PE that this one has reached a step, and waits until that one has, too.
    fn meet(&self, step: u64) {
        let on_other = self.area.areas().pair_flag(self.job.me);
        self.area.raise(self.other(), on_other, step);
        let own = self.area.areas().pair_flag(self.other());
        waits::until_rung_in(
            &self.job,
            self.area,
            || message_wait(CALL)(self.other()),
            || self.area.flag(own) >= step,
        );
    }

    fn send(&self, tag: u64, first_word: u64) {
        let message = [first_word; MESSAGE];
        self.mailboxes
            .send(&message_wait(CALL), &self.job, self.other(), tag, &message);
    }

    fn receive(&self, tag: u64) -> Option<u64> {
        let message = self
            .mailboxes
            .receive(&message_wait(CALL), &self.job, self.other(), tag);
        message.map(|words| words[0])
    }

    fn other(&self) -> Pe {
        Pe(1 - self.job.me.0)
    }
}

/// Lets two PEs of a job each run `body` in a thread. Returns their results.
pub(crate) fn run<R: Send + 'static>(
    has_threads_somewhere: bool,
    body: impl Fn(&TestPe) -> R + Clone + Send + 'static,
) -> [R; 2] {
    let memory = memfd_create("two jobs", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .expect("the kernel has memory");

    let receivers = [0, 1].map(|me| {
        let memory = memory.try_clone().expect("there are descriptors");
        let pe = TestPe::new(me, memory, has_threads_somewhere);
        let body = body.clone();
        let (sender, receiver) = channel();
        // Not joined, since the thread of a PE that waits in vain does not end.
        thread::spawn(move || sender.send(body(&pe)));
        receiver
    });
    receivers.map(|receiver| receiver.recv_timeout(LIMIT).expect("the PE ends its calls"))
}

#[test]
fn messages_of_other_tags_are_kept_in_their_order() {
    let received = run(true, |pe| match pe.job.me {
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
        pe.send(u64::from(pe.job.me.0), 70);
        pe.receive(u64::from(pe.job.me.0))
    });
    assert_eq!(received, [None, None]);
}

/// Each PE raises a flag of the other one, in turn.
#[test]
fn a_wait_ends_when_the_other_pe_raises_the_flag() {
    run(false, |pe| {
        let flag = pe.area.areas().pair_flag(pe.other());
        let on_other = pe.area.areas().pair_flag(pe.job.me);
        let describe = || message_wait(CALL)(pe.other());
        for turn in 1..=100 {
            if pe.job.me == Pe(0) {
                pe.area.raise(pe.other(), on_other, turn);
            }

            waits::until_rung_in(&pe.job, pe.area, describe, || pe.area.flag(flag) >= turn);
            assert_eq!(pe.area.flag(flag), turn, "the other PE waits for this one");

            if pe.job.me == Pe(1) {
                pe.area.raise(pe.other(), on_other, turn);
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
        members: Members::Strided {
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
        if pe.job.me == Pe(0) {
            for subject in &subjects {
                let found = pe.examined_twice(subject);
                assert_eq!(found, [None, None], "PE 1 is not in another finalize");
            }
        }
        pe.meet(2);

        if pe.job.me == Pe(1) {
            pe.enter_finalize(Vec::new(), 0);
        }
        pe.meet(3);

        if pe.job.me == Pe(0) {
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
        if pe.job.me == Pe(1) {
            pe.enter_finalize(Vec::new(), 1);
        }
        pe.meet(1);

        if pe.job.me == Pe(0) {
            for subject in &waits_for(pe.other()) {
                assert_eq!(pe.examined_twice(subject), [None, None]);
            }
        }
    });
}

#[test]
fn a_collective_is_endless_if_a_member_is_in_finalize_and_has_not_entered_it() {
    run(false, |pe| {
        if pe.job.me == Pe(1) {
            // It has entered three collectives on the team.
            pe.enter_finalize(vec![(5, 9), (7, 3)], 1);
        }
        pe.meet(1);

        if pe.job.me == Pe(0) {
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
