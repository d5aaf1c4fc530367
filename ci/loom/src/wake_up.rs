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

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)]);
        let waiter = {
            let words = words.clone();
            thread::spawn(move || {
                let doorbell = Doorbell {
                    rings: &words[0],
                    sleepers: &words[1],
                };
                let is_set = || words[2].load(Ordering::Acquire) == 1;
                while !is_set() {
                    doorbell.sleep_unless(is_set, sleep);
                }
            })
        };
        words[2].store(1, Ordering::Release);
        Doorbell {
            rings: &words[0],
            sleepers: &words[1],
        }
        .ring(|_| ());
        waiter.join().expect("the waiter returns");
        assert_eq!(
            words[1].load(Ordering::Relaxed),
            0,
            "nobody sleeps any more"
        );
    });
}
