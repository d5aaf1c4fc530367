//! The scale of an axis and the choice of its ticks.

/// An axis: the map from values to positions in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    scale: Scale,
    /// The values at the ends, or their logarithms unless the scale is linear.
    low: f64,
    high: f64,
    /// The positions of the ends. `from` is the larger one on a vertical axis, since pixels are
    /// counted from the top.
    from: f64,
    to: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear,
    Log,
    /// Logarithmic by powers of two. Zero is one power below the lowest other value.
    Doubling,
}

/// The minimum distance of two labels of a vertical axis in pixels.
pub const LABEL_HEIGHT: f64 = 20.0;

impl Axis {
    /// Returns a logarithmic axis for those values that are positive. `place` has the positions of
    /// its ends. It spans at least a factor of four, so that noise does not look like a slope.
    pub fn log(values: impl Iterator<Item = f64> + Clone, place: (f64, f64)) -> Self {
        let shown = values.filter(|value| value.is_finite() && *value > 0.0);
        // Without values, the chart still gets an axis.
        let (low, high) = ends(shown).unwrap_or((1.0, 10.0));

        // Both ends move by one factor: by 12 % at least, so that no mark lies on the edge.
        let wider = (4.0 / (high / low)).max(1.0).sqrt().max(1.12);
        Self::log_between((low / wider, high * wider), place)
    }

