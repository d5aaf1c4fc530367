//! The wire format of PMI: requests to a process manager and its replies, as bytes.
//!
//! It does no I/O and does not know what the commands mean. PMI-1 sends lines of words, PMI-2
//! bodies after a length of six digits. Both are read as pairs of key and value, since managers
//! differ in the order of pairs and in which ones they omit.

use std::fmt;

/// Largest reply that is read.
const LIMIT: usize = 64 * 1024;

/// Digits of PMI-2's length.
const LENGTH: usize = 6;

/// Which of the two formats.
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
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns what it is.
    pub(crate) fn command(&self) -> &str {
        self.value("cmd").unwrap_or_default()
    }
}

impl fmt::Display for PmiMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&pairs.join(" "))
    }
}

/// A stream that is no PMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Returns the bytes of a request. PMI-1 has no way to write a space or a newline into a value;
/// callers send none.
pub(crate) fn encode(dialect: Dialect, command: &str, pairs: &[(&str, &str)]) -> Vec<u8> {
    let all = [("cmd", command)].into_iter().chain(pairs.iter().copied());
    match dialect {
        Dialect::One => {
            let words: Vec<String> = all.map(|(key, value)| format!("{key}={value}")).collect();
            (words.join(" ") + "\n").into_bytes()
        }
        Dialect::Two => {
            let body: String =
                all.map(|(key, value)| format!("{key}={};", value.replace(';', ";;"))).collect();
            format!("{:LENGTH$}{body}", body.len()).into_bytes()
        }
    }
}

/// Cuts a stream of bytes, arriving in any slices, into replies.
#[derive(Debug)]
pub(crate) struct PmiDecoder {
    dialect: Dialect,
    buffer: Vec<u8>,
}

impl PmiDecoder {
    pub(crate) fn new(dialect: Dialect) -> PmiDecoder {
        PmiDecoder { dialect, buffer: Vec::new() }
    }

    /// Switches to the format of the following messages: a PMI-2 session opens with a line.
    pub(crate) fn switch(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next whole reply, `None` when more bytes are needed.
    ///
    /// # Errors
    /// When the bytes cannot become a reply.
    pub(crate) fn take(&mut self) -> Result<Option<PmiMessage>, Malformed> {
        let (body, used) = match self.dialect {
            Dialect::One => match self.buffer.iter().position(|&byte| byte == b'\n') {
                Some(end) => (0..end, end + 1),
                None if self.buffer.len() > LIMIT => return Err(Malformed),
                None => return Ok(None),
            },
            Dialect::Two => {
                let Some(digits) = self.buffer.get(..LENGTH) else { return Ok(None) };
                let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
                let length: usize = digits.trim().parse().map_err(|_| Malformed)?;
                if length > LIMIT {
                    return Err(Malformed);
                }
                if self.buffer.len() < LENGTH + length {
                    return Ok(None);
                }
                (LENGTH..LENGTH + length, LENGTH + length)
            }
        };
        let text = std::str::from_utf8(&self.buffer[body]).map_err(|_| Malformed)?;
        let message = match self.dialect {
            Dialect::One => of_words(text),
            Dialect::Two => of_body(text),
        };
        self.buffer.drain(..used);
        Ok(Some(message))
    }
}

fn pair(text: &str) -> Option<(String, String)> {
    text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
}

fn of_words(line: &str) -> PmiMessage {
    PmiMessage(line.split_whitespace().filter_map(pair).collect())
}

/// Parses the pairs of a message. A semicolon ends a pair; two are one within a value.
fn of_body(body: &str) -> PmiMessage {
    let mut pairs = Vec::new();
    let mut current = String::new();
    let mut characters = body.chars().peekable();
    while let Some(character) = characters.next() {
        if character != ';' || characters.next_if_eq(&';').is_some() {
            current.push(character);
        } else {
            pairs.extend(pair(&std::mem::take(&mut current)));
        }
    }
    pairs.extend(pair(&current));
    PmiMessage(pairs)
}

#[cfg(test)]
mod tests;
