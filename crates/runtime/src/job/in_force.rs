//! The table of algorithms that collectives use.
//!
//! It is read on every collective, so it is behind a pointer and not behind a lock. Only a program
//! that measures algorithms ever replaces it.
#![allow(unsafe_code)]

use rushmem_collectives::choice::Table;
use std::ptr::from_ref;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A table that lives as long as the process.
#[derive(Debug)]
pub(crate) struct InForce(AtomicPtr<Table>);

impl InForce {
    pub(crate) fn new(table: Table) -> InForce {
        InForce(AtomicPtr::new(Box::leak(Box::new(table))))
    }

    #[inline]
    pub(crate) fn table(&self) -> &'static Table {
        // SAFETY: it was made of a reference that is valid forever, and nothing is ever written
        // through it; Acquire makes visible what the maker of the table wrote.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Returns the former one.
    pub(crate) fn replace(&self, table: &'static Table) -> &'static Table {
        let former = self.table();
        self.0.store(from_ref(table).cast_mut(), Ordering::Release);
        former
    }
}
