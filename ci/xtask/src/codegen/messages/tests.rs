//! Unit tests of `messages`.

use super::*;

fn message(text: &str, cause: &str, remedy: &str) -> Message {
    Message { text: text.to_owned(), cause: cause.to_owned(), remedy: remedy.to_owned() }
}

#[test]
fn a_message_is_the_text_of_the_code_and_the_comment_above() {
    let code = "
        // Cause: the PE does not exist,
        // as in `shmem_int_p(&x, 1, -1)`. Remedy: pass another one.
        fail!(
            call!(\"shmem\"),
            \"argument pe is {pe}, \\
             which is {}\"
        );
        fail!(call, \"{error}\");
        // Cause: the disk is full.
        let full = format!(\"no room in {dir:?}; remove \\\"some\\\"\");
        return Err(StartFailure::general(full));
    ";
    let expected = [
        message(
            "`argument pe is <pe>, which is ...`",
            "The PE does not exist, as in `shmem_int_p(&x, 1, -1)`.",
            "Pass another one.",
        ),
        message("`no room in <dir>`", "The disk is full.", "`remove \"some\"`"),
    ];
    assert_eq!(messages(code).unwrap(), expected);
}

#[test]
fn variants_have_documentation() {
    let code = "
        pub enum Error {
            /// The peer is gone.
            #[error(\"PE {0} is gone; look at its host\")]
            Gone(u32),
        }
        pub enum Kind {
            /// PEs compute.
            // Cause: work. Remedy: wait.
            Computes,
        }
    ";
    let expected = [
        message("`PE ... is gone`", "The peer is gone.", "`look at its host`"),
        message("PEs compute.", "Work.", "Wait."),
    ];
    assert_eq!(messages(code).unwrap(), expected);
}

#[test]
fn a_message_without_a_cause_or_a_remedy_is_an_error() {
    assert!(messages("fail!(call, \"it is full; empty it\");").is_err());
    assert!(messages("// Cause: too much.\nfail!(call, \"it is full\");").is_err());
    assert!(messages("/// Remedy: empty it\n#[error(\"it is full\")]").is_err());
    assert!(messages("// Cause: too much.\nfail!(call, \"it is full; empty it\");").is_ok());
}

#[test]
fn messages_with_one_cause_and_remedy_share_a_row() {
    let all = [("`a`", "One."), ("`b`", "Two."), ("`c`", "One."), ("`b`", "Two.")];
    let all = all.map(|(text, cause)| message(text, cause, "End."));
    let expected = [message("`a`<br>`c`", "One.", "End."), message("`b`", "Two.", "End.")];
    assert_eq!(joined(Vec::from(all)), expected);
}
