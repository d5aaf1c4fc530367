//! Sleeping on a doorbell and waking by it.

use crate::doorbell::Doorbell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// Sleeps until the word differs from `heard`. loom has no futex, so this yields in a loop; a lost
/// wake-up is an execution that never ends, which loom reports.
pub(crate) fn sleep(word: &AtomicU32, heard: u32) {
    while word.load(Ordering::Acquire) == heard {
        thread::yield_now();
    }
}

/// The doorbell of a PE, and the word for which the PE waits.
#[derive(Default)]
struct Pe {
    rings: AtomicU32,
    sleepers: AtomicU32,
    word: AtomicU32,
}

impl Pe {
    fn doorbell(&self) -> Doorbell<'_> {
        Doorbell {
            rings: &self.rings,
            sleepers: &self.sleepers,
        }
    }

    fn wait(&self) {
        let is_set = || self.word.load(Ordering::Acquire) == 1;
        while !is_set() {
            self.doorbell().sleep_unless(is_set, sleep);
        }
    }
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let pe = Arc::new(Pe::default());
        let waiter = {
            let pe = pe.clone();
            thread::spawn(move || pe.wait())
        };

        // What a peer does.
        pe.word.store(1, Ordering::Release);
        pe.doorbell().ring(|_| ());

        waiter.join().expect("the waiter returns");
        let n_sleepers = pe.sleepers.load(Ordering::Relaxed);
        assert_eq!(n_sleepers, 0, "nobody sleeps any more");
    });
}
