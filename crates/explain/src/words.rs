//! The words of waits: their values as the types of C have them, and whether they compare.

use crate::status::{Subject, Wait, Word, Words};

/// The words of a wait, if it waits for words.
pub fn words_of(wait: &Wait) -> Option<&Words> {
    match &wait.subject {
        Subject::Words(words) => Some(words),
        _ => None,
    }
}

/// Whether the value of a word compares as it is waited for; `None` for an unknown comparison.
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

/// Whether words of a wait compare already, so that it is about to end. `values` are those of its
/// words.
pub fn are_satisfied(wait: &Wait, values: &[Option<u64>]) -> bool {
    let Some(words) = words_of(wait) else { return false };
    let compares = |index: usize| {
        let value = values.get(index).copied().flatten();
        value.and_then(|value| compares(&words.words[index], &words.comparison, value))
            == Some(true)
    };
    let mut indices = 0..words.words.len();
    if words.all {
        words.more == 0 && !words.words.is_empty() && indices.all(compares)
    } else {
        indices.any(compares)
    }
}

/// The value of a word in decimal.
pub fn number(word: &Word, value: u64) -> String {
    if word.signed { signed(word, value).to_string() } else { unsigned(word, value).to_string() }
}

/// The bits of a word of 64 that the word does not have.
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
    use crate::status::Place;

    fn word(nbytes: u8, signed: bool, wanted: u64) -> Word {
        let place = Place::Other { address: 0 };
        Word { place, in_memfd: None, nbytes, signed, wanted }
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
