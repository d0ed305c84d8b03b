//! The cluster's shared key: read with care, never printed.

use std::fmt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Error, Result};

/// Fewest bytes a key may have; white space around a text is not counted.
const SHORTEST: usize = 32;

/// The key all processes of a cluster share. Without one ([`Key::none`]) a handshake still compares settings, but proves
/// nothing about who is there; only loopback clusters may go without.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "Key(none)" } else { "Key(***)" })
    }
}

impl Key {
    /// Returns the absent key.
    pub fn none() -> Key {
        Key(Vec::new())
    }

    /// Reads a key file. White space around a text does not count; bytes that are no text (UTF-8) all do.
    ///
    /// # Errors
    /// [`Error::Usage`] when it cannot be read, has fewer than 32 bytes, or `private` is asked for and users other than
    /// its owner may read it.
    pub fn read(path: &Path, private: bool) -> Result<Key> {
        let wrong = |what: String| Error::Usage(format!("key file {}: {what}", path.display()));
        let content = std::fs::read(path).map_err(|cause| wrong(cause.to_string()))?;
        if private {
            check_private(path).map_err(wrong)?;
        }
        let key = match str::from_utf8(&content) {
            Ok(text) => text.trim_ascii().as_bytes(),
            Err(_) => &content[..],
        };
        if key.len() < SHORTEST {
            return Err(wrong(format!(
                "holds {} bytes, but a key needs {SHORTEST} or more; make one with: head -c 32 /dev/urandom | base64",
                key.len()
            )));
        }
        Ok(Key(key.to_vec()))
    }

    /// Whether there is no key.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns HMAC-SHA256 under this key of `label` and `parts`, all of which must have lengths fixed by the label.
    pub(super) fn sign(&self, label: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.mac(label, parts).finalize().into_bytes().into()
    }

    /// Whether `tag` is what [`Key::sign`] returns; the time taken does not depend on where they differ.
    pub(super) fn verify(&self, label: &str, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.mac(label, parts).verify_slice(tag).is_ok()
    }

    fn mac(&self, label: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(label.as_bytes());
        mac.update(&[0]);
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

#[cfg(unix)]
fn check_private(path: &Path) -> std::result::Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map_err(|cause| cause.to_string())?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "has mode {:04o}, but others than its owner must not read it; chmod 600 it",
            mode & 0o7777
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_path: &Path) -> std::result::Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn white_space_around_a_key_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, format!(" {SECRET}\n")).unwrap();
        assert_eq!(Key::read(&path, false).unwrap(), Key(SECRET.into()));
    }

    #[test]
    fn random_bytes_are_a_key_whatever_they_begin_and_end_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let raw = [&b"\n"[..], &[0xff; 29], b"\t "].concat();
        std::fs::write(&path, &raw).unwrap();
        assert_eq!(raw.len(), SHORTEST);
        assert_eq!(Key::read(&path, false).unwrap(), Key(raw));
    }

    #[test]
    fn a_short_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, &SECRET[1..]).unwrap();
        let error = Key::read(&path, false).unwrap_err();
        assert!(error.to_string().contains("holds 31 bytes") && error.exit_code() == 2, "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_refused_where_it_must_be_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, SECRET).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Key::read(&path, true).unwrap_err().to_string().contains("mode 0640"));
        assert!(Key::read(&path, false).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Key::read(&path, true).is_ok());
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", Key(SECRET.into())), "Key(***)");
    }

    #[test]
    fn a_signature_holds_for_its_key_label_and_parts_only() {
        let key = Key(SECRET.into());
        let tag = key.sign("dial", &[b"ab", b"c"]);
        assert!(key.verify("dial", &[b"ab", b"c"], &tag));
        assert!(!key.verify("accept", &[b"ab", b"c"], &tag));
        assert!(!key.verify("dial", &[b"ab", b"d"], &tag));
        assert!(!Key::none().verify("dial", &[b"ab", b"c"], &tag));
        assert!(!key.verify("dial", &[b"ab", b"c"], &tag[..31]));
    }
}
