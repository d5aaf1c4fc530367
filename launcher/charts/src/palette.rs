//! The colors of drawings, in their light form.
//!
//! Drawings name colors in attributes, so that an SVG file shows in programs that know no style
//! sheets. `page.css` replaces each color by its dark form, except [`RED`] and those of heat maps.

/// Text and lines.
pub const INK: &str = "#1b1f24";
/// Text and lines that are less important.
pub const SOFT: &str = "#57606a";
/// Grid lines.
pub const GRID: &str = "#e9ecef";
/// The background of a figure.
pub const CARD: &str = "#ffffff";
/// Lines of the floors that shmem-perf measures.
pub const FLOOR: &str = "#8b929a";
/// Cells of a map without a value, and times without records in a timeline.
pub const ABSENT: &str = "#e3e6ea";
/// The series of a chart.
pub const SERIES: [&str; 6] = [
    "#0067a5", "#d1500b", "#00875f", "#b3478d", "#b98300", "#33383f",
];

/// Outliers and invalid floors. It is the same in the light and the dark form.
pub const RED: &str = "#d11a2a";

/// Number of colors of a heat map.
pub const STEPS: usize = 32;

/// Returns the color of a step of a heat map. The lightness of this ramp grows evenly, so that it
/// also reads in gray and for the color-blind.
pub fn step_color(step: usize) -> String {
    format!("#{:x}", colorous::VIRIDIS.eval_rational(step, STEPS))
}

/// The values at the ends of the colors of a heat map. Either may be the larger one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColorRange {
    /// The value of step 0.
    pub worst: f64,
    /// The value of the last step.
    pub best: f64,
}

/// Returns the step of a value on a logarithmic scale. Values beyond the ends have the steps of the
/// ends.
pub fn step(value: f64, range: ColorRange) -> usize {
    let part = (value / range.worst).ln() / (range.best / range.worst).ln();
    // The conversion turns what is below 0, and NaN, into 0.
    ((part * STEPS as f64) as usize).min(STEPS - 1)
}

/// Returns a color of text that is legible on a step.
pub fn on_step(step: usize) -> &'static str {
    if step * 2 >= STEPS {
        "#10151b"
    } else {
        "white"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_color_has_a_dark_form() {
        let css = include_str!("page.css");
        for color in [INK, SOFT, GRID, CARD, FLOOR, ABSENT].iter().chain(&SERIES) {
            for property in ["fill", "stroke"] {
                let rule = format!("[{property}=\"{color}\"] {{ {property}: #");
                assert!(css.contains(&rule), "{rule}");
            }
        }
    }

    #[test]
    fn values_have_steps_by_their_logarithm() {
        let values = [0.1, 1.0, 10.0, 100.0, 1e9];
        let rates = ColorRange {
            worst: 1.0,
            best: 100.0,
        };
        let times = ColorRange {
            worst: 100.0,
            best: 1.0,
        };
        assert_eq!(values.map(|v| step(v, rates)), [0, 0, 16, 31, 31]);
        assert_eq!(values.map(|v| step(v, times)), [31, 31, 16, 0, 0]);
        assert_eq!((step_color(0).len(), step_color(STEPS - 1).len()), (7, 7));
    }
}
