//! Tasks that await the completion of what an origin has issued, while calls use the origin and the
//! service thread polls it and sleeps. The network and the origin are models; the lock of the
//! origin, the list of unfinished ones and the tasks are those of `transport`.

#[expect(dead_code, reason = "only what concerns tasks is tried")]
#[path = "../../../crates/transport/src/engine/issuer.rs"]
mod issuer;
mod origin;
#[path = "../../../crates/transport/src/engine/tasks.rs"]
mod tasks;
mod wire;

use crate::EndpointUser;
use crate::Error;
use crate::primitive;
use crate::task::Task;
use issuer::{Issuer, Issuers, WireLimit};
use loom::model::Builder;
use loom::thread;
use origin::Origin;
use std::sync::Arc;
use std::task::Waker;
use wire::{Network, NetworkPe, TestWire, WireNetwork};

/// What completes operations without a thread that waits for them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CompletedBy {
    Network,
    /// Polls, so the issuer is in the list of unfinished ones from the start.
    Polls,
}

/// What another thread does once the network has carried out the operation.
#[derive(Clone, Copy)]
enum Then {
    Nothing,
    /// It waits for something else.
    Waits,
    /// It asks whether the operations of the same origin are complete.
    Asks,
}

/// A PE with an origin that has issued an operation.
struct Pe {
    network: Arc<Network>,
    issuers: Issuers<TestWire>,
    issuer: Arc<Issuer<TestWire>>,
}

impl Pe {
    fn new(completed_by: CompletedBy) -> Pe {
        let network = Arc::<Network>::default();
        let issuers = Issuers::default();
        let must_be_polled = completed_by == CompletedBy::Polls;
        let open = || Ok(Origin::new(must_be_polled, Arc::clone(&network)));
        let limit = WireLimit {
            n_wires: 1,
            set_by: "",
        };
        let issuer = issuers.issuer(EndpointUser::Context, limit, open);

        Pe {
            network,
            issuers,
            issuer: issuer.expect("it is made"),
        }
    }

    /// Performs a call that does `what` with the origin.
    fn call<T>(&self, what: impl FnOnce(&mut Origin<TestWire>) -> Result<T, Error>) -> T {
        let mut origin = self.issuer.lock();
        let done = what(&mut origin);
        let done = self.issuers.release(&self.issuer, origin, done);
        done.expect("no PE is lost")
    }

    fn complete(&self, then: Then) {
        self.network.complete();
        match then {
            Then::Nothing => {}
            Then::Waits => {
                self.issuers.finish_in_wait();
            }
            Then::Asks => {
                self.call(Origin::is_quiet);
            }
        }
    }

    /// Runs the service thread until the PE leaves the job.
    fn serve(&self) {
        let NetworkPe { state, .. } = self.network.local();

        while !state.is_closing() {
            state.wakeup.clear_pending();
            if self.issuers.finish_in_service() {
                thread::yield_now();
            } else {
                state.sleep();
            }
            state.wakeup.set_pending();
        }
    }
}

/// One thread registers a task with an origin. Meanwhile another one completes the operation that
/// the task awaits, and the service thread polls and sleeps. The task is woken once, and only after
/// the operation is complete.
fn await_an_operation(completed_by: CompletedBy, then: Then) {
    let pe = Arc::new(Pe::new(completed_by));
    let task = Arc::<Task>::default();
    let waker = Waker::from(Arc::clone(&task));
    // The end of a call lists the issuer as unfinished.
    pe.call(|_| Ok(()));

    let service = {
        let pe = Arc::clone(&pe);
        thread::spawn(move || pe.serve())
    };
    let other = {
        let pe = Arc::clone(&pe);
        thread::spawn(move || pe.complete(then))
    };

    let was_quiet = pe.call(|origin| origin.when_quiet(&waker));
    if !was_quiet {
        task.sleep();
        assert!(pe.network.is_complete(), "woken without a reason");
    }

    other.join().expect("it returns");
    pe.network.local().state.close();
    service.join().expect("it returns");
    assert_eq!(task.n_woken(), u32::from(!was_quiet));
    drop(waker);
    assert_eq!(Arc::strong_count(&task), 1, "a waker was kept");
    assert_eq!(pe.network.local().state.n_tasks(), 0);
}

/// Tries the executions with at most two preemptions: all of them take minutes.
fn check(completed_by: CompletedBy, then: Then) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || await_an_operation(completed_by, then));
}

#[test]
fn a_task_that_registers_while_the_network_completes_is_woken_once() {
    check(CompletedBy::Network, Then::Nothing);
}

#[test]
fn a_task_that_registers_while_polls_complete_is_woken_once() {
    check(CompletedBy::Polls, Then::Nothing);
}

#[test]
fn a_task_is_woken_once_if_another_thread_waits() {
    check(CompletedBy::Polls, Then::Waits);
}

#[test]
fn a_task_is_woken_once_if_another_thread_finds_the_operation_complete() {
    check(CompletedBy::Network, Then::Asks);
}
