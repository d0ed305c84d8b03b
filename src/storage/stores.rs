//! Object stores behind `s3://`, `gs://` and `az://` URLs, one client per bucket.
//!
//! Settings are the environment variables that the vendors' own tools read (`AWS_*`, `GOOGLE_*`, `AZURE_*`), among them
//! `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` and `AWS_SKIP_SIGNATURE` for public buckets. Tests pass them explicitly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

use crate::error::{Error, Result};

/// How long a request is retried before the store counts as failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// Settings of object stores, and the clients opened with them.
pub struct Stores {
    settings: BTreeMap<String, String>,
    patience: Duration,
    clients: Mutex<BTreeMap<String, Arc<dyn ObjectStore>>>,
}

impl Stores {
    /// Returns the stores configured by the process's environment.
    pub fn of_env() -> &'static Stores {
        static STORES: OnceLock<Stores> = OnceLock::new();
        STORES.get_or_init(|| {
            Stores::with_settings(
                std::env::vars_os()
                    .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?))),
            )
        })
    }

    /// Returns stores with explicit settings, named like the environment variables; case does not matter, and unknown
    /// names are ignored, as in an environment.
    pub fn with_settings<K: Into<String>, V: Into<String>>(settings: impl IntoIterator<Item = (K, V)>) -> Stores {
        let settings =
            settings.into_iter().map(|(key, value)| (key.into().to_ascii_lowercase(), value.into())).collect();
        Stores { settings, patience: PATIENCE, clients: Mutex::default() }
    }

    /// Sets how long a request is retried before the store counts as failed.
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

    fn retry(&self) -> RetryConfig {
        RetryConfig { retry_timeout: self.patience, ..RetryConfig::default() }
    }

    /// Settings of one vendor, and those of the HTTP client, with or without the vendor's prefix.
    fn of_vendor<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.settings
            .iter()
            .filter(move |(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn build(&self, scheme: &str, root: &str) -> Result<Arc<dyn ObjectStore>> {
        #[cfg(feature = "cloud")]
        // It fails when there is a provider already, and any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match scheme {
            #[cfg(feature = "aws")]
            "s3" | "s3a" => {
                let mut builder = object_store::aws::AmazonS3Builder::new().with_url(root).with_retry(self.retry());
                for (key, value) in self.of_vendor("aws_") {
                    if let Some(key) = parse_key(key, "aws_", object_store::aws::AmazonS3ConfigKey::Client) {
                        builder = builder.with_config(key, value);
                    }
                }
                builder.build().map(|store| Arc::new(store) as _).map_err(|error| unusable(root, error))
            }
            #[cfg(feature = "gcp")]
            "gs" => {
                let mut builder =
                    object_store::gcp::GoogleCloudStorageBuilder::new().with_url(root).with_retry(self.retry());
                for (key, value) in self.of_vendor("google_") {
                    if let Some(key) = parse_key(key, "google_", object_store::gcp::GoogleConfigKey::Client) {
                        builder = builder.with_config(key, value);
                    }
                }
                builder.build().map(|store| Arc::new(store) as _).map_err(|error| unusable(root, error))
            }
            #[cfg(feature = "azure")]
            "az" | "abfs" | "abfss" => {
                let mut builder =
                    object_store::azure::MicrosoftAzureBuilder::new().with_url(root).with_retry(self.retry());
                for (key, value) in self.of_vendor("azure_") {
                    if let Some(key) = parse_key(key, "azure_", object_store::azure::AzureConfigKey::Client) {
                        builder = builder.with_config(key, value);
                    }
                }
                builder.build().map(|store| Arc::new(store) as _).map_err(|error| unusable(root, error))
            }
            _ => Err(Error::input(
                root,
                format!("{scheme}:// is not read by this build; use a path, file://, s3://, gs:// or az://"),
            )),
        }
    }
}

/// Parses a key of a vendor, or a key of the HTTP client after the vendor's prefix (`AWS_READ_TIMEOUT`), which the
/// crate itself accepts for a few keys only.
fn parse_key<K: std::str::FromStr>(key: &str, prefix: &str, client: impl Fn(ClientConfigKey) -> K) -> Option<K> {
    key.parse().ok().or_else(|| key.strip_prefix(prefix)?.parse().ok().map(client))
}

fn unusable(root: &str, error: object_store::Error) -> Error {
    Error::storage(root, format!("cannot be reached with these settings: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_opened_once_whatever_the_number_of_objects() {
        let stores = Stores::with_settings([("AWS_SKIP_SIGNATURE", "true"), ("PATH", "/bin")]);
        let one = stores.client("s3", "s3://bucket").unwrap();
        let two = stores.client("s3", "s3://bucket").unwrap();
        assert!(Arc::ptr_eq(&one, &two));
        assert!(!Arc::ptr_eq(&one, &stores.client("s3", "s3://other").unwrap()));
    }

    #[test]
    fn all_three_vendors_open_without_a_network() {
        let stores = Stores::with_settings([
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_READ_TIMEOUT", "10 seconds"),
            ("GOOGLE_SKIP_SIGNATURE", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_SKIP_SIGNATURE", "true"),
        ]);
        for (scheme, root) in [("s3", "s3://bucket"), ("gs", "gs://bucket"), ("az", "az://container")] {
            assert!(stores.client(scheme, root).is_ok(), "{root}");
        }
    }

    #[test]
    fn a_scheme_that_is_not_read_is_named() {
        let error = Stores::with_settings([("", "")]).client("ftp", "ftp://host").err().unwrap();
        assert!(error.to_string().contains("ftp:// is not read"), "{error}");
        assert_eq!(error.exit_code(), 3);
    }
}
