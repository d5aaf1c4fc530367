//! Unit tests of `lines`.

use super::*;

#[test]
fn whole_lines_are_taken_and_the_rest_waits() {
    let mut incoming = PendingLines::default();
    incoming.push(b"one\ntw");
    assert_eq!(incoming.take().as_deref(), Some(&b"one\n"[..]));
    assert_eq!(incoming.take(), None);
    assert!(incoming.is_waiting());
    incoming.push(b"o\nthree\n");
    assert_eq!(incoming.take().as_deref(), Some(&b"two\nthree\n"[..]));
    assert_eq!((incoming.take(), incoming.rest(), incoming.is_waiting()), (None, None, false));
}

#[test]
fn a_line_without_end_is_taken_in_pieces() {
    let mut incoming = PendingLines::default();
    incoming.push(&[b'x'; MAX_LINE - 1]);
    assert_eq!(incoming.take(), None);
    incoming.push(b"yz");
    assert_eq!(incoming.take().map(|piece| piece.len()), Some(MAX_LINE + 1));
    incoming.push(b"end");
    assert_eq!(incoming.take(), None);
    assert_eq!(incoming.rest().as_deref(), Some(&b"end"[..]));
}

#[test]
fn only_unfinished_lines_of_others_are_broken() {
    let mut merger = LineMerger::default();
    let (a, b) = (Some((0, StdStream::Out)), Some((1, StdStream::Out)));
    let steps: [(TextSource, &str, &str); 5] = [
        (a, "start", "start"),
        (a, " end", " end"),
        (b, "x\ny", "\nx\ny"),
        (b, "\n", "\n"),
        (a, "z\n", "z\n"),
    ];
    for (owner, text, expected) in steps {
        assert_eq!(merger.add(owner, b"", text.into()), expected.as_bytes());
    }
}

#[test]
fn tags_prefix_lines() {
    let mut merger = LineMerger::default();
    let steps: [(TextSource, &[u8], &str, &str); 5] = [
        (Some((0, StdStream::Out)), b"[0] ", "a\n\nb\n", "[0] a\n[0] \n[0] b\n"),
        (Some((0, StdStream::Out)), b"[0] ", "long", "[0] long"),
        (Some((0, StdStream::Out)), b"[0] ", "er\nline", "er\n[0] line"),
        (Some((1, StdStream::Err)), b"[1] ", "oops\n", "\n[1] oops\n"),
        (None, b"", "done\n", "done\n"),
    ];
    for (owner, tag, text, expected) in steps {
        assert_eq!(merger.add(owner, tag, text.into()), expected.as_bytes());
    }
}
