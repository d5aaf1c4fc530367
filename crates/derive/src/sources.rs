//! The digest of the sources of a crate: of each file of its `src` that is compiled into it, with
//! the file's path below that directory, and of its manifest, which says which versions of other
//! crates it uses and which features they have.
//!
//! The directory of the crate, its version, the compiler and the profile do not count, so a crate
//! has one digest in each checkout, and as the registry's package.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The extensions of the files that are compiled: Rust, C, and tables that Rust includes. Others
/// are left over by editors and merges.
const COMPILED: [&str; 4] = ["rs", "c", "h", "txt"];

/// Returns the expression of the digest for the crate that is being compiled.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn expression() -> io::Result<TokenStream> {
    let directory = env::var_os("CARGO_MANIFEST_DIR")
        .ok_or_else(|| io::Error::other("CARGO_MANIFEST_DIR is not set; cargo sets it"))?;
    let sources = Sources::of(Path::new(&directory))?;
    let digest = Literal::u64_suffixed(sources.digest()?);

    // Each file is included so that a change of it compiles the crate again.
    let paths = sources.paths().map(|path| path.to_string_lossy());
    Ok(quote! {
        {
            const _: &[&[u8]] = &[#(include_bytes!(#paths)),*];
            #digest
        }
    })
}

/// The files of a crate that count.
struct Sources {
    manifest: PathBuf,
    src: PathBuf,
    /// The files in `src` and below, sorted.
    files: Vec<PathBuf>,
}

impl Sources {
    fn of(directory: &Path) -> io::Result<Sources> {
        // In a package, cargo has written a manifest of its own beside that of the crate.
        let mut manifest = directory.join("Cargo.toml.orig");
        if !manifest.exists() {
            manifest = directory.join("Cargo.toml");
        }

        let src = directory.join("src");
        let mut files = Vec::new();
        add_compiled(&src, &mut files)?;
        files.sort_unstable();
        Ok(Sources {
            manifest,
            src,
            files,
        })
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.manifest].into_iter().chain(&self.files)
    }

    /// Returns the digest of the contents of all files, and of the paths of those in `src`.
    fn digest(&self) -> io::Result<u64> {
        let mut hash = Sha256::new();
        add_part(&mut hash, &fs::read(&self.manifest)?);
        for file in &self.files {
            let below = file.strip_prefix(&self.src).map_err(io::Error::other)?;
            add_part(&mut hash, below.as_os_str().as_encoded_bytes());
            add_part(&mut hash, &fs::read(file)?);
        }

        let [a, b, c, d, e, f, g, h, ..] = hash.finalize().0;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// Adds the files of a directory, and of those in it, that are compiled.
fn add_compiled(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            add_compiled(&path, files)?;
        } else if extension.is_some_and(|extension| COMPILED.contains(&extension)) {
            files.push(path);
        }
    }
    Ok(())
}

/// Adds bytes and their number, so that no part continues the one before it.
fn add_part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a crate of these files into a directory of its own, and returns its digest.
    fn digest_of_crate(files: &[(&str, &str)]) -> u64 {
        // A crate for directories would be built once more for this package than for the others,
        // since its tests are a part of the compiler.
        let test = std::thread::current()
            .name()
            .expect("a test")
            .replace("::", "-");
        let directory = std::env::temp_dir().join(format!("{}-{test}", std::process::id()));
        for (name, content) in files {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().expect("below the directory")).expect("a directory");
            fs::write(path, content).expect("room for a file");
        }

        let sources = Sources::of(&directory).expect("a crate");
        let digest = sources.digest().expect("the files that were written");
        fs::remove_dir_all(directory).expect("what was made");
        digest
    }

    #[test]
    fn a_crate_has_one_digest_in_each_directory_and_as_a_package() {
        let sources = [("src/lib.rs", "mod a;"), ("src/a/b.txt", "rows")];
        let manifest = "[dependencies]\nsome = \"=1.2\"\n";
        let checkout = [&sources[..], &[("Cargo.toml", manifest)]].concat();
        let package = [
            &sources[..],
            &[("Cargo.toml", "normalized"), ("Cargo.toml.orig", manifest)],
        ]
        .concat();
        let with_backup = [&checkout[..], &[("src/lib.rs.orig", "merged")]].concat();

        let expected = digest_of_crate(&checkout);
        assert_eq!(digest_of_crate(&checkout), expected);
        assert_eq!(digest_of_crate(&package), expected);
        assert_eq!(digest_of_crate(&with_backup), expected);
    }

    #[test]
    fn each_change_of_a_source_changes_the_digest() {
        let manifest = ("Cargo.toml", "[dependencies]");
        let source = ("src/lib.rs", "mod a;");
        let table = ("src/a/b.txt", "rows");
        let expected = digest_of_crate(&[manifest, source, table]);

        let changed = [
            vec![manifest, source, ("src/a/b.txt", "other")],
            vec![manifest, source, ("src/a/c.txt", "rows")],
            vec![manifest, source],
            vec![manifest, source, table, ("src/new.rs", "")],
            vec![("Cargo.toml", "[dependencies]\nnew = \"1\""), source, table],
        ];
        for files in changed {
            assert_ne!(digest_of_crate(&files), expected, "{files:?}");
        }
    }
}
