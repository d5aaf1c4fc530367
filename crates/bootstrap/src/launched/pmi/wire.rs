//! The wire format of PMI: requests to a process manager and its replies, as bytes, and values as
//! texts of limited length.
//!
//! It does no I/O and does not interpret commands. A message of PMI-1 is a line of words, one of
//! PMI-2 a body after its length in six characters. Both are parsed as pairs of key and value,
//! since managers differ in the order of pairs and in which ones they omit.

use std::fmt;

use crate::base64;

/// Maximum size of a reply.
const LIMIT: usize = 64 * 1024;

/// Number of characters of the length in PMI-2: spaces, then digits.
const LENGTH: usize = 6;

/// The separator between the number of texts and the data in the first one.
const MARK: char = '.';

/// The version of PMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// PMI-1: `cmd=get key=a` and a newline.
    One,
    /// PMI-2: `    20cmd=kvs-get;key=a;`.
    Two,
}

/// A request or a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PmiMessage(Vec<(String, String)>);

impl PmiMessage {
    /// Returns the value of the first pair with this key.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the command: the value of the key `cmd`.
    pub(crate) fn command(&self) -> &str {
        self.value("cmd").unwrap_or_default()
    }
}

impl fmt::Display for PmiMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        f.write_str(&pairs.join(" "))
    }
}

/// The error of bytes that are not messages of PMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Encodes a request. In PMI-1, values must not contain spaces or newlines.
pub(crate) fn encode(dialect: Dialect, command: &str, pairs: &[(&str, &str)]) -> Vec<u8> {
    let all = [("cmd", command)].into_iter().chain(pairs.iter().copied());
    match dialect {
        Dialect::One => {
            let words: Vec<String> = all.map(|(key, value)| format!("{key}={value}")).collect();
            (words.join(" ") + "\n").into_bytes()
        }
        Dialect::Two => {
            let body: String = all
                .map(|(key, value)| format!("{key}={};", value.replace(';', ";;")))
                .collect();
            format!("{:LENGTH$}{body}", body.len()).into_bytes()
        }
    }
}

/// Splits a stream of bytes, which is received in any pieces, into replies.
#[derive(Debug)]
pub(crate) struct PmiDecoder {
    dialect: Dialect,
    buffer: Vec<u8>,
}

impl PmiDecoder {
    pub(crate) fn new(dialect: Dialect) -> PmiDecoder {
        PmiDecoder {
            dialect,
            buffer: Vec::new(),
        }
    }

