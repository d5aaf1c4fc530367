//! The begin and end of threads, and of sections and explicit tasks of OpenMP. Both are called
//! tasks here: parts of a thread's work that another thread might have done. Each task is an actor.
//!
//! The actor of a thread or task that has ended is used again for a later one, so that clocks do
//! not grow with the number of threads and tasks.

use super::{ProcessDetector, SPARE, locked};
use crate::actors::{ActorInfo, ActorRole, AroundSection, EndedThread, THREAD, Thread};
use crate::clock::VectorClock;
use std::ops::Range;

/// A new thread uses the actor of an ended thread after which it is ordered. If there is no such
/// thread, but this number of ended threads, it uses the oldest one's, and races between these two
/// threads are not found.
const ENDED: usize = 256;

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
        if begun.ok().flatten().is_none() {
            self.with_thread(|thread| thread.clock.join(&clock));
        }
    }

    /// Returns a new thread with the clock `clock` and the actor of a thread that has ended. All
    /// accesses of the ended thread count as ordered before those of the new one. `None` if no
    /// actor is to be used again.
    fn reuse_actor(&self, clock: &VectorClock) -> Option<Thread> {
        let mut ended = locked(&self.ended);
        let known = ended
            .iter()
            .position(|old| clock.of(old.actor) >= old.released);
        let oldest = (ended.len() >= ENDED).then_some(0);
        let old = ended.remove(known.or(oldest)?)?;

        let mut clock = clock.clone();
        // The epoch after `released` is that of what the old thread did after its release, such as
        // by destructors.
        clock.raise(old.actor, old.released + 2);
        Some(Thread {
            actor: old.actor,
            clock,
            number: old.number,
            ..Thread::default()
        })
    }

    /// Ends the calling thread, which releases `end`, and forgets the accesses to its stack.
    pub fn end_thread(&self, end: usize, stack: Range<usize>) {
        let ended = self.with_thread(|thread| EndedThread {
            actor: thread.actor,
            number: thread.number,
            released: thread.epoch(),
        });
        self.release_object(end);
        if let Some(used) = self.forget_freed(stack) {
            self.report_freed("end of the thread", used);
        }
        locked(&self.ended).extend(ended);
    }
}

impl ProcessDetector {
    /// Returns a new task with the clock `clock`, of the thread with this number.
    fn task(&self, number: u32, clock: &VectorClock) -> Option<Thread> {
        let mut spare = locked(&self.spare);
        let reused = if spare.len() >= SPARE {
            spare.pop_front()
        } else {
            None
        };
        let (actor, last) = match reused {
            Some(reused) => reused,
            None => {
                let info = ActorInfo {
                    pe: self.me,
                    role: ActorRole::Thread(number),
                    on_context: false,
                };
                (info.enroll(&self.areas)?, 0)
            }
        };

        let mut clock = clock.clone();
        clock.raise(actor, last + 1);
        Some(Thread {
            actor,
            clock,
            number,
            ..Thread::default()
        })
    }

    /// Ends the task. Its actor may serve another one.
    fn retire(&self, task: &Thread) {
        locked(&self.spare).push_back((task.actor, task.epoch()));
    }

    /// Ends the current section of the calling thread, if there is one, and begins the next one if
    /// `has_next`. Its accesses are not ordered with those of the thread's other sections.
    pub fn begin_section(&self, has_next: bool) {
        self.with_thread(|thread| {
            let (outer, mut done) = match thread.before_tasks.take() {
                Some(around) => {
                    self.retire(thread);
                    (around.outer, around.done)
                }
                None => (std::mem::take(thread), VectorClock::default()),
            };
            if outer.actor != thread.actor {
                done.join(&thread.clock);
            }

            // Each section begins with the clock from before the first one, so that nothing orders
            // it after its predecessors.
            let task = if has_next {
                self.task(outer.number, &outer.clock)
            } else {
                None
            };
            *thread = match task {
                Some(task) => Thread {
                    before_tasks: Some(Box::new(AroundSection { outer, done })),
                    ..task
                },
                None => after_sections(outer, &done),
            };
        });
    }

    /// Ends the current section of the calling thread, if there is one. The thread's clock then
    /// includes the accesses of all its sections.
    pub fn end_sections(&self) {
        self.with_thread(|thread| {
            if let Some(around) = thread.before_tasks.take() {
                self.retire(thread);
                let AroundSection { outer, mut done } = *around;
                done.join(&thread.clock);
                *thread = after_sections(outer, &done);
            }
        });
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

/// Returns the thread `outer` after its sections, whose joined clocks are `done`.
fn after_sections(mut outer: Thread, done: &VectorClock) -> Thread {
    outer.clock.join(done);
    outer.advance();
    outer
}
