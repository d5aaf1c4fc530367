//! Finds which function an instruction calls.
//!
//! A function that ends by a jump to another one has no frame. The call in its caller still names
//! it: through the table of the dynamic linker, if the function is in a shared library.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Maximum number of jumps between a call and the function: one through an entry of the table, and
/// one through the table's second part.
const MAX_JUMPS: usize = 2;

/// The memory of this process, which is read by the kernel: an address without memory is an error.
pub(crate) struct Memory(File);

impl Memory {
    pub(crate) fn open() -> Option<Memory> {
        File::open("/proc/self/mem").ok().map(Memory)
    }

    fn bytes<const N: usize>(&self, address: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, address as u64).ok()?;
        Some(bytes)
    }

    fn word(&self, address: usize) -> Option<usize> {
        self.bytes(address).map(usize::from_ne_bytes)
    }

    /// Returns the function that the call before a return address calls; `None` if the instruction
    /// does not say, as in a call of a pointer.
    pub(crate) fn called_before(&self, return_address: usize) -> Option<usize> {
        let mut target = self.target_of_call(return_address)?;
        for _ in 0..MAX_JUMPS {
            match self.target_of_table(target) {
                Some(next) => target = next,
                None => break,
            }
        }
        Some(target)
    }
}

#[cfg(target_arch = "x86_64")]
impl Memory {
    fn target_of_call(&self, return_address: usize) -> Option<usize> {
        let bytes: [u8; 6] = self.bytes(return_address.checked_sub(6)?)?;
        let distance = i32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
        let operand = return_address.wrapping_add_signed(distance as isize);
        match bytes {
            // `call *operand(%rip)`
            [0xff, 0x15, ..] => self.word(operand),
            // `call operand`
            [_, 0xe8, ..] => Some(operand),
            _ => None,
        }
    }

    /// Returns the function of an entry of the linker's table, `jmp *operand(%rip)`.
    fn target_of_table(&self, entry: usize) -> Option<usize> {
        const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        const BND: [u8; 1] = [0xf2];

        // This instruction, and then this prefix, may come before the jump.
        let mut jump = entry;
        if self.bytes::<4>(jump)? == ENDBR64 {
            jump += ENDBR64.len();
        }
        if self.bytes::<1>(jump)? == BND {
            jump += BND.len();
        }

        let [0xff, 0x25, distance @ ..] = self.bytes::<6>(jump)? else {
            return None;
        };
        let end = jump + 6;
        self.word(end.wrapping_add_signed(i32::from_le_bytes(distance) as isize))
    }
}

#[cfg(target_arch = "aarch64")]
impl Memory {
    fn target_of_call(&self, return_address: usize) -> Option<usize> {
        let call = return_address.checked_sub(4)?;
        let instruction = u32::from_le_bytes(self.bytes(call)?);
        // `bl`, with a distance of 26 bits in instructions.
        let is_call = instruction >> 26 == 0b100101;
        let distance = (instruction << 6) as i32 >> 6;
        if !is_call {
            return None;
        }
        Some(call.wrapping_add_signed(4 * distance as isize))
    }

    /// Returns the function of an entry of the linker's table: `adrp x16, page` and
    /// `ldr x17, [x16, offset]`.
    fn target_of_table(&self, entry: usize) -> Option<usize> {
        const BTI: u32 = 0xd503_245f;
        let first = u32::from_le_bytes(self.bytes(entry)?);
        // This instruction may come before the two.
        let start = if first == BTI { entry + 4 } else { entry };

        // The masks leave out the fields that differ: the page, and the offset.
        let adrp = u32::from_le_bytes(self.bytes(start)?);
        let ldr = u32::from_le_bytes(self.bytes(start + 4)?);
        let is_entry = adrp & 0x9f00_001f == 0x9000_0010 && ldr & 0xffc0_03ff == 0xf940_0211;
        if !is_entry {
            return None;
        }

        // A signed number of 21 bits, of pages from that of the instruction, in two fields; and a
        // number of 12 bits, of words.
        let pages = ((adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3) << 11;
        let pages = (pages as i32 >> 11) as isize;
        let page = (start & !0xfff).wrapping_add_signed(pages * 0x1000);
        self.word(page + (ldr >> 10 & 0xfff) as usize * 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stack, Symbols};

    /// The unwinder is in a shared library.
    #[test]
    fn a_call_names_a_function_of_a_shared_library() {
        let memory = Memory::open().expect("the memory of this process");
        let stack = Stack::capture();
        let mut symbols = Symbols::default();
        let mut called = stack
            .addresses()
            .iter()
            .filter_map(|address| symbols.name_at(memory.called_before(address + 1)?));
        assert!(called.any(|name| name == "_Unwind_Backtrace"));
    }
}
