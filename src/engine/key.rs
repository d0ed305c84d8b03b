//! Shared key of a cluster. It is checked when it is read, and it is never printed.

use std::fmt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use webtwin_base::error::{Error, Result};
use webtwin_base::key_file::check_private;

/// Minimum length of a key in bytes, without the white space around a text.
const MIN_KEY_BYTES: usize = 32;

/// Key that all processes of a cluster share. Without a key ([`ClusterKey::none`]) a handshake
/// still compares settings, but does not authenticate the peer. Only loopback clusters may run
/// without a key.
///
/// During a key rotation there are two keys. A process dials with the first one, and accepts
/// connections made with either. To rotate: add the new key as the second one everywhere, then
/// exchange the two, then remove the old one. No run has to stop for it.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey(Vec<Vec<u8>>);

impl fmt::Debug for ClusterKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() { "Key(none)" } else { "Key(***)" })
    }
}

impl ClusterKey {
    /// Returns the absent key.
    pub fn none() -> ClusterKey {
        ClusterKey(Vec::new())
    }

    /// Reads a key file. A text file has one key on each line, and white space around it is
    /// ignored. A file that is not UTF-8 is one key as a whole.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the file cannot be read, if a key has fewer than 32 bytes, or if
    /// `private` is set and users other than the owner may read the file.
    pub fn read(path: &Path, private: bool) -> Result<ClusterKey> {
        let key_error = |what: String| Error::Usage(format!("key file {}: {what}", path.display()));
        let content = std::fs::read(path).map_err(|cause| key_error(cause.to_string()))?;
        if private {
            check_private(path).map_err(key_error)?;
        }
        ClusterKey::parse(&content).map_err(key_error)
    }

    /// Reads the key from an environment variable, which has the format of a key file.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the variable is not set, or if a key in it has fewer than 32
    /// bytes.
    pub fn from_environment(name: &str) -> Result<ClusterKey> {
        let key_error = |what: String| Error::Usage(format!("environment variable {name}: {what}"));
        let content =
            std::env::var_os(name).ok_or_else(|| key_error("is not set; set it to the key of the cluster".into()))?;
        ClusterKey::parse(content.as_encoded_bytes()).map_err(key_error)
    }

    pub(super) fn parse(content: &[u8]) -> std::result::Result<ClusterKey, String> {
        let keys: Vec<Vec<u8>> = match str::from_utf8(content) {
            Ok(text) => {
                text.lines().map(str::trim_ascii).filter(|line| !line.is_empty()).map(|line| line.into()).collect()
            }
            Err(_) => vec![content.to_vec()],
        };
        let shortest = keys.iter().map(Vec::len).min().unwrap_or(0);
        match shortest < MIN_KEY_BYTES {
            true => Err(format!(
                "a key in it has {shortest} bytes, but needs {MIN_KEY_BYTES} or more; make one with: head -c 32 /dev/urandom | \
                 base64"
            )),
            false => Ok(ClusterKey(keys)),
        }
    }

    /// True if there is no key.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the pre-shared key of handshakes that this process begins: 32 bytes derived from the
    /// first key, or from the empty key if there is none.
    pub(super) fn psk(&self) -> [u8; 32] {
        psk(self.0.first().map_or(&[], Vec::as_slice))
    }

    /// Returns the pre-shared keys with which peers may begin a handshake.
    pub(super) fn psks(&self) -> impl Iterator<Item = [u8; 32]> + '_ {
        let former_psks = self.0.iter().skip(1).map(|key| psk(key));
        std::iter::once_with(|| self.psk()).chain(former_psks)
    }
}

/// Derives 32 bytes from a key of any length, as the HMAC-SHA256 of a label.
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
        assert_eq!(ClusterKey::read(&path, false).unwrap(), ClusterKey(vec![SECRET.into()]));
    }

    #[test]
    fn key_may_begin_and_end_with_any_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let raw = [&b"\n"[..], &[0xff; 29], b"\t "].concat();
        std::fs::write(&path, &raw).unwrap();
        assert_eq!(raw.len(), MIN_KEY_BYTES);
        assert_eq!(ClusterKey::read(&path, false).unwrap(), ClusterKey(vec![raw]));
    }

    #[test]
    fn a_short_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, &SECRET[1..]).unwrap();
        let error = ClusterKey::read(&path, false).unwrap_err();
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
        assert!(ClusterKey::read(&path, true).unwrap_err().to_string().contains("mode 0640"));
        assert!(ClusterKey::read(&path, false).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(ClusterKey::read(&path, true).is_ok());
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", ClusterKey(vec![SECRET.into()])), "Key(***)");
    }

    #[test]
    fn each_line_is_a_key_and_the_first_is_the_one_to_dial_with() {
        let other = SECRET.to_uppercase();
        let key = ClusterKey::parse(format!("{SECRET}\n\n {other}\r\n").as_bytes()).unwrap();
        assert_eq!(key, ClusterKey(vec![SECRET.into(), other.clone().into()]));
        let dialed = ClusterKey(vec![other.clone().into()]).psk();
        assert!(key.psk() != dialed && key.psks().any(|psk| psk == dialed));
        assert_eq!(
            ClusterKey::parse(format!("{SECRET}\nshort").as_bytes()).unwrap_err().split(';').next(),
            Some("a key in it has 5 bytes, but needs 32 or more")
        );
        assert!(ClusterKey::parse(b" \n").unwrap_err().contains("has 0 bytes"));
        assert_ne!(ClusterKey::none().psk(), key.psk());
    }
}
