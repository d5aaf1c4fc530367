//! Memory that the program frees: the accesses to it are forgotten, and an operation in flight that
//! still uses it is a race with the call that frees it.

use super::{AccessSite, ProcessDetector};
use crate::access::{ShadowKind, ShadowRecord};
use crate::actors::{ActorInfo, ActorRole};
use crate::areas::{Memory, by_page};
use crate::shadow::{Page, View};
use crate::{known, private, sites};
use std::ops::Range;

/// The bytes of freed memory on a page that has a shadow.
struct WatchedPart {
    page: Page<'static>,
    page_addr: usize,
    /// The bytes of the page.
    bytes: Range<usize>,
}

fn watched_parts(memory: &Range<usize>) -> impl Iterator<Item = WatchedPart> {
    by_page(memory.start, memory.len()).filter_map(|part| {
        Some(WatchedPart {
            page: private::known_page(part.page)?,
            page_addr: part.page,
            bytes: part.bytes,
        })
    })
}

/// An operation in flight that uses memory which the program frees.
pub struct UsedMemory {
    /// All memory that is freed.
    freed: Range<usize>,
    /// The address of a byte that the operation uses, or of one before it on the same page.
    addr: usize,
    operation: ShadowRecord,
}

impl ProcessDetector {
    /// Forgets the accesses to private memory that the program frees, as far as they are ordered
    /// before the calling thread. The allocator orders them before those of the memory's next
    /// owner. Returns an operation in flight that uses the memory, if there is one.
    pub fn forget_freed(&self, memory: Range<usize>) -> Option<UsedMemory> {
        // Most memory that is freed was never watched.
        watched_parts(&memory).next()?;

        self.with_accessing(|thread| {
            let view = View::of(&thread.clock);
            let mut is_changed = false;
            let mut used = None;
            for part in watched_parts(&memory) {
                let addr = part.page_addr + part.bytes.start;
                part.page.forget(part.bytes, |old| {
                    let is_done = old.actor == thread.actor || view.covers(old);
                    is_changed |= is_done;
                    if !is_done && self.is_operation(old) && used.is_none() {
                        used = Some(UsedMemory {
                            freed: memory.clone(),
                            addr,
                            operation: *old,
                        });
                    }
                    is_done
                });
            }

            // The cache relies on the records that were forgotten.
            if is_changed {
                known::forget();
            }
            used
        })?
    }

    /// Reports that `call` has freed memory that an operation in flight uses. The operation's
    /// accesses to the memory are then forgotten, since the next owner has no part in this race.
    /// Does nothing if Rushmem, UCX or libfabric makes the call, since what they free is theirs.
    pub fn report_freed(&self, call: &'static str, used: UsedMemory) {
        let UsedMemory {
            freed,
            addr,
            operation,
        } = used;
        self.with_accessing(|thread| {
            // Only here, where a nested call is not recorded: unwinding the stack may allocate a
            // block in the freed memory, and free it.
            if sites::is_called_by_library() {
                return;
            }

            let access = AccessSite {
                kind: ShadowKind::STORE,
                site: sites::of_call(&self.areas, call),
                nbytes: 0,
            };
            let free = access.record(thread.stamp());
            self.reporter.race(Memory::Private(addr), &free, &operation);

            for part in watched_parts(&freed) {
                part.page.forget(part.bytes, |old| {
                    old.actor == operation.actor && old.epoch <= operation.epoch
                });
            }
        });
    }

    /// Returns true if an operation in flight, not a thread, makes the access.
    fn is_operation(&self, record: &ShadowRecord) -> bool {
        let info = ActorInfo::find(&self.areas, record.actor);
        !matches!(info.role, ActorRole::Thread(_))
    }
}
