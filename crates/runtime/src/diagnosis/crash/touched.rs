//! Describes the access that has caused a crash: to an address without usable memory, a call of an
//! address that is not a function, or an access beyond the end of the stack.

use super::signal::Crash;
use crate::api::heap;
use core::ffi::c_int;
use rushmem_system::maps;

/// Addresses below this one count as offsets from a null pointer.
const NEAR_NULL: usize = 64 << 10;

/// The distance below the stack pointer within which functions may access the stack before they
/// change the pointer.
const BEYOND_TOP: usize = 64 << 10;

/// The code of a fault at an address that is not canonical. The processor does not report such an
/// address.
const SI_KERNEL: c_int = 0x80;
/// The code of an access that the protection of the memory does not allow.
const SEGV_ACCERR: c_int = 2;
/// The code of an access beyond the end of a file, or to memory that the kernel cannot provide.
const BUS_ADRERR: c_int = 2;

/// Returns true if the signal reports an access to memory.
fn is_fault(crash: &Crash) -> bool {
    matches!(crash.signal, libc::SIGSEGV | libc::SIGBUS) && crash.code > 0
}

/// Returns true if the program has called an address that is not a function.
pub(super) fn is_call(crash: &Crash) -> bool {
    is_fault(crash) && crash.address == crash.registers.instruction
}

/// The access that has caused a crash.
pub(super) struct Touched {
    /// A clause that describes it.
    pub(super) what: String,
    /// The remedy, if there is a better one than that of the crash's place in the program.
    pub(super) remedy: Option<String>,
}

/// Describes the access; `None` if the signal does not report an access to memory.
pub(super) fn describe(crash: &Crash) -> Option<Touched> {
    if !is_fault(crash) {
        return None;
    }

    // The most certain cause comes first: an allocator that finds its own data damaged, then a
    // stack that has overflowed.
    if let Some(call) = heap::allocating_call() {
        return Some(Touched {
            what: format!("the symmetric heap is damaged, which {call} has found"),
            remedy: Some(heap::DAMAGED.into()),
        });
    }
    if overflows(crash, &maps::text()) {
        return Some(overflow(crash.is_first_thread));
    }

    let address = crash.address;
    let what = match crash.code {
        _ if is_call(crash) && address < NEAR_NULL => "it called a null function pointer".into(),
        _ if is_call(crash) => format!("it called {address:#x}, where no function is"),
        SI_KERNEL => "it accessed an address that no memory has".into(),
        _ if address < NEAR_NULL => format!("it accessed address {address:#x} (a null pointer)"),
        SEGV_ACCERR if crash.signal == libc::SIGSEGV => {
            format!("it accessed address {address:#x}, which is protected")
        }
        BUS_ADRERR if crash.signal == libc::SIGBUS => {
            format!("it accessed address {address:#x}, whose memory cannot be had")
        }
        _ if crash.signal == libc::SIGBUS => format!("it accessed address {address:#x}"),
        _ => format!("it accessed address {address:#x}, where no memory is"),
    };
    Some(Touched { what, remedy: None })
}

/// Returns true if the access was below the memory of the stack and near or above the stack
/// pointer.
fn overflows(crash: &Crash, maps: &[u8]) -> bool {
    let top = crash.registers.stack;
    let stack = maps::parse(maps)
        .filter(|mapping| mapping.is_writable)
        .find(|mapping| top < mapping.addresses.end);
    stack.is_some_and(|stack| {
        (top.saturating_sub(BEYOND_TOP)..stack.addresses.start).contains(&crash.address)
    })
}

fn overflow(is_first_thread: bool) -> Touched {
    if !is_first_thread {
        return Touched {
            what: "the stack of a thread overflowed".into(),
            remedy: Some(
                "allocate large arrays, or raise the limit (OMP_STACKSIZE, pthread_attr_setstacksize, RUST_MIN_STACK)".into(),
            ),
        };
    }
    let limit = rushmem_system::limits::getrlimit(rustix::process::Resource::Stack)
        .current
        .map_or_else(String::new, |bytes| format!(", now {} KiB", bytes >> 10));
    Touched {
        what: "its stack overflowed".into(),
        remedy: Some(format!(
            "allocate large arrays or make them static, or raise the limit (ulimit -s{limit})"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::signal::Registers;
    use super::*;

    #[test]
    fn an_overflow_is_between_the_top_of_the_stack_and_its_memory() {
        let maps = b"\
1000000-2000000 rw-p 00000000 00:00 0
3000000-3001000 ---p 00000000 00:00 0
3001000-4000000 rw-p 00000000 00:00 0
";
        let overflows = |stack, address| {
            let crash = Crash {
                signal: libc::SIGSEGV,
                code: 1,
                address,
                registers: Registers {
                    instruction: 0x10,
                    stack,
                },
                is_first_thread: true,
                launcher: 1,
            };
            overflows(&crash, maps)
        };

        // A deep call.
        assert!(overflows(0x3001040, 0x3000ff8));

        // A large array: the call behind it, and an element.
        assert!(overflows(0x2800000, 0x27ffff8));
        assert!(overflows(0x2800000, 0x2ff0000));

        // A bad pointer, while the stack has room.
        assert!(!overflows(0x3f00000, 0x3000ff8));
        assert!(!overflows(0x3001040, 0x2800000));
        assert!(!overflows(0x3001040, 0x5000000));
    }
}
