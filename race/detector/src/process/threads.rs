//! The begin and end of threads: the actor of one that has ended serves a later one, so that clocks
//! do not grow with each thread.

use super::{ProcessDetector, locked};
use crate::actors::{EndedThread, THREAD, Thread};
use crate::areas::by_page;
use crate::clock::VectorClock;
use crate::shadow::View;
use crate::{known, private};
use std::ops::Range;

/// Threads that have ended, of which no new one knows all, before the first of them is taken
/// nevertheless: races between these two are not found then.
const ENDED: usize = 256;

impl ProcessDetector {
    /// Begins the calling thread, which knows what was released as `start`. Nobody else acquires
    /// that.
    pub fn begin_thread(&self, start: usize) {
        let clock = locked(&self.objects).remove(&start).unwrap_or_default();
        let begun = THREAD.try_with(|thread| {
            let mut thread = thread.try_borrow_mut().ok().filter(|thread| thread.actor == 0)?;
            *thread = self.serve_again(&clock)?;
            Some(())
        });
        if begun.ok().flatten().is_none() {
            self.with_thread(|thread| thread.clock.join(&clock));
        }
    }

    /// Returns a new thread that knows what `clock` knows, by the actor of one that has ended. That
    /// one comes before the new one for all that know this actor.
    fn serve_again(&self, clock: &VectorClock) -> Option<Thread> {
        let mut ended = locked(&self.ended);
        let knows = |old: &EndedThread| clock.of(old.actor) >= old.released;
        let first = (ended.len() >= ENDED).then_some(0);
        let index = ended.iter().position(knows).or(first)?;
        let old = ended.remove(index)?;
        let mut clock = clock.clone();
        // What it did after its release, such as by destructors, has the epoch before.
        clock.raise(old.actor, old.released + 2);
        Some(Thread { actor: old.actor, clock, number: old.number, ..Thread::default() })
    }

    /// Ends the calling thread, of which those know that acquire `end`, and gives its stack back.
    pub fn end_thread(&self, end: usize, stack: Range<usize>) {
        let ended = self.with_thread(|thread| EndedThread {
            actor: thread.actor,
            number: thread.number,
            released: thread.epoch(),
        });
        self.release_object(end);
        self.give_back(stack);
        locked(&self.ended).extend(ended);
    }

    /// Forgets the accesses to private memory that the program gives back, as far as the calling
    /// thread knows them to be done: who gets the memory next comes after them.
    pub fn give_back(&self, memory: Range<usize>) {
        self.with_accessing(|thread| {
            let view = View { clock: &thread.clock, fenced: &[] };
            let mut is_changed = false;
            for (start, bytes) in by_page(memory.start, memory.len()) {
                let Some(page) = private::known_page(start) else { continue };
                page.forget(bytes.start, bytes.end, |old| {
                    let is_done = old.actor == thread.actor || view.covers(old);
                    is_changed |= is_done;
                    is_done
                });
            }
            if is_changed {
                known::forget();
            }
        });
    }
}
