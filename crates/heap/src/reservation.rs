//! Reserves ranges of addresses, of which the PEs of a job then choose one, so that the own slice
//! has the same address on all PEs.
//!
//! The candidates depend only on the sizes of the address space and of a slice, and lie where Linux
//! maps nothing by itself. The program may have mapped something there, so a reservation never
//! replaces a mapping.
#![allow(unsafe_code)]

use crate::layout::Layout;
use crate::mapping::Mapping;
use rushmem_system::limits::getrlimit;
use rustix::process::Resource;

/// The candidates for the start of the own slice, in 1,024ths of the address space, best first.
///
/// Linux loads programs from 2/3 of the address space on. It maps memory from the end of the
/// address space downwards or, where the stack is unlimited, from 1/3 upwards, and ASLR moves
/// either by 1/8 at most. The first place is in the middle between 1/3 + 1/8 and 2/3. The second
/// one is below 1/3 and above the shadow memory of `AddressSanitizer`. The third one is for
/// `x86_64`, where `ThreadSanitizer` reserves the other two and leaves this one to programs.
const PLACES: [usize; 3] = [576, 256, 1014];

/// A range for the slices of a node.
#[derive(Debug)]
pub struct Reservation {
    /// The start of the own slice.
    slice: usize,
    range: Mapping,
}

impl Reservation {
    /// Reserves the candidates whose addresses are free, for PE number `local` of `n_local` on its
    /// node. Returns them, best first.
    pub fn all(layout: &Layout, n_local: u32, local: u32) -> Vec<Reservation> {
        let Some(nbytes) = layout.node_bytes(n_local) else {
            return Vec::new();
        };
        // Reserved addresses count towards `ulimit -v`, so under a limit only one range is
        // reserved.
        let max_ranges = match getrlimit(Resource::As).current {
            Some(_) => 1,
            None => PLACES.len(),
        };

        let stride = layout.stride();
        let in_front = local as usize * stride;
        let end = end_of_addresses();

        let mut reserved = Vec::new();
        for place in PLACES {
            if reserved.len() == max_ranges {
                break;
            }

            // Slices begin at multiples of the stride.
            let slice = (end / 1024 * place) / stride * stride;
            // The slices of PEs with lower numbers precede this one.
            if slice <= in_front {
                continue;
            }
            // A range that is not free is no candidate on this PE, whatever is there.
            if let Ok(range) = Mapping::reserve(slice - in_front, nbytes) {
                reserved.push(Reservation { slice, range });
            }
        }
        reserved
    }

    /// Returns the address at which the own slice would begin.
    pub fn slice(&self) -> usize {
        self.slice
    }

    pub(crate) fn into_range(self) -> Mapping {
        self.range
    }
}

/// Returns the end of the addresses that a program can have: the first power of two above its
/// stack, at whose top the kernel stores the name of the program. Returns 0 if that address is not
/// known.
fn end_of_addresses() -> usize {
    // SAFETY: `getauxval` has no preconditions.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) };
    if name == 0 {
        return 0;
    }
    (name as usize).checked_next_power_of_two().unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::huge_pages::PageSize;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Lets one test at a time reserve addresses, since all tests of a process have the same
    /// candidates.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn own_slices_have_equal_addresses() {
        let _alone = alone();
        let layout = Layout::new(1 << 20, 1 << 16, PageSize::Mib2).expect("fits");
        let slices = |n, local| -> Vec<usize> {
            Reservation::all(&layout, n, local)
                .iter()
                .map(Reservation::slice)
                .collect()
        };

        let of_one = slices(1, 0);
        assert!(
            of_one.iter().all(|slice| slice % layout.stride() == 0),
            "{of_one:x?}"
        );
        assert!(!of_one.is_empty());

        for (n, local) in [(2, 0), (2, 1), (300, 0), (300, 299)] {
            assert_eq!(slices(n, local), of_one);
        }
    }

    #[test]
    fn what_is_taken_is_left_alone() {
        let _alone = alone();
        let layout = Layout::new(1 << 30, 1 << 16, PageSize::Mib2).expect("fits");
        let first = Reservation::all(&layout, 3, 1);
        let again = Reservation::all(&layout, 3, 1);
        for slice in again.iter().map(Reservation::slice) {
            assert!(
                first.iter().all(|reservation| reservation.slice() != slice),
                "{slice:#x}"
            );
        }
    }

    #[test]
    fn no_place_is_large_enough_for_everything() {
        let layout = Layout::new(1 << 60, 1, PageSize::Mib2).expect("fits an address");
        assert!(Reservation::all(&layout, 1, 0).is_empty());
    }
}
