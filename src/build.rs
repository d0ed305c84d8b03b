//! Which build this is.

/// Version, commit and whether the tree was dirty: what `--version` prints and processes of one run compare.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("WEBTWIN_COMMIT"), ")");
