//! A record of the files of which a program was compiled. While their contents are the same, the
//! program need not be compiled again.
//!
//! The first line of a record is a digest of the contents, and each other line the path of a file.
//! The contents count and not the times, since an installation writes all headers anew.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// Records the files that a compiler with the option `-MD` has listed in the file `listed`, and
/// `others`. Removes that file. Without a record, the program is compiled again.
pub(crate) fn record(record: &Path, listed: &Path, others: &[PathBuf]) {
    let Ok(rule) = fs::read_to_string(listed) else {
        return;
    };
    let mut files = sources(&rule);
    files.extend_from_slice(others);
    let Ok(digest) = digest(&files) else {
        return;
    };

    let mut text = format!("{digest:x}\n");
    for file in files {
        text += &format!("{}\n", file.display());
    }
    // Another test program may read the record meanwhile.
    if fs::write(listed, text).is_ok() {
        let _ = fs::rename(listed, record);
    }
}

/// Returns true if all files of a record are there with the contents that they had.
pub(crate) fn are_unchanged(record: &Path) -> bool {
    let Ok(text) = fs::read_to_string(record) else {
        return false;
    };
    let mut lines = text.lines();
    let Some(recorded) = lines.next() else {
        return false;
    };

    let files: Vec<PathBuf> = lines.map(PathBuf::from).collect();
    digest(&files).is_ok_and(|digest| format!("{digest:x}") == recorded)
}

/// Returns the files in a rule of make, `PROGRAM: FILE FILE`, with backslashes at the ends of its
/// lines. A path with a space is taken apart; its parts cannot be read, so there is no record.
fn sources(rule: &str) -> Vec<PathBuf> {
    let (_, files) = rule.split_once(": ").unwrap_or_default();
    files
        .split_whitespace()
        .filter(|word| *word != "\\")
        .map(PathBuf::from)
        .collect()
}

fn digest(files: &[PathBuf]) -> io::Result<u64> {
    let mut digest = DefaultHasher::new();
    for file in files {
        digest.write(&fs::read(file)?);
        digest.write_u8(0xff);
    }
    Ok(digest.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_input_is_seen() {
        let dir = tempfile::tempdir().expect("a directory");
        let [source, header, wrapper, listed, kept] =
            ["a.c", "a.h", "oshcc", "a.d", "inputs"].map(|name| dir.path().join(name));
        for file in [&source, &header, &wrapper] {
            fs::write(file, "old").expect("own file");
        }
        let rule = format!("a: {} \\\n {}\n", source.display(), header.display());
        fs::write(&listed, rule).expect("own file");
        assert!(!are_unchanged(&kept), "there is no record");

        record(&kept, &listed, std::slice::from_ref(&wrapper));
        assert!(are_unchanged(&kept));
        for file in [&source, &header, &wrapper] {
            fs::write(file, "new").expect("own file");
            assert!(!are_unchanged(&kept), "{}", file.display());

            fs::write(file, "old").expect("own file");
            assert!(are_unchanged(&kept));
        }

        fs::remove_file(&header).expect("own file");
        assert!(!are_unchanged(&kept), "a header is missing");
    }
}
