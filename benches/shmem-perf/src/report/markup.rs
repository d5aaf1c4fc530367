//! Elements of HTML and SVG. Text and attributes are escaped and every tag is closed by construction.
//!
//! The markup is well-formed XML as well, so that tests read it with a parser. This file must never know what a page shows.

use std::fmt::{self, Display, Write as _};

/// An element.
pub struct Element {
    tag: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    /// An empty one.
    pub fn new(tag: &'static str) -> Self {
        Self { tag, attributes: String::new(), content: String::new() }
    }

    /// Gives it an attribute.
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.attributes, " {name}=\"{}\"", escaped(&value.to_string()));
        self
    }

    /// Gives it a class or several.
    pub fn class(self, classes: impl Display) -> Self {
        self.with("class", classes)
    }

    /// Appends text.
    pub fn text(mut self, text: impl Display) -> Self {
        self.content.push_str(&escaped(&text.to_string()));
        self
    }

    /// Appends an element.
    pub fn child(mut self, child: Self) -> Self {
        let _ = write!(self.content, "{child}");
        self
    }

    /// Appends elements.
    pub fn children(self, children: impl IntoIterator<Item = Self>) -> Self {
        children.into_iter().fold(self, Self::child)
    }

    /// Appends a style sheet or a script as it is; it has none of the characters that HTML and XML read differently there.
    pub fn code(mut self, code: &str) -> Self {
        assert!(!code.contains(['<', '&']), "code without < and &");
        self.content.push_str(code);
        self
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { tag, attributes, content } = self;
        match *tag {
            "meta" => write!(f, "<{tag}{attributes}/>"),
            _ => write!(f, "<{tag}{attributes}>{content}</{tag}>"),
        }
    }
}

/// Text without what is markup, and without characters that no markup may hold.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => {
                escaped.push('\u{fffd}')
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// A length or place in a drawing, to a tenth of a pixel.
pub fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Text in at most so many letters, of which the last then says that there was more.
pub fn shortened(text: &str, letters: usize) -> String {
    match text.chars().count() <= letters {
        true => text.to_owned(),
        false => text.chars().take(letters.saturating_sub(1)).chain(['\u{2026}']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_becomes_markup() {
        let link = Element::new("a").with("title", "\"x\" <y>").text("<script>&\u{0}");
        assert_eq!(
            Element::new("p").child(link).child(Element::new("meta")).to_string(),
            "<p><a title=\"&quot;x&quot; &lt;y&gt;\">&lt;script&gt;&amp;\u{fffd}</a><meta/></p>"
        );
    }

    #[test]
    fn lengths_and_texts_are_short() {
        assert_eq!([1.0, 0.25, 12.34].map(px), ["1", "0.2", "12.3"]);
        assert_eq!(shortened("host", 4), "host");
        assert_eq!(shortened("host-name", 5), "host\u{2026}");
    }
}
