//! SHA-256 of files and texts, as lower-case hexadecimal.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use collo_text::open_regular;

/// The digest of a text.
pub fn sha256_text(text: &str) -> String {
    sha256_bytes(text.as_bytes())
}

/// The digest of bytes.
pub(crate) fn sha256_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The digest of a regular file's content, read in chunks.
pub fn sha256_file(path: &Path) -> std::io::Result<String> {
    sha256_of(open_regular(path)?)
}

/// The digest of any reader, up to its end.
pub fn sha256_of(mut file: impl Read) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut piece)?;
        if n == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&piece[..n]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_digest_of_abc_is_the_published_one() {
        assert_eq!(super::sha256_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
