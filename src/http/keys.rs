//! Keys of the clients that may send requests.

use std::path::Path;

use webtwin_base::error::{Error, Result};
use webtwin_base::key_file::check_private;

/// Minimum length of a key in bytes.
const MIN_KEY_BYTES: usize = 32;

/// Names of clients, and their keys.
#[derive(Default)]
pub(crate) struct Keys(Vec<(String, Vec<u8>)>);

impl Keys {
    /// Reads a file of lines `NAME KEY`. Blank lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the file cannot be read, if other users than its owner may read
    /// it, or if a line is invalid.
    pub(crate) fn read(path: &Path) -> Result<Keys> {
        let invalid_file = |what: String| Error::Usage(format!("key file {}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|cause| invalid_file(cause.to_string()))?;
        check_private(path).map_err(invalid_file)?;
        let mut keys = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(char::is_whitespace).map(|(name, key)| (name, key.trim())) {
                Some((name, key)) if key.len() >= MIN_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                    keys.push((name.to_string(), key.as_bytes().to_vec()));
                }
                _ => {
                    return Err(invalid_file(format!(
                        "line {number} must be NAME KEY, the key of {MIN_KEY_BYTES} visible ASCII characters or more; \
                         make one with: head -c 32 /dev/urandom | base64"
                    )));
                }
            }
        }
        match keys.is_empty() {
            true => Err(invalid_file("has no key; write a line NAME KEY".into())),
            false => Ok(Keys(keys)),
        }
    }

    /// True if there are no keys, so that every client may send requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name of the client with this key. The time that it takes reveals only the
    /// lengths of the keys.
    pub(crate) fn name(&self, key: &[u8]) -> Option<&str> {
        let mut key_name = None;
        for (name, stored_key) in &self.0 {
            if is_same(stored_key, key) {
                key_name = Some(name.as_str());
            }
        }
        key_name
    }
}

/// True if two keys are equal. Compares all bytes, so that the time does not depend on their
/// values.
fn is_same(x: &[u8], y: &[u8]) -> bool {
    let difference = x.iter().zip(y).fold(0u8, |all, (x, y)| std::hint::black_box(all | (x ^ y)));
    x.len() == y.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_named_and_readable_by_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Keys::read(&path)
        };
        let (first_key, second_key) = ("x".repeat(32), "y".repeat(40));
        let keys = read(&format!("# who\n\n crawler {first_key} \nbatch\t{second_key}\n"), 0o600).ok().unwrap();
        assert_eq!([&first_key, &second_key].map(|key| keys.name(key.as_bytes())), [Some("crawler"), Some("batch")]);
        for wrong_key in ["", "x", &first_key[1..], &format!("{first_key}x"), &second_key.replacen('y', "z", 1)] {
            assert_eq!(keys.name(wrong_key.as_bytes()), None);
        }
        assert!(read(&format!("a {first_key}"), 0o640).is_err());
        for text in ["", "# none", "alone", "a short", &format!("a {}é", first_key)] {
            assert!(read(text, 0o600).is_err(), "{text}");
        }
    }
}
