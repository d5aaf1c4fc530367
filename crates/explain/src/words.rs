//! The words of waits: their values as the types of C have them, and whether they compare.

use crate::status::{Subject, Wait, Word, Words};

/// Returns the words of a wait, if it waits for words.
pub fn words_of(wait: &Wait) -> Option<&Words> {
    match &wait.subject {
        Subject::Words(words) => Some(words),
        _ => None,
    }
}

/// Returns whether the value of a word compares as it is waited for; `None` if the comparison is
/// unknown.
pub fn compares(word: &Word, comparison: &str, value: u64) -> Option<bool> {
    let ordering = if word.signed {
        signed(word, value).cmp(&signed(word, word.wanted))
    } else {
        unsigned(word, value).cmp(&unsigned(word, word.wanted))
    };
    match comparison {
        "==" => Some(ordering.is_eq()),
        "!=" => Some(ordering.is_ne()),
        ">" => Some(ordering.is_gt()),
        ">=" => Some(ordering.is_ge()),
        "<" => Some(ordering.is_lt()),
        "<=" => Some(ordering.is_le()),
        _ => None,
    }
}

impl Words {
    /// Returns the indices of the words that are not known to compare by these values.
    pub(crate) fn unmet(&self, values: &[Option<u64>]) -> Vec<usize> {
        let is_met = |index: &usize| {
            let value = values.get(*index).copied().flatten();
            let compares = |value| compares(&self.words[*index], &self.comparison, value);
            value.and_then(compares) == Some(true)
        };
        (0..self.words.len()).filter(|index| !is_met(index)).collect()
    }

    /// Returns true if the wait for them is about to end.
    pub(crate) fn are_satisfied(&self, values: &[Option<u64>]) -> bool {
        match (self.unmet(values).len(), self.words.len()) {
            (unmet, n) if self.all => unmet == 0 && n > 0 && self.more == 0,
            (unmet, n) => unmet < n,
        }
    }
}

/// Returns the value of a word in decimal.
pub fn number(word: &Word, value: u64) -> String {
    if word.signed { signed(word, value).to_string() } else { unsigned(word, value).to_string() }
}

/// Returns the bits of a word of 64 that the word does not have.
fn unused(word: &Word) -> u32 {
    64 - 8 * u32::from(word.nbytes.clamp(1, 8))
}

fn signed(word: &Word, value: u64) -> i64 {
    ((value << unused(word)) as i64) >> unused(word)
}

fn unsigned(word: &Word, value: u64) -> u64 {
    (value << unused(word)) >> unused(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::SymmetricLocation;

    fn word(nbytes: u8, signed: bool, wanted: u64) -> Word {
        let location = SymmetricLocation::Other { address: 0 };
        Word { location, in_memfd: None, nbytes, signed, wanted }
    }

    #[test]
    fn words_compare_by_size_and_sign() {
        let minus_one = word(4, true, u64::from(u32::MAX));
        assert_eq!(compares(&minus_one, ">", 0), Some(true));
        assert_eq!(number(&minus_one, minus_one.wanted), "-1");
        let unsigned = word(4, false, u64::from(u32::MAX));
        assert_eq!(compares(&unsigned, ">", 0), Some(false));
        assert_eq!(compares(&word(1, false, 1), "==", 0x101), Some(true));
        assert_eq!(compares(&word(8, true, 1), "~", 1), None);
    }
}
