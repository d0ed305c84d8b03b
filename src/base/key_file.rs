//! Files that contain keys.

use std::path::Path;

/// Checks that only the owner of a file may read it.
///
/// # Errors
/// Returns the problem and its remedy, for a message that begins with the name of the file.
pub fn check_private(path: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map_err(|cause| cause.to_string())?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(format!(
                "has mode {:04o}, so users other than its owner can read it; run chmod 600 on it",
                mode & 0o7777
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
