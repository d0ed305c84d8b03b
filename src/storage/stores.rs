//! Object stores behind `s3://`, `gs://` and `az://` URLs, with one client for each bucket.
//!
//! Settings are the environment variables of the vendors' own tools (`AWS_*`, `GOOGLE_*`,
//! `AZURE_*`), among them `AWS_ENDPOINT_URL`, and `AWS_SKIP_SIGNATURE` for public buckets. Tests
//! pass them explicitly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::ObjectStore;

use webtwin_base::build_info::lacks;
use webtwin_base::error::{Error, Result};

/// Time for which a request is retried before the store counts as failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// Settings of object stores, and the clients that were opened with them.
// Without a cloud feature, `patience` is never read.
#[cfg_attr(not(feature = "cloud"), expect(dead_code))]
pub struct Stores {
    settings: BTreeMap<String, String>,
    patience: Duration,
    clients: Mutex<BTreeMap<String, Arc<dyn ObjectStore>>>,
}

impl Stores {
    /// Returns the stores that the environment of this process configures.
    pub fn of_env() -> &'static Stores {
        static STORES: OnceLock<Stores> = OnceLock::new();
        STORES.get_or_init(|| {
            Stores::with_settings(
                std::env::vars_os()
                    .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?))),
            )
        })
    }

    /// Returns stores with explicit settings, named like the environment variables. Case is
    /// insignificant, and unknown names are ignored, as in an environment.
    pub fn with_settings<K: Into<String>, V: Into<String>>(settings: impl IntoIterator<Item = (K, V)>) -> Stores {
        let settings =
            settings.into_iter().map(|(key, value)| (key.into().to_ascii_lowercase(), value.into())).collect();
        Stores { settings, patience: PATIENCE, clients: Mutex::default() }
    }

    /// Sets the time for which a request is retried before the store counts as failed.
    pub fn with_patience(mut self, patience: Duration) -> Stores {
        self.patience = patience;
        self
    }

    /// Returns the client of a root, `scheme://bucket`; each root is opened once.
    pub fn client(&self, scheme: &str, root: &str) -> Result<Arc<dyn ObjectStore>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(root) {
            return Ok(Arc::clone(client));
        }
        let client = self.build(scheme, root)?;
        clients.insert(root.to_string(), Arc::clone(&client));
        Ok(client)
    }

    fn build(&self, scheme: &str, root: &str) -> Result<Arc<dyn ObjectStore>> {
        #[cfg(feature = "cloud")]
        if let Some(store) = super::clouds::open(scheme, root, &self.settings, self.patience) {
            return store;
        }
        let feature = match scheme {
            "s3" | "s3a" => "aws",
            "gs" => "gcp",
            "az" | "abfs" | "abfss" => "azure",
            _ => {
                return Err(Error::input(
                    root,
                    format!("{scheme}:// is not supported; use a path, file://, s3://, gs:// or az://"),
                ));
            }
        };
        Err(Error::input(root, lacks(&format!("cannot read {scheme}://"), feature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "aws")]
    #[test]
    fn bucket_is_opened_once_for_any_number_of_objects() {
        let stores = Stores::with_settings([("AWS_SKIP_SIGNATURE", "true"), ("PATH", "/bin")]);
        let first = stores.client("s3", "s3://bucket").unwrap();
        let two = stores.client("s3", "s3://bucket").unwrap();
        assert!(Arc::ptr_eq(&first, &two));
        assert!(!Arc::ptr_eq(&first, &stores.client("s3", "s3://other").unwrap()));
    }

    #[cfg(all(feature = "aws", feature = "gcp", feature = "azure"))]
    #[test]
    fn all_three_vendors_open_without_a_network() {
        let stores = Stores::with_settings([
            ("AWS_READ_TIMEOUT", "10 seconds"),
            ("GOOGLE_SKIP_SIGNATURE", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_SKIP_SIGNATURE", "true"),
        ]);
        for (scheme, root) in [("s3", "s3://bucket"), ("gs", "gs://bucket"), ("az", "az://container")] {
            assert!(stores.client(scheme, root).is_ok(), "{root}");
        }
    }

    #[cfg(not(feature = "cloud"))]
    #[test]
    fn a_store_that_this_build_cannot_reach_is_an_error_that_names_the_feature() {
        for (scheme, feature) in [("s3", "aws"), ("gs", "gcp"), ("az", "azure")] {
            let error = Stores::with_settings([("", "")]).client(scheme, &format!("{scheme}://bucket")).err().unwrap();
            assert!(error.to_string().contains(&format!("--features {feature}`")), "{error}");
            assert_eq!(error.exit_code(), 3);
        }
    }

    #[test]
    fn unsupported_scheme_is_named() {
        let error = Stores::with_settings([("", "")]).client("ftp", "ftp://host").err().unwrap();
        assert!(error.to_string().contains("ftp:// is not supported"), "{error}");
        assert_eq!(error.exit_code(), 3);
    }
}
