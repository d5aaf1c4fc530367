//! Axes: where a value lies, and which values get a tick.
//!
//! This file must never know what is drawn along them.

/// An axis from one place to another.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    is_log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// Pixels that two labels of a vertical axis need.
pub const LABEL_HEIGHT: f64 = 20.0;

impl Axis {
    /// A logarithmic axis for these values, of which those that are not above zero do not count. It spans a factor of four at least, so that
    /// noise does not look like a slope.
    pub fn log(values: impl Iterator<Item = f64>, place: (f64, f64)) -> Self {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let (mut low, mut high) =
            values.fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        if high == 0.0 {
            (low, high) = (1.0, 10.0);
        }
        let wider = (4.0 / (high / low)).max(1.0).sqrt().max(1.12);
        Self { is_log: true, low: low / wider, high: high * wider, from: place.0, to: place.1 }
    }

    /// A logarithmic axis from one value to another, both above zero.
    pub fn log_between((low, high): (f64, f64), place: (f64, f64)) -> Self {
        Self { is_log: true, low, high, from: place.0, to: place.1 }
    }

    /// A linear axis from zero to the greatest of these values.
    pub fn linear(values: impl Iterator<Item = f64>, place: (f64, f64)) -> Self {
        let high = values.filter(|value| value.is_finite()).fold(0.0f64, f64::max);
        let high = if high > 0.0 { high } else { 1.0 };
        Self { is_log: false, low: 0.0, high, from: place.0, to: place.1 }
    }

    /// Where a value lies. A value beyond an end lies on it.
    pub fn at(&self, value: f64) -> f64 {
        let part = match self.is_log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Whether a value has a place.
    pub fn has(&self, value: f64) -> bool {
        value.is_finite() && (value > 0.0 || !self.is_log)
    }

    /// Values for ticks, growing, as many as keep this distance in pixels: multiples of powers of ten by 1 to 9, by 1, 2 and 5, or by 1.
    pub fn ticks(&self, distance: f64) -> Vec<f64> {
        if !self.is_log {
            return self.linear_ticks(distance);
        }
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let candidates = |digits: &[f64], every: usize| -> Vec<f64> {
            let powers = (first..=last).filter(|power| power.rem_euclid(every as i32) == 0);
            let all =
                powers.flat_map(|power| digits.iter().map(move |digit| decimal(*digit, power)));
            all.filter(|value| (self.low..=self.high).contains(value)).collect()
        };
        let all: [(&[f64], usize); 5] = [
            (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1),
            (&[1.0, 2.0, 5.0], 1),
            (&[1.0], 1),
            (&[1.0], 2),
            (&[1.0], 3),
        ];
        let ticks = all.map(|(digits, every)| candidates(digits, every));
        let [.., sparse] = &ticks;
        ticks.iter().find(|ticks| self.keep(ticks, distance)).unwrap_or(sparse).clone()
    }

    fn linear_ticks(&self, distance: f64) -> Vec<f64> {
        let power = self.high.log10().floor() as i32;
        let steps = [
            (1.0, power - 1),
            (2.0, power - 1),
            (5.0, power - 1),
            (1.0, power),
            (2.0, power),
            (5.0, power),
        ];
        let ticks = steps.map(|(digit, power)| -> Vec<f64> {
            let step = decimal(digit, power);
            let n = (self.high / step * 1.000_001).floor() as usize;
            (0..=n).map(|i| i as f64 * step).collect()
        });
        let [.., sparse] = &ticks;
        ticks.iter().find(|ticks| self.keep(ticks, distance)).unwrap_or(sparse).clone()
    }

    fn keep(&self, ticks: &[f64], distance: f64) -> bool {
        ticks.windows(2).all(|pair| (self.at(pair[0]) - self.at(pair[1])).abs() >= distance)
    }
}

/// A digit times a power of ten, exactly what the decimal literal is.
fn decimal(digit: f64, power: i32) -> f64 {
    format!("{digit}e{power}").parse().unwrap_or(f64::NAN)
}

/// An axis of sizes or of numbers of PEs, by powers of two. Zero, which has no logarithm, lies one power below the least other one.
#[derive(Clone, Copy, Debug)]
pub struct Doubling {
    low: f64,
    high: f64,
    has_zero: bool,
    from: f64,
    to: f64,
}

impl Doubling {
    /// An axis for these values.
    pub fn new(values: impl Iterator<Item = u64> + Clone, place: (f64, f64)) -> Self {
        let has_zero = values.clone().any(|value| value == 0);
        let logs = values.filter(|value| *value > 0).map(|value| (value as f64).log2());
        let (low, high) = logs.fold((f64::MAX, f64::MIN), |(l, h), log| (l.min(log), h.max(log)));
        let (low, high) = if low > high { (0.0, 0.0) } else { (low, high) };
        let low = if has_zero { low - 1.0 } else { low };
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, has_zero, from: place.0, to: place.1 }
    }

