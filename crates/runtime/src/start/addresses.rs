//! The addresses of symmetric objects: the same on all PEs where that is possible, so that programs
//! can keep pointers in symmetric memory.
//!
//! Each PE reserves what it can of a few ranges, and all take the first one that all PEs have.
//! Static data are where the kernel loads the program.

use super::record::StartupRecord;
use rushmem_bootstrap::Records;
use rushmem_heap::Reservation;
use rushmem_transport::Pe;

/// Returns where the heaps of all PEs begin; `None` if no range is free on all of them.
pub(super) fn of_heap(records: &Records<StartupRecord>) -> Option<usize> {
    let lacks = |slice: &usize| records.position(|record| !record.reserved.contains(slice));
    let on_all = |slice: &usize| lacks(slice).is_none();
    records[0].reserved.iter().copied().find(on_all)
}

/// Keeps the agreed reservation alone.
pub(super) fn keep(reserved: Vec<Reservation>, agreed: Option<usize>) -> Option<Reservation> {
    reserved.into_iter().find(|reservation| Some(reservation.slice()) == agreed)
}

/// Returns true if [`report`] will print addresses on some PE.
pub(super) fn are_shown() -> bool {
    rushmem_log::is_wanted!(DEBUG)
}

/// Prints with `SHMEM_DEBUG=2` which addresses are the same on all PEs, once for the job.
pub(super) fn report(me: Pe, records: &Records<StartupRecord>, heap: Option<usize>) {
    if me != Pe(0) || records.n_pes() == 1 {
        return;
    }
    match heap {
        Some(at) => rushmem_log::debug!("the symmetric heap begins at {at:#x} on all PEs"),
        None => rushmem_log::info!(
            "the symmetric heap begins at different addresses on the PEs: {}",
            obstacle(records)
        ),
    }
    let Some(statics) = records[0].statics_start else { return };
    let elsewhere = |start: &usize| *start != statics;
    let other = records.position(|record| record.statics_start.as_ref().is_some_and(elsewhere));
    match other.and_then(|pe| Some((pe, records[pe].statics_start?))) {
        None => rushmem_log::debug!("the static data begin at {statics:#x} on all PEs"),
        Some((pe, there)) => rushmem_log::debug!(
            "the static data begin at {statics:#x} on PE 0 and at {there:#x} on PE {pe}: `oshrun --no-aslr` \
             gives them one address"
        ),
    }
}

/// Explains why no range is free on all PEs.
fn obstacle(records: &Records<StartupRecord>) -> String {
    let none = |pe: u32| format!("PE {pe} could reserve no range of addresses for them");
    let Some(first) = records[0].reserved.first() else { return none(0) };
    match records.position(|record| !record.reserved.contains(first)) {
        Some(pe) if records[pe].reserved.is_empty() => none(pe),
        Some(pe) => {
            format!("PE {pe} has other memory at {first:#x}, and no other range is free on all")
        }
        None => unreachable!("the first range is free on all"),
    }
}
