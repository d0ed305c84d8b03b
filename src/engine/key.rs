//! The cluster's shared key: read with care, never printed.

use std::fmt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use webtwin_base::error::{Error, Result};
use webtwin_base::key_file::check_private;

/// Fewest bytes a key may have; white space around a text is not counted.
const SHORTEST: usize = 32;

/// The key all processes of a cluster share. Without one ([`Key::none`]) a handshake still compares settings, but proves
/// nothing about who is there; only loopback clusters may go without.
///
/// While a key is replaced there are two: this process dials with the first, and answers who dials with either. So add the
/// new one as the second everywhere, then exchange the two, then take the old one away; no run need stop for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<Vec<u8>>);

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

    /// Reads a key file: a key on each line of a text, white space around it not counted; bytes that are no text (UTF-8) are
    /// one key.
    ///
    /// # Errors
    /// [`Error::Usage`] when it cannot be read, a key has fewer than 32 bytes, or `private` is asked for and users other than
    /// its owner may read it.
    pub fn read(path: &Path, private: bool) -> Result<Key> {
        let wrong = |what: String| Error::Usage(format!("key file {}: {what}", path.display()));
        let content = std::fs::read(path).map_err(|cause| wrong(cause.to_string()))?;
        if private {
            check_private(path).map_err(wrong)?;
        }
        Key::parse(&content).map_err(wrong)
    }

    /// Reads the key from an environment variable, in the form of a key file.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such variable, or a key in it has fewer than 32 bytes.
    pub fn from_environment(name: &str) -> Result<Key> {
        let wrong = |what: String| Error::Usage(format!("environment variable {name}: {what}"));
        let content = std::env::var_os(name).ok_or_else(|| wrong("it is not set".into()))?;
        Key::parse(content.as_encoded_bytes()).map_err(wrong)
    }

    pub(super) fn parse(content: &[u8]) -> std::result::Result<Key, String> {
        let keys: Vec<Vec<u8>> = match str::from_utf8(content) {
            Ok(text) => {
                text.lines().map(str::trim_ascii).filter(|line| !line.is_empty()).map(|line| line.into()).collect()
            }
            Err(_) => vec![content.to_vec()],
        };
        let shortest = keys.iter().map(Vec::len).min().unwrap_or(0);
        match shortest < SHORTEST {
            true => Err(format!(
                "a key in it has {shortest} bytes, but needs {SHORTEST} or more; make one with: head -c 32 /dev/urandom | \
                 base64"
            )),
            false => Ok(Key(keys)),
        }
    }

    /// Whether there is no key.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// What a handshake that this process begins is made with: 32 bytes of the first key, or of no key.
    pub(super) fn psk(&self) -> [u8; 32] {
        psk(self.0.first().map_or(&[], Vec::as_slice))
    }

    /// What handshakes that others begin may be made with.
    pub(super) fn psks(&self) -> impl Iterator<Item = [u8; 32]> + '_ {
        let others = self.0.iter().skip(1).map(|key| psk(key));
        std::iter::once_with(|| self.psk()).chain(others)
    }
}

/// HMAC-SHA256 of a label under a key of any length.
fn psk(key: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(b"webtwin noise psk");
    mac.finalize().into_bytes().into()
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
        assert_eq!(Key::read(&path, false).unwrap(), Key(vec![SECRET.into()]));
    }

    #[test]
    fn random_bytes_are_a_key_whatever_they_begin_and_end_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let raw = [&b"\n"[..], &[0xff; 29], b"\t "].concat();
        std::fs::write(&path, &raw).unwrap();
        assert_eq!(raw.len(), SHORTEST);
        assert_eq!(Key::read(&path, false).unwrap(), Key(vec![raw]));
    }

    #[test]
    fn a_short_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, &SECRET[1..]).unwrap();
        let error = Key::read(&path, false).unwrap_err();
        assert!(error.to_string().contains("has 31 bytes") && error.exit_code() == 2, "{error}");
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
        assert_eq!(format!("{:?}", Key(vec![SECRET.into()])), "Key(***)");
    }

    #[test]
    fn each_line_is_a_key_and_the_first_is_the_one_to_dial_with() {
        let other = SECRET.to_uppercase();
        let key = Key::parse(format!("{SECRET}\n\n {other}\r\n").as_bytes()).unwrap();
        assert_eq!(key, Key(vec![SECRET.into(), other.clone().into()]));
        let dialed = Key(vec![other.clone().into()]).psk();
        assert!(key.psk() != dialed && key.psks().any(|psk| psk == dialed));
        assert_eq!(
            Key::parse(format!("{SECRET}\nshort").as_bytes()).unwrap_err().split(';').next(),
            Some("a key in it has 5 bytes, but needs 32 or more")
        );
        assert!(Key::parse(b" \n").unwrap_err().contains("has 0 bytes"));
        assert_ne!(Key::none().psk(), key.psk());
    }
}
