//! What an atomic operation does to its word, and how wide the word is: the part of its description
//! that the CPU's own operations need, too.

/// An atomic operation (OpenSHMEM 1.6, atomic memory operations). Increments are additions of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AmoOp {
    /// Return the value.
    Fetch,
    /// Store the operand.
    Set,
    /// Store the operand, return the old value.
    Swap,
    /// Store the operand if the value equals the condition, return the old value.
    CompareSwap,
    /// Add the operand, wrapping.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Add the operand as a floating-point number of the word's width.
    AddFloat,
}

impl AmoOp {
    /// All operations in the order of their numbers.
    pub const ALL: [AmoOp; 9] = [
        AmoOp::Fetch,
        AmoOp::Set,
        AmoOp::Swap,
        AmoOp::CompareSwap,
        AmoOp::Add,
        AmoOp::And,
        AmoOp::Or,
        AmoOp::Xor,
        AmoOp::AddFloat,
    ];

    /// Returns the operation of its encoded number, which is `op as u8`.
    #[inline]
    pub fn from_number(number: u8) -> Option<AmoOp> {
        AmoOp::ALL.get(usize::from(number)).copied()
    }
}

/// The size of the word of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AmoWidth {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

impl AmoWidth {
    /// Returns the width of a word of `nbytes` bytes; `None` unless these are 4 or 8.
    #[inline]
    pub fn from_nbytes(nbytes: u8) -> Option<AmoWidth> {
        match nbytes {
            4 => Some(AmoWidth::Four),
            8 => Some(AmoWidth::Eight),
            _ => None,
        }
    }

    /// Returns the number of bytes of the word.
    #[inline]
    pub fn nbytes(self) -> usize {
        match self {
            AmoWidth::Four => 4,
            AmoWidth::Eight => 8,
        }
    }
}
