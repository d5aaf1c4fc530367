//! A picture without a style sheet: what the sheet of the page says becomes attributes, in the colors of its light form.
//!
//! Programs such as librsvg, Inkscape and those of LaTeX know no variables of CSS, and draw what uses them in black. What is there only for
//! the pointer is left out. This file must never know what is drawn.

use super::style::DRAWINGS;

/// Properties with their values, in the order of the sheet.
type Properties<'a> = Vec<(&'a str, &'a str)>;

/// A rule: the name of a tag or nothing, classes, and what holds for elements that have all of these.
struct Rule<'a> {
    tag: &'a str,
    classes: Vec<&'a str>,
    properties: Properties<'a>,
}

/// The text of an SVG file whose classes have become attributes.
pub fn concrete(svg: &str) -> String {
    let (variables, rules) = sheet();
    let mut text = String::with_capacity(2 * svg.len());
    let mut parts = svg.split('<');
    text += parts.next().unwrap_or_default();
    let mut is_left_out = false;
    for part in parts {
        // An element that is left out has no content.
        if std::mem::take(&mut is_left_out) {
            continue;
        }
        let (tag, rest) = part.split_at(part.find([' ', '>']).unwrap_or(part.len()));
        let (before, classes, after) = match rest.split_once(" class=\"") {
            Some((before, rest)) if !before.contains('>') => {
                let (classes, after) = rest.split_once('"').unwrap_or((rest, ""));
                (before, classes, after)
            }
            _ => ("", "", rest),
        };
        let classes: Vec<&str> = classes.split_whitespace().collect();
        if classes.contains(&"hit") || classes.contains(&"cursor") {
            is_left_out = true;
            continue;
        }
        let own = before.to_owned() + after.split('>').next().unwrap_or_default();
        text += &format!(
            "<{tag}{before}{}{after}",
            attributes(&variables, &rules, tag, &classes, &own)
        );
    }
    text
}

/// The attributes of an element that it has not of its own.
fn attributes(
    variables: &Properties,
    rules: &[Rule],
    tag: &str,
    classes: &[&str],
    own: &str,
) -> String {
    let holds = |rule: &&Rule| {
        (rule.tag.is_empty() || rule.tag == tag)
            && rule.classes.iter().all(|class| classes.contains(class))
    };
    let mut holding: Vec<&Rule> = rules.iter().filter(holds).collect();
    holding.sort_by_key(|rule| rule.classes.len());
    let mut found: Properties = variables.clone();
    for &(name, value) in holding.iter().flat_map(|rule| &rule.properties) {
        found.retain(|(other, _)| *other != name);
        found.push((name, value));
    }
    let resolved = |mut value| {
        while let Some(name) = variable(value) {
            value =
                found.iter().find(|(other, _)| *other == name).map_or("none", |(_, value)| value);
        }
        value.replace('"', "'")
    };
    let wanted = found
        .iter()
        .filter(|(name, _)| !name.starts_with("--") && !own.contains(&format!(" {name}=")));
    wanted.map(|(name, value)| format!(" {name}=\"{}\"", resolved(value))).collect()
}

fn variable(value: &str) -> Option<&str> {
    value.strip_prefix("var(")?.strip_suffix(')')
}

/// The variables of the light form, and the rules but for those of the pointer.
fn sheet() -> (Properties<'static>, Vec<Rule<'static>>) {
    let (light, rest) = DRAWINGS.split_once("@media").expect("a dark form");
    let (_, rest) = rest.split_once("\n}").expect("its end");
    let rules = rest.split('}').filter_map(|rule| rule.split_once('{'));
    let rules = rules.filter(|(selectors, _)| !selectors.contains(':'));
    let rules = rules.flat_map(|(selectors, all)| {
        selectors.split(',').map(move |selector| {
            let (tag, classes) = selector.trim().split_once('.').unwrap_or((selector.trim(), ""));
            let classes = classes.split('.').filter(|class| !class.is_empty()).collect();
            Rule { tag, classes, properties: properties(all) }
        })
    });
    let light = light.trim_start_matches(":root {").trim_end().trim_end_matches('}');
    (properties(light), rules.collect())
}

fn properties(text: &'static str) -> Properties<'static> {
    let all = text.split(';').filter_map(|property| property.split_once(':'));
    all.map(|(name, value)| (name.trim(), value.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_become_attributes_of_the_light_form() {
        let svg = "<svg width=\"9\"><path class=\"line c1\" d=\"M1 1\"></path><rect class=\"hit\" \
                   data-tip=\"x\"></rect><text class=\"tick\" x=\"1\">5 us</text></svg>";
        let text = concrete(svg);
        assert!(!text.contains("var(") && !text.contains("class="), "{text}");
        assert!(
            text.contains("<path stroke=\"#d1500b\" stroke-width=\"2\" fill=\"none\""),
            "{text}"
        );
        assert!(text.contains("font-size=\"12px\" fill=\"#57606a\" x=\"1\">5 us</text>"), "{text}");
        assert!(!text.contains("rect") && text.starts_with("<svg width=\"9\">"), "{text}");
        let floor = concrete("<path class=\"line floor\" stroke-dasharray=\"7 4\"></path>");
        assert!(floor.contains("#8b929a") && floor.matches("stroke-dasharray").count() == 1);
    }
}
