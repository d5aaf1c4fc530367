//! The colours of a heat map: a ramp from dark blue to light yellow whose lightness grows evenly, so that it reads the same for the
//! colour-blind and in grey.
//!
//! This file must never know what a colour stands for.

/// Steps of the ramp.
pub const STEPS: usize = 32;

/// The colour of a step, as CSS writes it.
pub fn colour(step: usize) -> String {
    let [r, g, b] = rgb(step).map(|part| (part * 255.0).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Whether text on a step must be dark.
pub fn is_light(step: usize) -> bool {
    step * 5 >= STEPS * 2
}

/// The step of a value between two, by its logarithm: the last, which is light, at the second of them.
pub fn step(value: f64, (bad, good): (f64, f64)) -> usize {
    let part = (value / bad).ln() / (good / bad).ln();
    ((part * STEPS as f64) as usize).min(STEPS - 1)
}

/// Red, green and blue from 0 to 1, by way of the perceptual colour space Oklab.
fn rgb(step: usize) -> [f64; 3] {
    let part = step as f64 / (STEPS - 1) as f64;
    let lightness = 0.28 + 0.67 * part;
    // From blue over green to yellow; the ends of the ramp have less room for chroma than its middle.
    let hue = (265.0 - 160.0 * part).to_radians();
    let chroma = 0.105 + 0.04 * (part * std::f64::consts::PI).sin() - 0.02 * part;
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s,
    ]
    .map(|linear: f64| {
        let linear = linear.clamp(0.0, 1.0);
        match linear <= 0.003_130_8 {
            true => 12.92 * linear,
            false => 1.055 * linear.powf(1.0 / 2.4) - 0.055,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_grows_with_the_value() {
        let luminance = |step| {
            let [r, g, b] = rgb(step).map(|part| part.powf(2.2));
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        for i in 1..STEPS {
            assert!(luminance(i) > luminance(i - 1), "step {i}");
        }
        assert!(luminance(0) < 0.05 && luminance(STEPS - 1) > 0.8);
    }

    #[test]
    fn values_have_steps_by_their_logarithm() {
        let range = (1.0, 100.0);
        let values = [0.1, 1.0, 10.0, 100.0, 1e9];
        assert_eq!(values.map(|v| step(v, range)), [0, 0, 16, 31, 31]);
        assert_eq!(values.map(|v| step(v, (100.0, 1.0))), [31, 31, 16, 0, 0]);
        assert_eq!(colour(0).len(), 7);
    }
}
