//! Unit tests of `wire`.

use super::*;
use proptest::prelude::*;

fn all(
    decoder: &mut PmiDecoder,
    stream: &[u8],
    slice: usize,
) -> Result<Vec<PmiMessage>, Malformed> {
    let mut messages = Vec::new();
    for slice in stream.chunks(slice) {
        decoder.push(slice);
        while let Some(message) = decoder.take()? {
            messages.push(message);
        }
    }
    Ok(messages)
}

#[test]
fn managers_may_order_pairs_as_they_like() {
    let hydra = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    let slurm = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
    for line in [hydra, slurm] {
        let mut decoder = PmiDecoder::new(Dialect::One);
        let messages = all(&mut decoder, line.as_bytes(), 7).expect("a reply");
        let [message] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((message.command(), message.value("rc")), ("response_to_init", Some("0")));
        assert_eq!(message.value("pmi_version"), Some("1"));
        assert_eq!(message.value("msg"), None);
    }
}

#[test]
fn a_session_of_pmi_2_opens_with_a_line() {
    let mut decoder = PmiDecoder::new(Dialect::One);
    decoder.push(b"cmd=response_to_init pmi_version=2 rc=0\n    22cmd=fullinit-respo");
    assert_eq!(decoder.take().expect("a line").expect("whole").command(), "response_to_init");
    decoder.switch(Dialect::Two);
    assert_eq!(decoder.take(), Ok(None));
    decoder.push(b"nse;");
    assert_eq!(decoder.take().expect("a body").expect("whole").command(), "fullinit-response");
}

#[test]
fn what_is_no_pmi_is_refused() {
    let mut decoder = PmiDecoder::new(Dialect::Two);
    decoder.push(b"cmd=get");
    assert_eq!(decoder.take(), Err(Malformed));
    let mut decoder = PmiDecoder::new(Dialect::Two);
    decoder.push(b"999999");
    assert_eq!(decoder.take(), Err(Malformed));
    let mut decoder = PmiDecoder::new(Dialect::One);
    decoder.push(&vec![b'x'; LIMIT + 1]);
    assert_eq!(decoder.take(), Err(Malformed));
}

proptest! {
    #[test]
    fn requests_are_read_as_they_were_written(
        messages in prop::collection::vec(("[a-z-]{1,9}", prop::collection::vec(("[a-z]{1,5}", "[!-~]{0,30}"), 0..5)), 1..5),
        two in any::<bool>(),
        slice in 1_usize..40,
    ) {
        let dialect = if two { Dialect::Two } else { Dialect::One };
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (command, pairs) in &messages {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            stream.extend(encode(dialect, command, &pairs));
            let all = [("cmd", command.as_str())].into_iter().chain(pairs);
            expected.push(PmiMessage(all.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()));
        }
        prop_assert_eq!(super::tests::all(&mut PmiDecoder::new(dialect), &stream, slice), Ok(expected));
    }

    #[test]
    fn invalid_input_never_panics(stream in prop::collection::vec(any::<u8>(), 0..300), two in any::<bool>()) {
        let dialect = if two { Dialect::Two } else { Dialect::One };
        let _ = all(&mut PmiDecoder::new(dialect), &stream, 11);
    }
}
