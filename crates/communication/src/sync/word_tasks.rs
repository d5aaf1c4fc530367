//! Tasks that wait for words of this PE, and the thread of the library that wakes them.
//!
//! What a network brings rings the doorbell of this PE, on which the thread sleeps if no other PE
//! is on the node. A peer on the node rings nothing when it writes a word of the program, so the
//! thread then looks at the words at intervals. It begins with the first task, and ends when there
//! has been none for a second. A thread in `block_on` looks by itself before it sleeps.

pub(crate) mod registry;

use crate::links::Links;
use rustix::thread::{Timespec, futex};
use std::cell::Cell;
use std::task::Waker;
use std::time::Duration;

/// The time after which the thread ends that has no tasks. A program that awaits again and again
/// does not start it each time, and one that has done with awaiting loses it soon.
const IDLE: Duration = Duration::from_secs(1);
/// The first interval between two looks at words that are changed without a ring. It doubles.
const SHORTEST: Duration = Duration::from_micros(50);
/// The longest of these intervals: 500 looks a second take less than 1 % of a CPU.
const LONGEST: Duration = Duration::from_millis(2);
/// The longest sleep where a ring ends it after each change by a peer. It bounds how late a change
/// by another thread of this PE is seen, which rings nothing. The number was chosen without a
/// measurement.
const RUNG: Duration = Duration::from_millis(10);

thread_local! {
    /// True while this thread looks at the words by itself.
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

/// The locks of [`registry`]. The models in `ci/loom` compile that file with loom's locks under
/// this name.
mod primitive {
    pub(super) use rushmem_system::lock::{lock, try_lock};
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
}

/// The wait of one task, which ends when this is dropped.
#[derive(Debug, Default)]
pub struct WordWait {
    /// The PE, and the number of the task among those of the PE; `None` before the first call.
    entered: Option<(&'static Links, u64)>,
}

impl WordWait {
    /// Wakes the task once when the condition `holds`, which reads words of this PE. The caller
    /// then looks at the words once more, since they may have changed before this call.
    pub fn wake_when(
        &mut self,
        links: &'static Links,
        waker: &Waker,
        holds: impl Fn() -> bool + Send + 'static,
    ) {
        let number = self.entered.map_or(0, |(_, number)| number);
        self.entered = Some((links, links.word_tasks.enter(number, waker, holds)));
        if !LOOKS.get() {
            leave_to_thread(links);
        }
    }
}

impl Drop for WordWait {
    fn drop(&mut self) {
        if let Some((links, number)) = self.entered {
            links.word_tasks.remove(number);
        }
    }
}

/// Forgets all tasks: their words may not be read any more.
pub fn forget(links: &Links) {
    links.word_tasks.clear();
}

/// Calls `body`, in which this thread looks at the words by itself.
pub fn looking<R>(body: impl FnOnce() -> R) -> R {
    /// Restores the former value of [`LOOKS`] when it is dropped: `body` may panic, and may contain
    /// a call of `looking`.
    struct Restore(bool);

    impl Drop for Restore {
        fn drop(&mut self) {
            LOOKS.set(self.0);
        }
    }

    let _restore = Restore(LOOKS.replace(true));
    body()
}

/// Has the thread of the library look at the words, if there are tasks. Starts it if necessary.
pub(super) fn leave_to_thread(links: &'static Links) {
    links.word_tasks.leave_to_thread(|| {
        links
            .spawn_service("rushmem-waker", || serve(links))
            .is_ok()
    });
}

/// Wakes tasks until there have been none for [`IDLE`].
fn serve(links: &Links) {
    let mut interval = SHORTEST;

    links.word_tasks.serve(IDLE, |look| {
        if links.rings_always() {
            sleep_on_doorbell(links);
            return;
        }

        if look.is_first {
            // The wait of a new task may be a short one, and what woken tasks do next may change
            // the words of others.
            interval = SHORTEST;
        }
        links
            .word_tasks
            .sleep_until_next_task(look.last_task, interval);
        interval = (interval * 2).min(LONGEST);
    });
}

/// Sleeps until the doorbell of this PE rings, for [`RUNG`] at the longest; not at all if the
/// condition of a task holds. A new task is looked at by its caller, and its change rings.
fn sleep_on_doorbell(links: &Links) {
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: RUNG.subsec_nanos().into(),
    };

    links.area.sleep_unless(
        || links.word_tasks.is_any_over(),
        |rings, heard| {
            // Every error is an end of the sleep, after which the caller looks again.
            let _ = futex::wait(rings, futex::Flags::empty(), heard, Some(&limit));
        },
    );
}

#[cfg(test)]
mod tests {
    use super::registry::Registry;
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_look_wakes_the_last_task_of_a_wait_once_and_no_dropped_one() {
        let [first, last, dropped] = [(); 3].map(|()| Arc::<Count>::default());
        let word = Arc::new(AtomicBool::new(false));
        let tasks = Registry::default();
        let wait_for = |number, count: &Arc<Count>| {
            let word = Arc::clone(&word);
            let holds = move || word.load(Ordering::SeqCst);
            tasks.enter(number, &Waker::from(Arc::clone(count)), holds)
        };

        let kept = wait_for(0, &first);
        let other = wait_for(0, &dropped);
        assert_eq!(wait_for(kept, &last), kept);
        tasks.remove(other);
        tasks.look();
        assert_eq!(last.0.load(Ordering::SeqCst), 0);

        word.store(true, Ordering::SeqCst);
        tasks.look();
        tasks.look();

        let counts = [first, last, dropped].map(|count| {
            assert_eq!(Arc::strong_count(&count), 1, "a waker was kept");
            count.0.load(Ordering::SeqCst)
        });
        assert_eq!(counts, [0, 1, 0]);
    }

    #[test]
    fn one_thread_is_started_and_only_for_a_task() {
        let tasks = Registry::default();
        tasks.leave_to_thread(|| unreachable!("there is no task"));

        tasks.enter(0, Waker::noop(), || false);
        let mut n_started = 0;
        for _ in 0..2 {
            tasks.leave_to_thread(|| {
                n_started += 1;
                true
            });
        }
        assert_eq!(n_started, 1);
    }
}
