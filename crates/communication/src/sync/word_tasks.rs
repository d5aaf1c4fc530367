//! Tasks that wait for words of this PE, and the thread of the library that wakes them.
//!
//! What a network brings rings the doorbell of this PE, on which the thread sleeps if no other PE
//! is on the node. A peer on the node rings nothing when it writes a word of the program, so the
//! thread then looks at the words at intervals. It begins with the first task, and ends when there
//! has been none for a second. A thread in `block_on` looks by itself before it sleeps.

use crate::net::{flags, network};
use rushmem_system::lock::{lock, try_lock};
use rushmem_system::thread::spawn_service;
use rustix::thread::{Timespec, futex};
use std::cell::Cell;
use std::mem::{replace, take};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// The time after which the thread ends that has no tasks.
const IDLE: Duration = Duration::from_secs(1);
/// The first interval between two looks at words that are changed without a ring. It doubles.
const SHORTEST: Duration = Duration::from_micros(50);
/// The longest of these intervals: 500 looks a second take less than 1 % of a CPU.
const LONGEST: Duration = Duration::from_millis(2);
/// The longest sleep where a ring ends it after each change by a peer. Another thread of this PE
/// may change a word without a ring.
const RUNG: Duration = Duration::from_millis(10);

/// A task, and the condition for which it waits.
struct WordTask {
    number: u64,
    holds: Box<dyn Fn() -> bool + Send>,
    waker: Waker,
}

#[derive(Default)]
struct WordTasks {
    waiting: Vec<WordTask>,
    /// The number of the last task.
    count: u64,
    has_thread: bool,
}

static TASKS: Mutex<WordTasks> = Mutex::new(WordTasks {
    waiting: Vec::new(),
    count: 0,
    has_thread: false,
});

/// Notified when there is another task.
static NEXT_TASK: Condvar = Condvar::new();

thread_local! {
    /// True while this thread looks at the words by itself.
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

/// The wait of one task, which ends when this is dropped.
#[derive(Debug, Default)]
pub struct WordWait {
    /// The number of the task; 0 before the first call.
    number: u64,
}

impl WordWait {
    /// Wakes the task once when the condition `holds`, which reads words of this PE. The caller
    /// then looks at the words once more, since they may have changed before this call.
    pub fn wake_when(&mut self, waker: &Waker, holds: impl Fn() -> bool + Send + 'static) {
        let mut tasks = lock(&TASKS);
        if let Some(i) = tasks.index_of(self.number) {
            let previous = replace(&mut tasks.waiting[i].waker, waker.clone());
            // The drop of a waker may call anything, so it is not under the lock.
            drop(tasks);
            drop(previous);
        } else {
            tasks.count += 1;
            self.number = tasks.count;
            tasks.waiting.push(WordTask {
                number: self.number,
                holds: Box::new(holds),
                waker: waker.clone(),
            });
            drop(tasks);
        }

        if !LOOKS.get() {
            leave_to_thread();
        }
    }
}

impl Drop for WordWait {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }

        let mut tasks = lock(&TASKS);
        let index = tasks.index_of(self.number);
        let ended = index.map(|i| tasks.waiting.swap_remove(i));
        // The drop of a waker may call anything, so it is not under the lock.
        drop(tasks);
        drop(ended);
    }
}

impl WordTasks {
    fn index_of(&self, number: u64) -> Option<usize> {
        self.waiting.iter().position(|task| task.number == number)
    }
}

/// Forgets all tasks: their words may not be read any more.
pub fn forget() {
    let ended = take(&mut lock(&TASKS).waiting);
    // After the end of the statement that has locked: the drop of a waker may call anything.
    drop(ended);
}

/// Calls `body`, in which this thread looks at the words by itself.
pub fn looking<R>(body: impl FnOnce() -> R) -> R {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            LOOKS.set(self.0);
        }
    }

    let _before = Before(LOOKS.replace(true));
    body()
}

/// Wakes the tasks whose conditions hold, unless another thread is about to.
pub(super) fn look() {
    if let Some(tasks) = try_lock(&TASKS) {
        wake_over(tasks);
    }
}

