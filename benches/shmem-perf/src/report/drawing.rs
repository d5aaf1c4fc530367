//! What drawings consist of, and how large they are.
//!
//! This file must never know what is drawn.

use super::markup::{Element, px};

/// A drawing of a known size.
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    /// What is drawn.
    pub content: Element,
}

impl Drawing {
    /// An empty one.
    pub fn new(width: f64, height: f64) -> Drawing {
        Drawing { width, height, content: Element::new("g") }
    }

    /// Appends an element.
    pub fn child(self, child: Element) -> Drawing {
        Drawing { content: self.content.child(child), ..self }
    }

    /// Appends elements.
    pub fn children(self, children: impl IntoIterator<Item = Element>) -> Drawing {
        Drawing { content: self.content.children(children), ..self }
    }

    /// It as an element of a page or of a picture.
    pub fn svg(self) -> Element {
        Element::new("svg")
            .with("viewBox", format!("0 0 {} {}", px(self.width), px(self.height)))
            .with("role", "img")
            .child(self.content)
    }
}

/// Text in a drawing.
pub fn label(x: f64, y: f64, class: &str, text: &str) -> Element {
    Element::new("text").class(class).with("x", px(x)).with("y", px(y)).text(text)
}

/// A straight line in a drawing.
pub fn rule(class: &str, from: (f64, f64), to: (f64, f64)) -> Element {
    let path = format!("M{} {}L{} {}", px(from.0), px(from.1), px(to.0), px(to.1));
    Element::new("path").class(class).with("d", path)
}
