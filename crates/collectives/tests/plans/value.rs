//! Symbolic contents of buffers. A value names its call and its members, so that values that were
//! mixed up cannot look right by chance.

/// The content of one part: the contributions of a run of members to a call, and how they were
/// combined. A run may wrap around the circle of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    call: usize,
    first: u32,
    end: u32,
    part: u32,
    /// Digest of the tree of combinations.
    tree: u64,
}

impl Value {
    /// Returns the content of part `part` of the source of `owner` when it enters `call`.
    pub fn source(call: usize, owner: u32, part: u32) -> Self {
        Self {
            call,
            first: owner,
            end: owner + 1,
            part,
            tree: 1,
        }
    }

    /// Returns the combination of two values; an error if they are not of adjacent runs in this
    /// order.
    pub fn combine(self, right: Self, n: u32) -> Result<Self, String> {
        let is_same_part = self.call == right.call && self.part == right.part;
        let end = self.end + (right.end - right.first);
        let follows = self.end % n == right.first && end - self.first <= n;
        if !is_same_part || !follows {
            return Err(format!("combined {self:?} with {right:?}"));
        }

        // The operands are mixed by different odd numbers, so that the digest depends on which of
        // them was combined before.
        let tree = self
            .tree
            .rotate_left(29)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(right.tree.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Ok(Self { end, tree, ..self })
    }

    /// Returns true if this is the contribution of members `0..end`, each once and in order.
    pub fn is_prefix(self, call: usize, end: u32, part: u32) -> bool {
        self.call == call && self.part == part && self.first == 0 && self.end == end
    }

    /// Returns true if this is the contribution of all members, each once and in order around the
    /// circle.
    pub fn is_circle(self, call: usize, n: u32, part: u32) -> bool {
        self.call == call && self.part == part && self.end - self.first == n
    }
}
