//! Sections and explicit tasks of OpenMP, both called tasks here: parts of a thread's work that
//! another one might have done.

use super::{ProcessDetector, SPARE, TASK, locked};
use crate::actors::{ActorRole, Thread, Who};
use crate::clock::VectorClock;

impl ProcessDetector {
    /// Returns a new task of a thread, which knows what `clock` knows.
    fn task(&self, number: u32, clock: &VectorClock) -> Option<Thread> {
        let mut spare = locked(&self.spare);
        let reused = if spare.len() >= SPARE { spare.pop_front() } else { None };
        let who = Who { pe: self.me, role: ActorRole::Thread(number), on_context: false };
        let (actor, last) = reused.or_else(|| Some((who.enroll(&self.areas)?, 0)))?;
        let mut clock = clock.clone();
        clock.raise(actor, last + 1);
        Some(Thread { actor, clock, number, ..Thread::default() })
    }

    /// Ends the task. Its actor may serve another one.
    fn retire(&self, task: &Thread) {
        locked(&self.spare).push_back((task.actor, task.epoch()));
    }

    /// Begins a section of the calling thread, unless none is left. Its accesses are not ordered
    /// with those of the thread's other sections.
    pub fn begin_section(&self, is_one: bool) {
        self.with_thread(|thread| {
            let (outer, mut done) = match thread.before_tasks.take() {
                Some(before) => {
                    self.retire(thread);
                    (before.0, before.1)
                }
                None => (std::mem::take(thread), VectorClock::default()),
            };
            if outer.actor != thread.actor {
                done.join(&thread.clock);
            }
            let task = if is_one { self.task(outer.number, &outer.clock) } else { None };
            *thread = match task {
                Some(task) => Thread { before_tasks: Some(Box::new((outer, done))), ..task },
                None => after(outer, &done),
            };
        });
    }

    /// Ends the sections of the calling thread, which then knows what was done in them.
    pub fn end_sections(&self) {
        self.with_thread(|thread| {
            if thread.before_tasks.is_some() {
                self.retire(thread);
            }
            if let Some(before) = thread.before_tasks.take() {
                let (outer, mut done) = *before;
                done.join(&thread.clock);
                *thread = after(outer, &done);
            }
        });
    }

    /// Records that the calling thread creates a task.
    pub fn make_task(&self, number: usize) {
        self.release_object(TASK | number);
    }

    /// Begins the task, and suspends the current one.
    pub fn enter_task(&self, number: usize) -> Option<Thread> {
        let known = locked(&self.objects).remove(&(TASK | number)).unwrap_or_default();
        self.with_thread(|thread| {
            let task = self.task(thread.number, &known)?;
            Some(std::mem::replace(thread, task))
        })?
    }

    /// Ends the task. A thread that acquires `object` knows of it.
    pub fn leave_task(&self, outer: Option<Thread>, object: usize) {
        self.release_object(object);
        let Some(outer) = outer else { return };
        self.with_thread(|thread| {
            self.retire(thread);
            *thread = outer;
        });
    }
}

/// Returns a thread after its sections.
fn after(mut outer: Thread, done: &VectorClock) -> Thread {
    outer.clock.join(done);
    outer.advance();
    outer
}
