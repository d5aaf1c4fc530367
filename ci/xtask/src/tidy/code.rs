//! Rust source without what is not code: comments, and what stands between quotes.

/// `text` with every comment and the inside of every string and character blanked; lines stay where
/// they are.
pub fn only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = raw_string(rest).filter(|_| !ends_in_a_name(&out)) {
            length
        } else if c == '"' {
            string(rest)
        } else if c == '\'' {
            character(rest)
        } else {
            0
        };
        if skipped == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.push(' ');
            out.extend(rest[..skipped].chars().filter(|&c| c == '\n'));
            rest = &rest[skipped..];
        }
    }
    out
}

/// The numbers, from 1, of the lines of `code` that hold one of `words` as a whole word.
pub fn lines_with(code: &str, words: &[&str]) -> Vec<usize> {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let holds = |line: &str| line.split(|c| !in_name(c)).any(|word| words.contains(&word));
    code.lines().enumerate().filter(|(_, line)| holds(line)).map(|(number, _)| number + 1).collect()
}

fn ends_in_a_name(out: &str) -> bool {
    out.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a raw string, byte or C string that `text` begins with.
fn raw_string(text: &str) -> Option<usize> {
    let after_r = ["br", "cr", "r"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let quoted = after_r.trim_start_matches('#');
    let hashes = after_r.len() - quoted.len();
    let inside = quoted.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let closed = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(text.len() - inside.len() + closed)
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the character that `text` begins with; 0 when the quote begins a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|&(_, c)| c == '\'').map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<usize> {
        lines_with(&only(text), &["unsafe"])
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        assert!(
            words("// unsafe\n/* unsafe /* nested */ unsafe */\n\"unsafe \\\" unsafe\"").is_empty()
        );
        assert!(words("r#\"unsafe \" unsafe\"# br\"unsafe\" b\"unsafe\"").is_empty());
        assert!(words("let unsafe_code = not_unsafe;").is_empty());
    }

    #[test]
    fn lines_keep_their_numbers() {
        assert_eq!(words("/* a\nb */\nunsafe {}\n\"x\ny\"; unsafe fn f()"), [3, 5]);
    }

    #[test]
    fn quotes_of_characters_and_lifetimes_are_told_apart() {
        assert_eq!(words("fn f<'a>(x: &'a str) { '\"'; unsafe {} }"), [1]);
        assert_eq!(words("let q = '\\''; unsafe {}"), [1]);
        assert_eq!(words("let q = b'\"'; let e = 'é'; unsafe {}"), [1]);
        assert!(words("let q = '\"'; // unsafe '").is_empty());
    }

    #[test]
    fn a_name_that_ends_in_r_begins_no_raw_string() {
        assert_eq!(words("var\"text\"; unsafe"), [1]);
    }
}