    /// Where a value lies.
    pub fn at(&self, value: u64) -> f64 {
        let log = if value == 0 { self.low } else { (value as f64).log2() };
        self.from + (log - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Powers of two for ticks, and zero, as many as keep this distance in pixels.
    pub fn ticks(&self, distance: f64) -> Vec<u64> {
        let octave = (self.to - self.from) / (self.high - self.low);
        let steps = [1, 2, 5, 10];
        let step = steps.into_iter().find(|step| f64::from(*step) * octave >= distance);
        let step = step.unwrap_or(10);
        let least = self.low.ceil() as i32 + i32::from(self.has_zero);
        let powers = (least.max(0)..=self.high.floor() as i32).filter(|power| power % step == 0);
        let powers: Vec<u64> = powers.map(|power| 1 << power).collect();
        let is_clear = |tick: &&u64| self.at(**tick) - self.from >= distance;
        match self.has_zero {
            true => std::iter::once(0).chain(powers.iter().filter(is_clear).copied()).collect(),
            false => powers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(low: f64, high: f64) -> Axis {
        Axis { is_log: true, low, high, from: 0.0, to: 300.0 }
    }

    #[test]
    fn ticks_are_as_dense_as_labels_allow() {
        assert_eq!(log(0.95, 6.0).ticks(14.0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(log(90.0, 2e4).ticks(20.0), [100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4]);
        assert_eq!(log(0.09, 1.1e6).ticks(20.0), [0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        let far = log(1e-20, 1e20).ticks(20.0);
        assert!(far.len() >= 8 && far.len() < 16, "{far:?}");
    }

    #[test]
    fn a_log_axis_holds_its_values_and_a_factor_of_four() {
        let axis = Axis::log([0.0, f64::NAN, -1.0, 5.0, 5.1].into_iter(), (300.0, 0.0));
        assert!(axis.high / axis.low >= 4.0);
        assert!(axis.at(5.0) < 300.0 && axis.at(5.1) > 0.0);
        assert!(axis.at(5.1) < axis.at(5.0), "it grows upwards");
        assert!(!axis.has(0.0) && !axis.has(f64::NAN) && axis.has(5.0));
        assert_eq!(Axis::log([].into_iter(), (0.0, 100.0)).ticks(20.0).first(), Some(&1.0));
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let axis = Axis::linear([3.0, 8.7e6].into_iter(), (0.0, 400.0));
        assert_eq!(axis.ticks(60.0), [0.0, 2e6, 4e6, 6e6, 8e6]);
        assert_eq!(axis.at(8.7e6), 400.0);
        assert_eq!(Axis::linear([].into_iter(), (0.0, 400.0)).at(0.0), 0.0);
        let percent = Axis::linear([100.0].into_iter(), (0.0, 300.0));
        assert_eq!(percent.ticks(20.0).last(), Some(&100.0));
    }

    #[test]
    fn sizes_have_ticks_at_powers_of_two_and_at_zero() {
        let axis = Doubling::new([8u64, 1 << 20].into_iter(), (0.0, 570.0));
        assert_eq!(axis.ticks(40.0), [16, 64, 256, 1024, 4096, 16384, 65536, 262_144, 1 << 20]);
        let axis = Doubling::new([0u64, 8, 64].into_iter(), (0.0, 200.0));
        assert_eq!(axis.ticks(40.0), [0, 8, 16, 32, 64]);
        assert_eq!((axis.at(0), axis.at(8), axis.at(64)), (0.0, 50.0, 200.0));
        assert_eq!(Doubling::new([4u64].into_iter(), (0.0, 200.0)).at(4), 0.0);
        assert_eq!(Doubling::new([0u64].into_iter(), (0.0, 200.0)).ticks(40.0), [0, 1]);
        assert_eq!(Doubling::new([].into_iter(), (0.0, 200.0)).ticks(40.0), [1, 2]);
    }
}
