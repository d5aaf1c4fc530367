//! Tasks that wait for words of this PE, while the words are written, and while the thread that
//! wakes the tasks begins and ends.

use crate::doorbell::Doorbell;
use crate::registry::{Look, Registry};
use crate::task::Task;
use crate::wake_up::sleep;
use loom::model::Builder;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};
use loom::thread::{self, JoinHandle};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

/// Until when the thread sleeps after a look that has woken no task.
#[derive(Clone, Copy)]
enum Sleeps {
    UntilARing,
    /// In Rushmem also until a time has passed, which would hide that a notification is missing.
    UntilTheNextTask,
    /// For a moment.
    Briefly,
}

/// What the threads of a PE share with each other and with a peer, which writes the words.
#[derive(Default)]
struct Node {
    registry: Registry,
    rings: AtomicU32,
    sleepers: AtomicU32,
    words: [AtomicU32; 2],
    /// The threads that have served the registry. The lock is the standard library's, since only
    /// the model uses it.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Node {
    fn doorbell(&self) -> Doorbell<'_> {
        Doorbell {
            rings: &self.rings,
            sleepers: &self.sleepers,
        }
    }

    /// Writes a word as a peer does, and rings.
    fn write(&self, word: usize) {
        self.words[word].store(1, Release);
        self.doorbell().ring(|_| ());
    }

    fn is_written(&self, word: usize) -> bool {
        self.words[word].load(Acquire) == 1
    }

    /// Registers a task that waits for a word. Returns its number.
    fn enter(self: &Arc<Self>, word: usize, task: &Arc<Task>) -> u64 {
        let node = Arc::clone(self);
        let waker = Waker::from(Arc::clone(task));
        self.registry
            .enter(0, &waker, move || node.is_written(word))
    }

    /// Leaves the tasks to the thread, which ends at once when it has none.
    fn leave_to_thread(self: &Arc<Self>, sleeps: Sleeps) {
        self.registry.leave_to_thread(|| {
            let node = Arc::clone(self);
            let serving = thread::spawn(move || {
                node.registry
                    .serve(Duration::ZERO, |look| node.sleep(sleeps, look))
            });
            self.threads.lock().expect("no panic").push(serving);
            true
        });
    }

    fn sleep(&self, sleeps: Sleeps, look: Look) {
        match sleeps {
            Sleeps::UntilARing => {
                let is_any_over = || self.registry.is_any_over();
                self.doorbell().sleep_unless(is_any_over, sleep);
            }
            Sleeps::UntilTheNextTask => {
                let last = look.last_task;
                self.registry.sleep_until_next_task(last, Duration::MAX);
            }
            Sleeps::Briefly => thread::yield_now(),
        }
    }

    /// Waits for the threads, which end, and breaks the cycle of the node and its conditions.
    fn end(&self) {
        for serving in self.threads.lock().expect("no panic").drain(..) {
            serving.join().expect("it returns");
        }
        self.registry.clear();
    }
}

/// When a task tests its word: only before it registers, which may miss a write, or only afterward.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordTest {
    BeforeRegistering,
    AfterRegistering,
}

/// Tries the executions with at most this number of preemptions: all of them take minutes.
fn check(most_preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(most_preemptions);
    builder.check(model);
}

/// Waits for word 1 as a task does, which tests the word once and then sleeps.
fn wait_for_word_1(node: &Arc<Node>, task: &Arc<Task>, test: WordTest) {
    if test == WordTest::BeforeRegistering && node.is_written(1) {
        return;
    }

    let number = node.enter(1, task);
    node.leave_to_thread(Sleeps::UntilARing);
    if test == WordTest::AfterRegistering && node.is_written(1) {
        node.registry.remove(number);
        return;
    }

    task.sleep();
    assert!(node.is_written(1), "woken without a reason");
}

/// A task waits for a word that is written meanwhile. The thread serves another task, for which it
/// sleeps on the doorbell.
fn wait_for_a_word_while_the_thread_sleeps(test: WordTest) {
    let node = Arc::<Node>::default();
    let [other, task] = [(); 2].map(|()| Arc::<Task>::default());
    node.enter(0, &other);
    node.leave_to_thread(Sleeps::UntilARing);
    let peer = {
        let node = Arc::clone(&node);
        thread::spawn(move || node.write(1))
    };

    wait_for_word_1(&node, &task, test);

    peer.join().expect("it returns");
    node.write(0);
    other.sleep();
    node.end();
    assert_eq!(other.n_woken(), 1, "the task of the other word");
    assert!(task.n_woken() <= 1, "woken twice");
}

#[test]
fn a_task_that_registers_while_its_word_is_written_is_woken_or_sees_it() {
    check(2, || {
        wait_for_a_word_while_the_thread_sleeps(WordTest::AfterRegistering);
    });
}

/// This shows that the test above can fail.
#[test]
#[should_panic(expected = "branches")]
fn a_task_that_tests_its_word_only_before_it_registers_may_sleep_forever() {
    check(2, || {
        wait_for_a_word_while_the_thread_sleeps(WordTest::BeforeRegistering);
    });
}

/// Each task misses that its word was written before it registered, so the thread must look.
#[test]
fn tasks_that_register_while_the_thread_ends_are_woken_once() {
    check(3, || {
        let node = Arc::<Node>::default();
        node.write(0);
        let tasks = [(); 2].map(|()| Arc::<Task>::default());
        for task in &tasks {
            node.enter(0, task);
            node.leave_to_thread(Sleeps::UntilARing);
        }

        for task in &tasks {
            task.sleep();
        }
        node.end();
        assert_eq!(tasks.map(|task| task.n_woken()), [1, 1]);
    });
}

/// No ring ends the sleep of the thread, which has a task already.
#[test]
fn a_task_that_registers_ends_the_sleep_between_two_looks() {
    check(3, || {
        let node = Arc::<Node>::default();
        let [other, task, last] = [(); 3].map(|()| Arc::<Task>::default());
        node.enter(0, &other);
        node.leave_to_thread(Sleeps::UntilTheNextTask);
        node.write(1);

        node.enter(1, &task);
        node.leave_to_thread(Sleeps::UntilTheNextTask);
        task.sleep();

        node.write(0);
        node.enter(0, &last);
        node.leave_to_thread(Sleeps::UntilTheNextTask);
        node.end();
        assert_eq!([other, task, last].map(|task| task.n_woken()), [1; 3]);
    });
}

#[test]
fn a_task_that_is_dropped_while_it_is_woken_is_woken_at_most_once_and_others_are() {
    check(3, || {
        let node = Arc::<Node>::default();
        let [dropped, kept] = [(); 2].map(|()| Arc::<Task>::default());
        let number = node.enter(0, &dropped);
        node.enter(0, &kept);
        let looker = {
            let node = Arc::clone(&node);
            thread::spawn(move || {
                node.write(0);
                node.registry.look();
            })
        };

        node.leave_to_thread(Sleeps::Briefly);
        node.registry.remove(number);
        kept.sleep();
        looker.join().expect("it returns");
        node.end();
        assert!(dropped.n_woken() <= 1 && kept.n_woken() == 1, "woken twice");
        assert_eq!(Arc::strong_count(&dropped), 1, "a waker was kept");
    });
}
