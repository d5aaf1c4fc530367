//! The parts of the PEs of a job. Each refers to those before it as if these lived for ever, as in
//! a process, where they do.
#![allow(unsafe_code)]

use rushmem_communication::links::Links;
use std::any::Any;
use std::sync::Arc;
use std::thread::JoinHandle;
use testkit::eventually;

/// The parts, in the order in which they were made. Unless they are [freed](Parts::free_after),
/// they live as long as the process.
#[derive(Default)]
pub(super) struct Parts(Vec<*mut dyn Any>);

impl Parts {
    /// Keeps a part. Returns a reference to it.
    pub(super) fn keep<T: Any>(&mut self, part: Box<T>) -> &'static T {
        let part = Box::into_raw(part);
        self.0.push(part);
        // SAFETY: the pointer is that of a box, which is freed after the end of all threads that
        // use the reference: see `free_after`.
        unsafe { &*part }
    }

    /// Frees the parts once all threads of the PEs have ended: those that ran their bodies, which
    /// have closed the transports, and those of the library, which `links` count. The caller keeps
    /// no reference to a part that it uses later.
    pub(super) fn free_after(
        self,
        threads: Vec<JoinHandle<()>>,
        links: impl Iterator<Item = &'static Links>,
    ) {
        for thread in threads {
            thread.join().expect("the panics of PEs are caught");
        }
        for links in links {
            // The threads of requests and of tasks end by themselves.
            eventually("the threads of the library end", || {
                Arc::strong_count(&links.threads) == 1
            });
            // What a thread of the library has done was before it has given up its count, which the
            // upgrade acquires. ThreadSanitizer does not know fences.
            drop(Arc::downgrade(&links.threads).upgrade());
        }

        // The last one first, since the drop of a part may use those before it.
        for part in self.0.into_iter().rev() {
            // SAFETY: the pointer is that of a box, and is freed once. The references to it were
            // those of the threads, which have ended, and of parts that are freed already.
            drop(unsafe { Box::from_raw(part) });
        }
    }
}
