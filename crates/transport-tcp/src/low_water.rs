//! The low-water mark of a socket: the number of bytes that must have arrived before the kernel
//! wakes threads that sleep.
//!
//! On a slow network each packet of a long body would wake the service thread, which costs the
//! program more CPU time than the copy of the bytes: 0.25 s instead of 0.05 s for 32 MiB at 100
//! Mbit/s. The mark never exceeds the rest of the body, so the last bytes are always reported.

use crate::sys;
use rushmem_system::thread::is_service;
use std::io;
use std::os::fd::AsFd;

/// The mark for long bodies. It leads to few wakes, and is a fraction of the kernel's buffer, so
/// that the peer can send more meanwhile.
const AT_ONCE: usize = 32 << 10;

/// The mark that is set.
pub(crate) struct LowWater(usize);

impl Default for LowWater {
    fn default() -> LowWater {
        LowWater(1)
    }
}

impl LowWater {
    /// Updates the low-water mark after a receive by this thread, with `rest` bytes to follow.
    pub(crate) fn follow(&mut self, socket: impl AsFd, rest: usize) -> io::Result<()> {
        let next = self.next(rest, is_service());
        if next != self.0 {
            sys::set_low_water(socket, next)?;
            self.0 = next;
        }
        Ok(())
    }

    /// Returns the next low-water mark. Only the service thread, which will sleep (`sleeps`),
    /// raises it, for long bodies.
    fn next(&self, rest: usize, sleeps: bool) -> usize {
        let most = if sleeps && rest >= AT_ONCE {
            AT_ONCE
        } else {
            self.0
        };

        rest.min(most).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_awaited_than_comes() {
        let low = LowWater(1);
        let high = LowWater(AT_ONCE);

        assert_eq!(low.next(AT_ONCE, true), AT_ONCE);
        assert_eq!(
            low.next(AT_ONCE - 1, true),
            1,
            "a short body comes at once anyway"
        );
        assert_eq!(
            low.next(10 * AT_ONCE, false),
            1,
            "a thread that polls asks by itself"
        );

        for sleeps in [false, true] {
            assert_eq!(high.next(10 * AT_ONCE, sleeps), AT_ONCE);
            assert_eq!(high.next(100, sleeps), 100, "the end of a body");
            assert_eq!(high.next(0, sleeps), 1, "the next one");
        }
    }
}
