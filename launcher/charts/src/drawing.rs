//! The elements of drawings, and their text.

use maud::{Markup, html};

use crate::palette::{GRID, SOFT};

/// A drawing: its size and its content, without the `svg` element around it.
pub struct Drawing {
    /// The width of the drawing in pixels.
    pub width: f64,
    /// The height of the drawing in pixels.
    pub height: f64,
    /// The content.
    pub content: Markup,
    /// The areas that show values under the pointer; only a page has them.
    pub hits: Markup,
}

/// The font of drawings.
pub const FONT: &str = "system-ui, 'DejaVu Sans', sans-serif";

impl Drawing {
    /// Returns the drawing as an element of an HTML page, with this title for screen readers.
    pub fn svg(&self, title: &str) -> Markup {
        let size = format!("0 0 {} {}", px(self.width), px(self.height));
        html! {
            svg viewBox=(size) role="img" aria-label=(title) font-family=(FONT) font-size="12" {
                (self.content) (self.hits)
            }
        }
    }
}

/// Rounds a length or coordinate to a tenth of a pixel.
pub fn px(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

/// Returns text whose start, middle or end is at a point. `anchor` is `start`, `middle` or `end`.
pub fn label((x, y): (f64, f64), anchor: &str, color: &str, text: &str) -> Markup {
    html! { text x=(px(x)) y=(px(y)) text-anchor=(anchor) fill=(color) { (text) } }
}

/// Returns text that reads upwards, with its middle at a point.
pub fn upright_label((x, y): (f64, f64), text: &str) -> Markup {
    let placed = format!("translate({} {}) rotate(-90)", px(x), px(y));
    html! { text text-anchor="middle" fill=(SOFT) transform=(placed) { (text) } }
}

/// Returns a straight line.
pub fn rule(color: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    html! { path stroke=(color) d=(path([from, to])) {} }
}

/// A tick of an axis.
pub struct Tick {
    /// Its coordinate along the axis.
    pub position: f64,
    /// Its label.
    pub text: String,
}

/// Returns the ticks of a horizontal axis with their grid lines, which extend from `top` to
/// `bottom`.
pub fn ticks_below(ticks: &[Tick], (top, bottom): (f64, f64)) -> Markup {
    html! {
        @for Tick { position: x, text } in ticks {
            (rule(GRID, (*x, top), (*x, bottom)))
            (label((*x, bottom + 17.0), "middle", SOFT, text))
        }
    }
}

/// Returns the ticks of a vertical axis with their grid lines, which extend from `left` to `right`.
pub fn ticks_beside(ticks: &[Tick], (left, right): (f64, f64)) -> Markup {
    html! {
        @for Tick { position: y, text } in ticks {
            (rule(GRID, (left, *y), (right, *y)))
            (label((left - 7.0, y + 4.0), "end", SOFT, text))
        }
    }
}

/// Returns a transparent area that shows `tip` while the pointer is over it.
pub fn hit((left, right): (f64, f64), (top, bottom): (f64, f64), tip: &str) -> Markup {
    let width = px(right - left);
    let height = px(bottom - top);
    html! {
        rect .hit x=(px(left)) y=(px(top)) width=(width) height=(height) data-tip=(tip) {}
    }
}

/// Returns the data of an SVG path through these points.
pub fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut data = String::new();
    for (x, y) in points {
        let command = if data.is_empty() { 'M' } else { 'L' };
        data += &format!("{command}{} {}", px(x), px(y));
    }
    data
}

/// Returns text of at most `letters` letters; an ellipsis replaces the part that was cut off.
pub fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(letters.saturating_sub(1)).collect();
    short.push('\u{2026}');
    short
}

/// Returns the text of a page or picture. Replaces control characters other than newlines by
/// U+FFFD, since markup may not contain them.
pub fn printable(markup: Markup) -> String {
    let is_bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}');
    markup.into_string().replace(is_bad, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_texts_are_short() {
        assert_eq!(
            [1.0, 0.25, 12.34].map(|x| px(x).to_string()),
            ["1", "0.3", "12.3"]
        );
        assert_eq!(shortened("host", 4), "host");
        assert_eq!(shortened("host-name", 5), "host\u{2026}");
    }
}
