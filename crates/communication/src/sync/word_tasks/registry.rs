//! The registry of the tasks that wait for words, and the rules by which a thread that wakes them
//! begins and ends. `ci/loom` tries every execution.

use super::primitive::{Condvar, Mutex, MutexGuard, lock, try_lock};
use std::mem::{replace, take};
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Duration;

/// The tasks that wait for words. By default there are none, and no thread.
#[derive(Default)]
pub(crate) struct Registry {
    tasks: Mutex<WordTasks>,
    /// Notified when there is another task.
    next_task: Condvar,
}

#[derive(Default)]
struct WordTasks {
    waiting: Vec<WordTask>,
    /// The number of the last task.
    count: u64,
    has_thread: bool,
}

/// A task, and the condition for which it waits.
struct WordTask {
    number: u64,
    holds: Box<dyn Fn() -> bool + Send>,
    waker: Waker,
}

/// A look of the thread at the words of all tasks, of which it has woken none.
pub(crate) struct Look {
    /// The number of the last task at whose word it has looked.
    pub last_task: u64,
    /// True if there is a new task, or the look before has woken one.
    pub is_first: bool,
}

impl Registry {
    /// Wakes a task once when the condition `holds`, and returns the number of the task. The task
    /// with this `number`, if it still waits, gets the new waker instead. The caller then
    /// [leaves](Self::leave_to_thread) it to the thread or [looks](Self::look), and tests the
    /// condition once more.
    pub(crate) fn enter(
        &self,
        number: u64,
        waker: &Waker,
        holds: impl Fn() -> bool + Send + 'static,
    ) -> u64 {
        let mut tasks = lock(&self.tasks);
        if let Some(i) = tasks.index_of(number) {
            let previous = replace(&mut tasks.waiting[i].waker, waker.clone());
            // The drop of a waker may call anything, so it is not under the lock.
            drop(tasks);
            drop(previous);
            return number;
        }

        tasks.count += 1;
        let number = tasks.count;
        tasks.waiting.push(WordTask {
            number,
            holds: Box::new(holds),
            waker: waker.clone(),
        });
        number
    }

    /// Removes the task with this number, if it still waits.
    pub(crate) fn remove(&self, number: u64) {
        let mut tasks = lock(&self.tasks);
        let index = tasks.index_of(number);
        let ended = index.map(|i| tasks.waiting.swap_remove(i));
        // The drop of a waker may call anything, so it is not under the lock.
        drop(tasks);
        drop(ended);
    }

    /// Removes all tasks.
    pub(crate) fn clear(&self) {
        let ended = take(&mut lock(&self.tasks).waiting);
        // After the end of the statement that has locked: the drop of a waker may call anything.
        drop(ended);
    }

    /// Wakes the tasks whose conditions hold, unless another thread is about to.
    pub(crate) fn look(&self) {
        if let Some(tasks) = try_lock(&self.tasks) {
            wake_over(tasks);
        }
    }

    /// Returns true if the condition of a task holds.
    pub(crate) fn is_any_over(&self) -> bool {
        lock(&self.tasks).waiting.iter().any(|task| (task.holds)())
    }

    /// Has the thread look at the words, if there are tasks. If there is no thread, calls `start`,
    /// which starts one that calls [`serve`](Self::serve), or returns false.
    pub(crate) fn leave_to_thread(&self, start: impl FnOnce() -> bool) {
        let mut tasks = lock(&self.tasks);
        if tasks.waiting.is_empty() {
            return;
        }
        let has_thread = replace(&mut tasks.has_thread, true);
        drop(tasks);

        if has_thread {
            // It may sleep for longer than the new task may wait.
            self.next_task.notify_one();
        } else if !start() {
            let mut tasks = lock(&self.tasks);
            tasks.has_thread = false;
            let all = take(&mut tasks.waiting);
            drop(tasks);

            // Without a thread, tasks look again and again.
            for task in all {
                task.waker.wake();
            }
        }
    }

    /// Wakes tasks until there have been none for the time `idle`, in the thread that
    /// [`leave_to_thread`](Self::leave_to_thread) has started. Calls `sleep` after each look that
    /// has woken no task.
    pub(crate) fn serve(&self, idle: Duration, mut sleep: impl FnMut(Look)) {
        let mut last_task = 0;
        let mut has_woken = false;

        while let Some(tasks) = self.tasks_or_end(idle) {
            let is_any_new = tasks.count != last_task;
            last_task = tasks.count;

            if wake_over(tasks) {
                // What a task does next may satisfy the condition of another one: look again
                // before the sleep.
                has_woken = true;
                continue;
            }

            sleep(Look {
                last_task,
                is_first: is_any_new || has_woken,
            });
            has_woken = false;
        }
    }

    /// Waits until there are tasks, for the time `idle` at the longest. Returns `None` if there are
    /// none, and records that the thread ends.
    fn tasks_or_end(&self, idle: Duration) -> Option<MutexGuard<'_, WordTasks>> {
        let waited = self
            .next_task
            .wait_timeout_while(lock(&self.tasks), idle, |tasks| tasks.waiting.is_empty());
        let (mut tasks, _) = waited.unwrap_or_else(PoisonError::into_inner);

        if tasks.waiting.is_empty() {
            // Under the same lock as the look at the tasks, so that no task is left to a thread
            // that ends.
            tasks.has_thread = false;
            return None;
        }
        Some(tasks)
    }

    /// Sleeps until there is a task after the one with the number `last`, for `limit` at the
    /// longest.
    pub(crate) fn sleep_until_next_task(&self, last: u64, limit: Duration) {
        let waited = self
            .next_task
            .wait_timeout_while(lock(&self.tasks), limit, |tasks| tasks.count == last);
        // The caller takes the lock again, and looks whatever ended the sleep.
        drop(waited);
    }
}

impl WordTasks {
    fn index_of(&self, number: u64) -> Option<usize> {
        self.waiting.iter().position(|task| task.number == number)
    }
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
