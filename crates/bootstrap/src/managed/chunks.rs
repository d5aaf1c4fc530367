//! Splits bytes into texts of limited length, since a process manager stores only short texts.
//!
//! It is pure. The alphabet contains no character with a meaning in PMI-1 or PMI-2.

use crate::base64;

/// The separator between the number of texts and the data in the first one.
const MARK: char = '.';

/// Texts of at most `limit` characters that hold `bytes`; at least one. The first says how many
/// there are.
///
/// # Panics
/// When `limit` is below 16.
pub(crate) fn split(bytes: &[u8], limit: usize) -> Vec<String> {
    assert!(limit >= 16, "a manager's values have room for more than {limit} characters");
    let text = base64::encode(bytes);
    // Room for the number, which has at most as many digits as the length of the whole.
    let data = limit - text.len().to_string().len().min(limit - 2) - 1;
    let parts: Vec<&str> = text
        .as_bytes()
        .chunks(data)
        .map(|part| std::str::from_utf8(part).expect("ASCII"))
        .collect();
    let first = format!("{}{MARK}{}", parts.len().max(1), parts.first().unwrap_or(&""));
    std::iter::once(first).chain(parts.iter().skip(1).map(|part| (*part).to_owned())).collect()
}

/// Returns the bytes that [`split`] was given; `part(i)` is the `i`-th text. `None` when the texts
/// hold none.
///
/// # Errors
/// Those of `part`.
pub(crate) fn join<E>(
    mut part: impl FnMut(usize) -> Result<String, E>,
) -> Result<Option<Vec<u8>>, E> {
    let first = part(0)?;
    let Some((count, data)) = first.split_once(MARK) else { return Ok(None) };
    let Ok(count) = count.parse::<usize>() else { return Ok(None) };
    let mut text = data.to_owned();
    for index in 1..count {
        text += &part(index)?;
    }
    Ok(base64::decode(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    proptest! {
        #[test]
        fn bytes_survive_any_limit(bytes in prop::collection::vec(any::<u8>(), 0..3000), limit in 16_usize..1100) {
            let texts = split(&bytes, limit);
            prop_assert!(texts.iter().all(|text| text.len() <= limit && !text.is_empty()));
            prop_assert!(texts.iter().all(|text| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))));
            let joined = join(|index| Ok::<_, Infallible>(texts[index].clone()));
            prop_assert_eq!(joined, Ok(Some(bytes)));
        }

        #[test]
        fn invalid_input_never_panics(text in "[ -~]{0,40}") {
            let _ = join(|index| if index < 9 { Ok(text.clone()) } else { Err(()) });
        }
    }
}
