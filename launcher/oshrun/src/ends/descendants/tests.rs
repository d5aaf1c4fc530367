//! Unit tests of `descendants`.

use super::*;
use std::process::Command;

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).expect("a number above 0")
}

fn process([number, parent, group]: [i32; 3]) -> Descendant {
    Descendant { pid: pid(number), parent: Some(pid(parent)), group: Some(pid(group)) }
}

#[test]
fn lines_of_proc_are_read() {
    let rest = "1 2 3 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 100 4096 9 18446744073709551615";
    let parsed = |line: &str| parse_stat(pid(9), line);
    assert_eq!(parsed(&format!("9 (a) R 5) S {rest}")), Some(process([9, 1, 2])));
    let ended = rest.replace(" 4096 ", " 0 ");
    assert_eq!(parsed(&format!("9 (a) Z {ended}")), None);
    let threads = ended.replace(" 20 0 1 0 ", " 20 0 3 0 ");
    assert_eq!(parsed(&format!("9 (a) Z {threads}")), Some(process([9, 1, 2])));
    assert_eq!(parsed(""), None);
}

#[test]
fn descendants_are_found_in_any_order() {
    let processes = [[2, 3, 2], [3, 9, 3], [4, 2, 4], [5, 1, 5], [6, 5, 5], [9, 1, 9]].map(process);
    let found =
        |roots: &[i32]| with_descendants(roots.iter().map(|root| pid(*root)).collect(), &processes);
    assert!(found(&[9]) == [2, 3, 4, 9].map(pid).into());
    assert!(found(&[6, 2]) == [2, 4, 6].map(pid).into());
    assert!(found(&[]).is_empty());
}

#[test]
fn a_process_ends_with_what_it_has_started() {
    let script = "setsid sleep 600 & setsid sh -c 'sleep 600; true' & echo; wait";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(std::process::Stdio::piped());
    let mut shell = command.spawn().expect("sh");
    let mut stdout = shell.stdout.take().expect("piped");
    let shell_pid = pid(shell.id() as i32);
    while end(|process| process.pid == shell_pid) {}
    // The pipe ends when all writers have ended.
    std::io::Read::read_to_end(&mut stdout, &mut Vec::new()).expect("a pipe");
    shell.wait().expect("own child");
}
