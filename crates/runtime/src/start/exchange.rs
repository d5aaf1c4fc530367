//! The second step of a start: each PE reserves addresses and pages for its heap, and sends a
//! record to all others: values that must be equal, and values that only this PE knows.
//!
//! The addresses of symmetric objects are the same on all PEs where that is possible, so that
//! programs can keep pointers in symmetric memory. Each PE tries to reserve a few ranges, and all
//! use the first one that all PEs could reserve. The address of static data is where the kernel
//! loads the program.

use super::error::StartError;
use super::identify::{Identified, Place};
use super::record::{OwnValues, StartupRecord};
use core::ffi::c_int;
use rushmem_bootstrap::{Membership, Records};
use rushmem_heap::huge_pages::PageSize;
use rushmem_heap::{Layout, Reservation, ReservedAt, ReservedPages};
use rushmem_pe::constants::SHMEM_THREAD_MULTIPLE;
use rushmem_pe::memory::areas::{Areas, RECEIVE_BUFFER_SETS};
use rushmem_pe::memory::huge_pages;
use rushmem_pe::settings::Settings;
use rushmem_system::codec::{decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;

/// A PE that knows the records of all PEs.
pub(super) struct Exchanged {
    pub(super) identified: Identified,
    pub(super) plan: MemoryPlan,
    pub(super) reserved: Vec<Reservation>,
    pub(super) pages: Option<ReservedPages>,
    pub(super) records: Records<StartupRecord>,
}

impl Identified {
    /// Exchanges the records of all PEs.
    ///
    /// # Errors
    /// If a PE has another build, or its record is damaged.
    pub(super) fn exchange(mut self) -> Result<Exchanged, StartError> {
        rushmem_system::log::debug!("start: exchanges the records of all PEs");
        let n_pes = self.place.n_pes;
        let n_local = self.place.n_local;
        let local = self.place.local;

        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(StartError::NoSecret)?;

        let plan = MemoryPlan::of_pe(&self.settings, n_pes, self.thread_level);
        let mut reserved = Vec::new();
        let mut pages = None;
        if let Some(layout) = &plan.layout {
            reserved = Reservation::all(layout, n_local, local);
            pages = huge_pages::reserve(&self.settings, layout, n_local, local);
        }

        let own = OwnValues {
            secret,
            reserved: reserved.iter().map(Reservation::slice).collect(),
            reserved_pages: pages.as_ref().and_then(|pages| pages.location().ok()),
            ..OwnValues::of_process(&self.algorithms)
        };
        let own = own.record(&self.place, &self.settings, self.thread_level);
        let records = self
            .build
            .exchange_with_equal_builds(&mut self.membership, &encode(&own))?;
        let records = decoded(records)?;

        if !have_one_plan(&records) {
            // Some PEs have planned larger areas than others. All use the smaller ones, for which
            // the ranges and pages were not reserved.
            return Ok(Exchanged {
                plan: MemoryPlan::new(&self.settings, n_pes, 1),
                identified: self,
                reserved: Vec::new(),
                pages: None,
                records: without_reservations(records),
            });
        }

        if are_pages_reserved(&records) {
            pages = self.share_pages(pages, &plan, &records)?;
        }
        Ok(Exchanged {
            identified: self,
            plan,
            reserved,
            pages,
            records,
        })
    }

    /// Returns the reserved pages for the heaps of this machine, if all of its PEs can open them.
    /// The first PE of each machine has reserved them, and the others open them.
    fn share_pages(
        &mut self,
        own: Option<ReservedPages>,
        plan: &MemoryPlan,
        records: &Records<StartupRecord>,
    ) -> Result<Option<ReservedPages>, StartError> {
        let mut pages = own;
        if pages.is_none()
            && let Some(reserved) = pages_of_machine(&self.place, records)
            && let Some(layout) = &plan.layout
        {
            match ReservedPages::open(layout, reserved) {
                Ok(opened) => pages = Some(opened),
                Err(why) => rushmem_system::log::debug!(%why, "cannot open reserved pages"),
            }
        }

        let has_opened = self.membership.exchange(&[u8::from(pages.is_some())])?;
        Ok(pages.filter(|_| machine_has_opened(&self.place, &has_opened)))
    }
}

/// The memory of a PE as it is planned before it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    pub(super) areas: Areas,
    /// `None` if the heap does not fit into an address space.
    pub(super) layout: Option<Layout>,
}

impl MemoryPlan {
    /// Plans the memory of a PE of a job whose PEs all have its thread level. If threads of a PE
    /// may be in several collectives at once, there are several sets of receive buffers, which
    /// belong to different teams.
    pub(super) fn of_pe(settings: &Settings, n_pes: u32, thread_level: c_int) -> MemoryPlan {
        if thread_level >= SHMEM_THREAD_MULTIPLE {
            MemoryPlan::new(settings, n_pes, RECEIVE_BUFFER_SETS)
        } else {
            MemoryPlan::new(settings, n_pes, 1)
        }
    }

    pub(super) fn new(settings: &Settings, n_pes: u32, receive_buffer_sets: usize) -> MemoryPlan {
        // A heap of small pages fits into the layout for huge ones, too. That costs addresses only.
        let page = settings.huge_pages.page_size().unwrap_or(PageSize::Mib2);
        let areas = Areas::new(n_pes, receive_buffer_sets);
        MemoryPlan {
            areas,
            layout: Layout::new(settings.symmetric_size, areas.nbytes(), page),
        }
    }
}

/// Sends a value to all PEs, and returns the values of all.
pub(super) fn exchange_values<T: Serialize + DeserializeOwned>(
    membership: &mut Membership,
    own: &T,
) -> Result<Records<T>, StartError> {
    decoded(membership.exchange(&encode(own))?)
}

/// Decodes what all PEs have sent.
pub(super) fn decoded<T: DeserializeOwned>(sent: Records) -> Result<Records<T>, StartError> {
    sent.try_map(|bytes| decode(&bytes))
        .map_err(|(pe, why)| StartError::Data { pe, why })
}

/// Returns true if all PEs have planned their memory alike.
pub(super) fn have_one_plan(records: &Records<StartupRecord>) -> bool {
    let have_threads = records[0].has_threads();
    records
        .position(|record| record.has_threads() != have_threads)
        .is_none()
}

/// Returns the records as if no PE had reserved addresses or pages.
pub(super) fn without_reservations(records: Records<StartupRecord>) -> Records<StartupRecord> {
    let Ok(records) = records.try_map(|record| {
        Ok::<_, Infallible>(StartupRecord {
            reserved: Vec::new(),
            reserved_pages: None,
            ..record
        })
    });
    records
}

/// Returns true if the PEs of some machine have reserved pages. Then all PEs of the job exchange
/// whether they can open those of their machine.
pub(super) fn are_pages_reserved(records: &Records<StartupRecord>) -> bool {
    records
        .position(|record| record.reserved_pages.is_some())
        .is_some()
}

/// Returns the pages that the first PE of this machine has reserved, if it has.
pub(super) fn pages_of_machine(
    place: &Place,
    records: &Records<StartupRecord>,
) -> Option<ReservedAt> {
    let first = place.on_machine().next()?;
    records[first].reserved_pages
}

/// Returns true if all PEs of this machine have sent that they have opened the reserved pages.
pub(super) fn machine_has_opened(place: &Place, has_opened: &Records) -> bool {
    place.on_machine().all(|pe| has_opened[pe] == [1])
}