    /// Changes the format of the following messages: PMI-2 is opened with a line of PMI-1.
    pub(crate) fn switch(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next whole reply; `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the bytes cannot be a reply.
    pub(crate) fn take(&mut self) -> Result<Option<PmiMessage>, Malformed> {
        let (body, used) = match self.dialect {
            Dialect::One => match self.buffer.iter().position(|&byte| byte == b'\n') {
                Some(end) => (0..end, end + 1),
                None if self.buffer.len() > LIMIT => return Err(Malformed),
                None => return Ok(None),
            },
            Dialect::Two => {
                let Some(digits) = self.buffer.get(..LENGTH) else {
                    return Ok(None);
                };
                let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
                let length: usize = digits.trim().parse().map_err(|_| Malformed)?;
                if length > LIMIT {
                    return Err(Malformed);
                }

                let end = LENGTH + length;
                if self.buffer.len() < end {
                    return Ok(None);
                }
                (LENGTH..end, end)
            }
        };

        let text = std::str::from_utf8(&self.buffer[body]).map_err(|_| Malformed)?;
        let message = match self.dialect {
            Dialect::One => PmiMessage(text.split_whitespace().filter_map(pair).collect()),
            Dialect::Two => parse_body(text),
        };
        self.buffer.drain(..used);
        Ok(Some(message))
    }
}

fn pair(text: &str) -> Option<(String, String)> {
    text.split_once('=')
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// Parses the pairs of a body of PMI-2. A semicolon ends a pair; two semicolons are one within a
/// value.
fn parse_body(body: &str) -> PmiMessage {
    let mut pairs = Vec::new();
    let mut current = String::new();
    let mut characters = body.chars().peekable();
    while let Some(character) = characters.next() {
        let is_doubled = character == ';' && characters.next_if_eq(&';').is_some();
        if character == ';' && !is_doubled {
            pairs.extend(pair(&std::mem::take(&mut current)));
        } else {
            current.push(character);
        }
    }
    pairs.extend(pair(&current));
    PmiMessage(pairs)
}

/// Encodes `bytes` as one or more texts of at most `limit` characters, since a process manager
/// stores only short texts. The first one begins with the number of texts.
///
/// # Panics
/// If `limit` is below 16.
pub(crate) fn split(bytes: &[u8], limit: usize) -> Vec<String> {
    assert!(
        limit >= 16,
        "a manager's values have room for more than {limit} characters"
    );

    // The number of texts has at most as many digits as the length of the whole text. All texts
    // leave the room that the first one needs for that number and for the mark.
    let text = base64::encode(bytes);
    let digits = text.len().to_string().len().min(limit - 2);
    let data = limit - digits - 1;
    let mut texts: Vec<String> = text
        .as_bytes()
        .chunks(data)
        .map(|part| std::str::from_utf8(part).expect("ASCII").to_owned())
        .collect();

    // No bytes are one empty text.
    if texts.is_empty() {
        texts.push(String::new());
    }
    texts[0] = format!("{}{MARK}{}", texts.len(), texts[0]);
    texts
}

/// Decodes the texts of [`split`]; `part(i)` returns the `i`-th one. Returns `None` if they are
/// invalid.
///
/// # Errors
/// The errors of `part`.
pub(crate) fn join<E>(
    mut part: impl FnMut(usize) -> Result<String, E>,
) -> Result<Option<Vec<u8>>, E> {
    let first = part(0)?;
    let Some((count, data)) = first.split_once(MARK) else {
        return Ok(None);
    };
    let Ok(count) = count.parse::<usize>() else {
        return Ok(None);
    };

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

    fn all(
        decoder: &mut PmiDecoder,
        stream: &[u8],
        slice: usize,
    ) -> Result<Vec<PmiMessage>, Malformed> {
        let mut messages = Vec::new();
        for slice in stream.chunks(slice) {
            decoder.push(slice);
            while let Some(message) = decoder.take()? {
                messages.push(message);
            }
        }
        Ok(messages)
    }

    #[test]
    fn managers_may_order_pairs_as_they_like() {
        let hydra = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
        let slurm = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
        for line in [hydra, slurm] {
            let mut decoder = PmiDecoder::new(Dialect::One);
            let messages = all(&mut decoder, line.as_bytes(), 7).expect("a reply");
            let [message] = &messages[..] else {
                panic!("{messages:?}")
            };
            assert_eq!(
                (message.command(), message.value("rc")),
                ("response_to_init", Some("0"))
            );
            assert_eq!(message.value("pmi_version"), Some("1"));
            assert_eq!(message.value("msg"), None);
        }
    }

    #[test]
    fn pmi_2_is_opened_with_a_line() {
        let mut decoder = PmiDecoder::new(Dialect::One);
        decoder.push(b"cmd=response_to_init pmi_version=2 rc=0\n    22cmd=fullinit-respo");
        assert_eq!(
            decoder.take().expect("a line").expect("whole").command(),
            "response_to_init"
        );

        decoder.switch(Dialect::Two);
        assert_eq!(decoder.take(), Ok(None));
        decoder.push(b"nse;");
        assert_eq!(
            decoder.take().expect("a body").expect("whole").command(),
            "fullinit-response"
        );
    }

    #[test]
    fn what_is_no_pmi_is_refused() {
        let mut decoder = PmiDecoder::new(Dialect::Two);
        decoder.push(b"cmd=get");
        assert_eq!(decoder.take(), Err(Malformed));

        let mut decoder = PmiDecoder::new(Dialect::Two);
        decoder.push(b"999999");
        assert_eq!(decoder.take(), Err(Malformed));

        let mut decoder = PmiDecoder::new(Dialect::One);
        decoder.push(&vec![b'x'; LIMIT + 1]);
        assert_eq!(decoder.take(), Err(Malformed));
    }

    proptest! {
        #[test]
        fn requests_are_read_as_they_were_written(
            messages in prop::collection::vec(("[a-z-]{1,9}", prop::collection::vec(("[a-z]{1,5}", "[!-~]{0,30}"), 0..5)), 1..5),
            two in any::<bool>(),
            slice in 1_usize..40,
        ) {
            let dialect = if two { Dialect::Two } else { Dialect::One };
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for (command, pairs) in &messages {
                let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
                stream.extend(encode(dialect, command, &pairs));
                let all = [("cmd", command.as_str())].into_iter().chain(pairs);
                expected.push(PmiMessage(all.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()));
            }
            prop_assert_eq!(super::tests::all(&mut PmiDecoder::new(dialect), &stream, slice), Ok(expected));
        }

        #[test]
        fn invalid_input_never_panics(stream in prop::collection::vec(any::<u8>(), 0..300), two in any::<bool>()) {
            let dialect = if two { Dialect::Two } else { Dialect::One };
            let _ = all(&mut PmiDecoder::new(dialect), &stream, 11);
        }
    }

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
        fn invalid_texts_never_panic(text in "[ -~]{0,40}") {
            let _ = join(|index| if index < 9 { Ok(text.clone()) } else { Err(()) });
        }
    }
}
