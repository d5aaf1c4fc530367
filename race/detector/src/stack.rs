//! The stack of the calling thread: the addresses to which its functions return.
//!
//! To unwind it takes microseconds. A loop has the same stack again and again, which is recognized
//! by the places in memory where these addresses were.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use std::cell::RefCell;
use std::collections::HashMap;

/// Frames that are looked at.
const DEPTH: usize = 24;
/// Stacks that are remembered for a routine and a depth of the stack, and such pairs.
const RECENT: usize = 16;
const PAIRS: usize = 1024;

/// The addresses of a stack, from the innermost function on.
pub struct Stack {
    addresses: [usize; DEPTH],
    /// Where each address is in memory: right below the frame that it is of, as x86-64 has it. 0 if
    /// it is not there.
    places: [usize; DEPTH],
    n: usize,
}

/// A stack that was seen: its addresses with their places in memory, and the number of its site.
struct KnownStack {
    returns: Box<[(usize, usize)]>,
    site: u32,
}

thread_local! {
    /// By the name of a routine, and the address of a variable of the function that asks.
    static KNOWN: RefCell<HashMap<(usize, usize), Vec<KnownStack>>> = RefCell::default();
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        f: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

impl Stack {
    /// Returns the stack of the function that calls this.
    #[inline(always)]
    pub fn unwind() -> Stack {
        let mut stack = Stack { addresses: [0; DEPTH], places: [0; DEPTH], n: 0 };
        // SAFETY: the function gets the stack for the time of the call alone.
        unsafe { _Unwind_Backtrace(note_frame, (&raw mut stack).cast()) };
        stack
    }

    /// Returns addresses in the calls.
    pub fn calls(&self) -> Vec<usize> {
        // Return addresses are behind the call.
        self.addresses[..self.n].iter().map(|address| address - 1).collect()
    }

    /// Remembers the site of the stack of a function, of which `variable` is an address and calls
    /// `routine`.
    pub fn remember(&self, routine: usize, variable: usize, site: u32) {
        // The first one is in the function itself.
        let outer = 1..self.n.max(1);
        let returns = outer.map(|i| (self.places[i], self.addresses[i])).collect::<Box<[_]>>();
        if returns.is_empty() || returns.iter().any(|(place, _)| *place <= variable) {
            return;
        }
        let _ = KNOWN.try_with(|known| {
            let mut known = known.borrow_mut();
            if known.len() >= PAIRS {
                known.clear();
            }
            let all = known.entry((routine, variable)).or_default();
            if all.len() >= RECENT {
                all.clear();
            }
            all.push(KnownStack { returns, site });
        });
    }
}

/// Returns the site of the stack of the calling function, if it is remembered.
pub fn known_site(routine: usize, variable: usize) -> Option<u32> {
    let is_here = |&(place, address): &(usize, usize)| {
        let place = std::ptr::with_exposed_provenance::<usize>(place);
        // SAFETY: the first place is in the frame of the caller, as it was when the variable had this
        // address. Where a frame has the address that it had, the next place is above it, in the
        // frames around it, as before; and none is read after one that differs.
        unsafe { place.read_volatile() == address }
    };
    let of = |all: &Vec<KnownStack>| {
        all.iter().find(|stack| stack.returns.iter().all(is_here)).map(|stack| stack.site)
    };
    let found = KNOWN.try_with(|known| known.borrow().get(&(routine, variable)).and_then(of));
    found.ok().flatten()
}

extern "C" fn note_frame(context: *mut c_void, stack: *mut c_void) -> c_int {
    // SAFETY: the stack of `unwind`, which nobody else uses now.
    let stack = unsafe { &mut *stack.cast::<Stack>() };
    // SAFETY: the context of the unwinder.
    let address = unsafe { _Unwind_GetIP(context) };
    if stack.n == DEPTH || address == 0 {
        return 5;
    }
    // SAFETY: the same context.
    let place = unsafe { _Unwind_GetCFA(context) }.wrapping_sub(size_of::<usize>());
    let is_there = cfg!(target_arch = "x86_64") && {
        // SAFETY: below the frame is what its call has pushed.
        unsafe { std::ptr::with_exposed_provenance::<usize>(place).read_volatile() == address }
    };
    stack.addresses[stack.n] = address;
    stack.places[stack.n] = if is_there { place } else { 0 };
    stack.n += 1;
    0
}
