//! Limits of time as users write them, in variables and in options of `oshrun`.

use std::time::Duration;

/// Which texts are limits.
pub const EXPECTED: &str = "a time above 0 such as 30s or 5m";

/// A longer limit counts as this one, 30 years, so that sums with it do not overflow.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// Reads a number of seconds, minutes (`m`) or hours (`h`), of seconds without a unit; `None` where
/// it is not [`EXPECTED`].
pub fn parse(text: &str) -> Option<Duration> {
    let (number, factor) = match text.as_bytes().last()? {
        b's' => (text.strip_suffix('s')?, 1.0),
        b'm' => (text.strip_suffix('m')?, 60.0),
        b'h' => (text.strip_suffix('h')?, 3600.0),
        _ => (text, 1.0),
    };
    let limit = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()?;
    (!limit.is_zero()).then_some(limit.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_units() {
        for (text, seconds) in [("30s", 30.0), ("0.5", 0.5), ("5m", 300.0), ("2h", 7200.0)] {
            assert_eq!(parse(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert_eq!(parse("1e15h"), Some(LONGEST));
        assert!(["0", "-1s", "s", "soon", "nan", ""].into_iter().all(|text| parse(text).is_none()));
    }
}
