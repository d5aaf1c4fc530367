//! The begin and end of threads, and of the sections and explicit tasks of OpenMP. A section, too,
//! is called a task here: a part of a thread's work that another thread might have done. Each task
//! is an actor.
//!
//! The actor of a thread or task that has ended is used again for a later one, so that clocks do
//! not grow with the number of threads and tasks.

use super::{ProcessDetector, locked};
use crate::actors::{AroundSection, EndedThread, THREAD, Thread};
use crate::clock::{Stamp, VectorClock};
use std::ops::Range;

/// A new thread uses the actor of an ended thread after which it is ordered. If there is no such
/// thread, but this number of ended threads, it uses the oldest one's, and races between these two
/// threads are not found. A larger number would find more of them, with longer clocks.
const ENDED: usize = 256;

/// The number of completed tasks after which a new task uses the actor of the oldest one. Races
/// between these two tasks are not found. A larger number would find more of them, with longer
/// clocks.
const SPARE: usize = 256;

impl ProcessDetector {
    /// Begins the calling thread, which acquires `start`. No other thread acquires that object.
    pub fn begin_thread(&self, start: usize) {
        let clock = locked(&self.objects).remove(&start).unwrap_or_default();

        let begun = THREAD.try_with(|thread| {
            let mut thread = thread.try_borrow_mut().ok()?;
            if thread.actor != 0 {
                return None;
            }
            *thread = self.reuse_actor(&clock)?;
            Some(())
        });

        // Without an actor to reuse, the thread gets a new one here.
        if begun.ok().flatten().is_none() {
            self.with_thread(|thread| thread.clock.join(&clock));
        }
    }

    /// Returns a new thread with the clock `clock` and the actor of a thread that has ended. All
    /// accesses of the ended thread count as ordered before those of the new one. `None` if no
    /// actor is to be used again.
    fn reuse_actor(&self, clock: &VectorClock) -> Option<Thread> {
        let mut ended = locked(&self.ended);
        let known = ended.iter().position(|old| clock.includes(old.last));
        let index = match known {
            Some(index) => index,
            None if ended.len() >= ENDED => 0,
            None => return None,
        };
        let EndedThread { last, number } = ended.remove(index)?;

        let mut clock = clock.clone();
        // The epoch after the last one is that of what the old thread did after its release, such
        // as by destructors.
        clock.raise(last.actor, last.epoch + 2);
        Some(Thread {
            actor: last.actor,
            clock,
            number,
            ..Thread::default()
        })
    }

    /// Ends the calling thread, which releases `end`, and forgets the accesses to its stack.
    pub fn end_thread(&self, end: usize, stack: Range<usize>) {
        // Before the release, which begins a new epoch.
        let ended = self.with_thread(|thread| EndedThread {
            last: thread.stamp(),
            number: thread.number,
        });

        self.release_object(end);
        if let Some(used) = self.forget_freed(stack) {
            self.report_freed("end of the thread", used);
        }
        locked(&self.ended).extend(ended);
    }
}

impl ProcessDetector {
    /// Returns a new task with the clock `clock`, of the thread with this number. `None` if the
    /// table of actors is full.
    fn task(&self, number: u32, clock: &VectorClock) -> Option<Thread> {
        let mut spare = locked(&self.spare);
        let reused = if spare.len() >= SPARE {
            spare.pop_front()
        } else {
            None
        };
        let last = match reused {
            Some(last) => last,
            None => Stamp {
                actor: self.enroll_thread(number)?,
                epoch: 0,
            },
        };

        let mut clock = clock.clone();
        clock.raise(last.actor, last.epoch + 1);
        Some(Thread {
            actor: last.actor,
            clock,
            number,
            ..Thread::default()
        })
    }

    /// Ends the task. Its actor may serve another one.
    fn retire(&self, task: &Thread) {
        locked(&self.spare).push_back(task.stamp());
    }

    /// Ends the current section of the calling thread, if there is one, and begins the next one.
    /// Nothing orders the accesses of the two.
    pub fn begin_section(&self) {
        self.with_thread(|thread| {
            let around = match self.leave_section(thread) {
                Some(around) => around,
                None => Box::new(AroundSection {
                    outer: std::mem::take(thread),
                    done: VectorClock::default(),
                }),
            };

            // Each section begins with the clock from before the first one, so that nothing orders
            // it after its predecessors.
            *thread = match self.task(around.outer.number, &around.outer.clock) {
                Some(section) => Thread {
                    around_section: Some(around),
                    ..section
                },
                // The table of actors is full, after which nothing is checked.
                None => around.into_outer(),
            };
        });
    }

    /// Ends the current section of the calling thread, if there is one. The thread's clock then
    /// includes the accesses of all its sections.
    pub fn end_sections(&self) {
        self.with_thread(|thread| {
            if let Some(around) = self.leave_section(thread) {
                *thread = around.into_outer();
            }
        });
    }

    /// Ends the section that `thread` is in. Returns what is around it, with the section's clock
    /// joined; `None` if the thread is in no section.
    fn leave_section(&self, thread: &mut Thread) -> Option<Box<AroundSection>> {
        let mut around = thread.around_section.take()?;
        around.done.join(&thread.clock);
        self.retire(thread);
        Some(around)
    }

    /// Begins a task on the calling thread, after the thread that has released `start`. Returns
    /// what the calling thread did before, for [`leave_task`](Self::leave_task).
    pub fn enter_task(&self, start: usize) -> Option<Thread> {
        let known = locked(&self.objects).remove(&start).unwrap_or_default();
        self.with_thread(|thread| {
            let task = self.task(thread.number, &known)?;
            Some(std::mem::replace(thread, task))
        })?
    }

    /// Ends the task, and continues with what the thread did before, `outer`. The accesses of the
    /// task are ordered before those of a thread that acquires `object`.
    pub fn leave_task(&self, outer: Option<Thread>, object: usize) {
        self.release_object(object);
        let Some(outer) = outer else { return };
        self.with_thread(|thread| {
            self.retire(thread);
            *thread = outer;
        });
    }
}