    /// Returns a logarithmic axis from one value to another, both above zero.
    pub fn log_between((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        Self {
            scale: Scale::Log,
            low: low.ln(),
            high: high.ln(),
            from,
            to,
        }
    }

    /// Returns a linear axis from zero to a value above it.
    pub fn linear(high: f64, (from, to): (f64, f64)) -> Self {
        Self {
            scale: Scale::Linear,
            low: 0.0,
            high,
            from,
            to,
        }
    }

    /// Returns an axis by powers of two for these values, which may be zero.
    pub fn doubling(values: impl Iterator<Item = u64> + Clone, (from, to): (f64, f64)) -> Self {
        let has_zero = values.clone().any(|value| value == 0);
        let logs = values
            .filter(|value| *value > 0)
            .map(|value| (value as f64).log2());

        let (mut low, mut high) = ends(logs).unwrap_or((0.0, 0.0));
        if has_zero {
            low -= 1.0;
        }
        if high <= low {
            // A single size needs a length to be placed on.
            high = low + 1.0;
        }
        Self {
            scale: Scale::Doubling,
            low,
            high,
            from,
            to,
        }
    }

    /// Returns the position of a value, clamped to the ends of the axis.
    pub fn at(&self, value: f64) -> f64 {
        let counted = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.ln(),
            Scale::Doubling => value.log2(),
        };
        // The logarithm of 0 is minus infinity.
        let part = (counted.max(self.low) - self.low) / (self.high - self.low);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Returns true if the axis can show a value.
    pub fn has(&self, value: f64) -> bool {
        value.is_finite() && (value > 0.0 || self.scale != Scale::Log)
    }

    /// Returns ticks at round numbers, in ascending order: as many as fit at this distance in
    /// pixels. An axis by powers of two has none; it uses [`ticks_among`](Self::ticks_among).
    pub fn ticks(&self, distance: f64) -> Vec<f64> {
        let mut sparsest = Vec::new();
        for ticks in self.candidates() {
            if self.keep(&ticks, distance) {
                return ticks;
            }
            sparsest = ticks;
        }
        sparsest
    }

    /// Returns ticks at some of these ascending values: at all of them, or at every second one, and
    /// so on, as many as fit at this distance in pixels.
    pub fn ticks_among(&self, values: &[u64], distance: f64) -> Vec<u64> {
        let mut step = 1;
        loop {
            let ticks: Vec<u64> = values.iter().copied().step_by(step).collect();
            let places: Vec<f64> = ticks.iter().map(|tick| *tick as f64).collect();
            // It ends at the latest with one tick, which keeps any distance.
            if self.keep(&places, distance) {
                return ticks;
            }
            step += 1;
        }
    }

    /// Returns true if neighboring ticks have at least this distance.
    fn keep(&self, ticks: &[f64], distance: f64) -> bool {
        ticks
            .windows(2)
            .all(|pair| (self.at(pair[0]) - self.at(pair[1])).abs() >= distance)
    }

    /// Returns the sets of ticks to choose from, the densest first.
    fn candidates(&self) -> Vec<Vec<f64>> {
        match self.scale {
            // The ticks of this scale are at values, which `ticks_among` chooses.
            Scale::Doubling => vec![Vec::new()],
            Scale::Linear => equidistant(0.0, self.high),
            Scale::Log => by_powers_of_ten(self.low.exp(), self.high.exp()),
        }
    }
}

/// Returns sets of ticks at a digit times a power of ten, the densest first.
fn by_powers_of_ten(low: f64, high: f64) -> Vec<Vec<f64>> {
    let all: [TickPattern; 5] = [
        TickPattern {
            digits: &[1, 2, 3, 4, 5, 6, 7, 8, 9],
            every: 1,
        },
        TickPattern {
            digits: &[1, 2, 5],
            every: 1,
        },
        TickPattern {
            digits: &[1],
            every: 1,
        },
        TickPattern {
            digits: &[1],
            every: 2,
        },
        TickPattern {
            digits: &[1],
            every: 3,
        },
    ];
    let patterns = all.map(|pattern| pattern.ticks(low, high)).to_vec();

    // On a short axis, even the densest set may have fewer than three ticks.
    if patterns[0].len() < 3 && low < high {
        let mut narrow = equidistant(low, high);
        narrow.extend(patterns);
        narrow
    } else {
        patterns
    }
}

/// The places of ticks on a logarithmic axis.
struct TickPattern {
    /// The digits that have a tick.
    digits: &'static [i32],
    /// The powers of ten that have ticks: each, or every second one, and so on.
    every: i32,
}

impl TickPattern {
    fn ticks(&self, low: f64, high: f64) -> Vec<f64> {
        let first_power = low.log10().floor() as i32;
        let last_power = high.log10().ceil() as i32;
        let mut ticks = Vec::new();
        for power in first_power..=last_power {
            if power.rem_euclid(self.every) != 0 {
                continue;
            }
            let values = self.digits.iter().map(|digit| decimal(*digit, power));
            ticks.extend(values.filter(|value| (low..=high).contains(value)));
        }
        ticks
    }
}

/// Returns sets of ticks at equal distances, the densest first. The distances are 1, 2 and 5 times
/// a power of ten, from a tenth of the greatest power below the length of the axis on.
fn equidistant(low: f64, high: f64) -> Vec<Vec<f64>> {
    let greatest = (high - low).log10().floor() as i32;
    let mut sets = Vec::new();
    for power in [greatest - 1, greatest] {
        for digit in [1, 2, 5] {
            let step = decimal(digit, power);
            // A millionth more, so that a tick at the end of the axis is not lost to rounding.
            let first = (low / step * 0.999_999).ceil() as u64;
            let last = (high / step * 1.000_001).floor() as u64;
            sets.push((first..=last).map(|i| i as f64 * step).collect());
        }
    }
    sets
}

/// Returns the minimum and the maximum of some values.
fn ends(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let low = values.clone().reduce(f64::min)?;
    let high = values.reduce(f64::max)?;
    Some((low, high))
}

/// Returns a digit times a power of ten, parsed from its literal; a product would be rounded.
fn decimal(digit: i32, power: i32) -> f64 {
    format!("{digit}e{power}").parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(low: f64, high: f64) -> Axis {
        Axis::log_between((low, high), (0.0, 300.0))
    }

    #[test]
    fn ticks_are_as_dense_as_labels_allow() {
        assert_eq!(log(0.95, 6.0).ticks(14.0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(
            log(90.0, 2.1e4).ticks(20.0),
            [100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4]
        );
        assert_eq!(
            log(0.09, 1.1e6).ticks(20.0),
            [0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]
        );
        assert_eq!(
            log(103.0, 128.0).ticks(24.0),
            [105.0, 110.0, 115.0, 120.0, 125.0]
        );
        let far = log(1e-20, 1e20).ticks(20.0);
        assert!(far.len() >= 8 && far.len() < 16, "{far:?}");
    }

    #[test]
    fn a_log_axis_holds_its_values_and_a_factor_of_four() {
        let axis = Axis::log([0.0, f64::NAN, -1.0, 5.0, 5.1].into_iter(), (300.0, 0.0));
        assert!(axis.high - axis.low >= 4f64.ln() - 1e-9);
        assert!(axis.at(5.0) < 300.0 && axis.at(5.1) > 0.0);
        assert!(axis.at(5.1) < axis.at(5.0), "it grows upwards");
        assert_eq!(axis.at(0.0), 300.0);
        assert!(!axis.has(0.0) && !axis.has(f64::NAN) && axis.has(5.0));
        assert_eq!(
            Axis::log([].into_iter(), (0.0, 100.0)).ticks(20.0).first(),
            Some(&1.0)
        );
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let axis = Axis::linear(8.7e6, (0.0, 400.0));
        assert_eq!(axis.ticks(60.0), [0.0, 2e6, 4e6, 6e6, 8e6]);
        assert_eq!((axis.at(0.0), axis.at(8.7e6)), (0.0, 400.0));
        assert_eq!(
            Axis::linear(100.0, (0.0, 300.0)).ticks(20.0).last(),
            Some(&100.0)
        );
    }

    #[test]
    fn sizes_have_ticks_where_values_are() {
        let ticks = |values: &[u64], to| {
            let axis = Axis::doubling(values.iter().copied(), (0.0, to));
            axis.ticks_among(values, 40.0)
        };
        let by_four: Vec<u64> = (0..10).map(|i| 8 << (2 * i)).collect();
        assert_eq!(ticks(&by_four, 570.0), by_four);
        assert_eq!(
            ticks(&by_four, 200.0),
            [8, 128, 2 << 10, 32 << 10, 512 << 10]
        );
        assert_eq!(ticks(&[0, 8, 64], 200.0), [0, 8, 64]);
        assert_eq!((ticks(&[4], 200.0), ticks(&[], 200.0)), (vec![4], vec![]));
        let axis = Axis::doubling([0, 8, 64].into_iter(), (0.0, 200.0));
        assert_eq!(
            [0.0, 8.0, 64.0].map(|size| axis.at(size)),
            [0.0, 50.0, 200.0]
        );
        assert_eq!(Axis::doubling([4].into_iter(), (0.0, 200.0)).at(4.0), 0.0);
    }
}