/// Has the thread of the library look at the words, if there are tasks. Starts it if necessary.
pub(super) fn leave_to_thread() {
    let mut tasks = lock(&TASKS);
    if tasks.waiting.is_empty() {
        return;
    }
    let has_thread = replace(&mut tasks.has_thread, true);
    drop(tasks);

    if has_thread {
        // It may sleep for longer than the new task may wait.
        NEXT_TASK.notify_one();
    } else if spawn_service("rushmem-waker", serve).is_err() {
        let mut tasks = lock(&TASKS);
        tasks.has_thread = false;
        let all = take(&mut tasks.waiting);
        drop(tasks);

        // Without a thread, tasks look again and again.
        for task in all {
            task.waker.wake();
        }
    }
}

/// Wakes tasks until there have been none for [`IDLE`].
fn serve() {
    // The number of the last task at whose word this thread has looked.
    let mut seen = 0;
    let mut interval = SHORTEST;

    while let Some(tasks) = tasks_or_end() {
        if tasks.count != seen {
            // The wait of a new task may be a short one.
            seen = tasks.count;
            interval = SHORTEST;
        }

        if wake_over(tasks) {
            // What those tasks do next may change the words of others.
            interval = SHORTEST;
        } else if network::rings_always() {
            sleep_on_doorbell();
        } else {
            sleep_until_next_task(seen, interval);
            interval = (interval * 2).min(LONGEST);
        }
    }
}

/// Waits for [`IDLE`] at the longest until there are tasks. Returns `None` if there are none, and
/// records that the thread ends.
fn tasks_or_end() -> Option<MutexGuard<'static, WordTasks>> {
    let waited = NEXT_TASK.wait_timeout_while(lock(&TASKS), IDLE, |tasks| tasks.waiting.is_empty());
    let (mut tasks, _) = waited.unwrap_or_else(PoisonError::into_inner);
    if tasks.waiting.is_empty() {
        // Under the same lock as the look at the tasks, so that no task is left to a thread that
        // ends.
        tasks.has_thread = false;
        return None;
    }
    Some(tasks)
}

/// Sleeps until there is a task after the one with the number `seen`, for `limit` at the longest.
fn sleep_until_next_task(seen: u64, limit: Duration) {
    let waited = NEXT_TASK.wait_timeout_while(lock(&TASKS), limit, |tasks| tasks.count == seen);
    // The caller takes the lock again, and looks whatever ended the sleep.
    drop(waited);
}

/// Wakes the tasks whose conditions hold. Returns true if there are any.
fn wake_over(mut tasks: MutexGuard<'_, WordTasks>) -> bool {
    let over: Vec<WordTask> = tasks
        .waiting
        .extract_if(.., |task| (task.holds)())
        .collect();
    drop(tasks);

    // A waker may call anything, so it is not called under the lock.
    let is_any = !over.is_empty();
    for task in over {
        task.waker.wake();
    }
    is_any
}

/// Sleeps until the doorbell of this PE rings, for [`RUNG`] at the longest; not at all if the
/// condition of a task holds. A new task is looked at by its caller, and its change rings.
fn sleep_on_doorbell() {
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: RUNG.subsec_nanos().into(),
    };

    let is_any_over = || lock(&TASKS).waiting.iter().any(|task| (task.holds)());
    flags::area().sleep_unless(is_any_over, |rings, heard| {
        // The caller looks again after any end of the sleep.
        let _ = futex::wait(rings, futex::Flags::empty(), heard, Some(&limit));
    });
}

#[cfg(test)]
mod tests {
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
        let wait_for = |wait: &mut WordWait, count: &Arc<Count>| {
            let word = Arc::clone(&word);
            let holds = move || word.load(Ordering::SeqCst);
            wait.wake_when(&Waker::from(Arc::clone(count)), holds);
        };

        looking(|| {
            let mut kept = WordWait::default();
            let mut other = WordWait::default();
            wait_for(&mut kept, &first);
            wait_for(&mut other, &dropped);
            wait_for(&mut kept, &last);
            drop(other);
            look();
            assert_eq!(last.0.load(Ordering::SeqCst), 0);

            word.store(true, Ordering::SeqCst);
            look();
            look();
        });

        let counts = [first, last, dropped].map(|count| {
            assert_eq!(Arc::strong_count(&count), 1, "a waker was kept");
            count.0.load(Ordering::SeqCst)
        });
        assert_eq!(counts, [0, 1, 0]);
    }
}
