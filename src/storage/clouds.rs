//! The clients of the three vendors. Each is a feature of the build; without any there is no such file in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

use crate::error::{Error, Result};

/// Opens a root, `scheme://bucket`, or returns `None` when this build reads no such scheme. The names of `settings` are in
/// lower case; requests are retried for as long as `patience`.
///
/// # Errors
/// [`Error::Storage`] when the settings name no usable store.
pub(super) fn open(
    scheme: &str,
    root: &str,
    settings: &BTreeMap<String, String>,
    patience: Duration,
) -> Option<Result<Arc<dyn ObjectStore>>> {
    // It fails when there is a provider of TLS already, and any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let retry = RetryConfig { retry_timeout: patience, ..RetryConfig::default() };
    let built: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        #[cfg(feature = "aws")]
        "s3" | "s3a" => {
            let mut builder = object_store::aws::AmazonS3Builder::new().with_url(root).with_retry(retry);
            for (key, value) in of_vendor(settings, "aws_", object_store::aws::AmazonS3ConfigKey::Client) {
                builder = builder.with_config(key, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        #[cfg(feature = "gcp")]
        "gs" => {
            let mut builder = object_store::gcp::GoogleCloudStorageBuilder::new().with_url(root).with_retry(retry);
            for (key, value) in of_vendor(settings, "google_", object_store::gcp::GoogleConfigKey::Client) {
                builder = builder.with_config(key, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        #[cfg(feature = "azure")]
        "az" | "abfs" | "abfss" => {
            let mut builder = object_store::azure::MicrosoftAzureBuilder::new().with_url(root).with_retry(retry);
            for (key, value) in of_vendor(settings, "azure_", object_store::azure::AzureConfigKey::Client) {
                builder = builder.with_config(key, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => return None,
    };
    Some(built.map_err(|error| Error::storage(root, format!("cannot be reached with these settings: {error}"))))
}

/// Settings of one vendor by key, and those of the HTTP client after the vendor's prefix (`AWS_READ_TIMEOUT`), which the
/// vendor's own keys hold few of.
fn of_vendor<'a, K: std::str::FromStr>(
    settings: &'a BTreeMap<String, String>,
    prefix: &'a str,
    client: impl Fn(ClientConfigKey) -> K,
) -> impl Iterator<Item = (K, &'a str)> {
    settings.iter().filter_map(move |(name, value)| {
        let of_client = name.strip_prefix(prefix)?;
        let key = name.parse().ok().or_else(|| of_client.parse().ok().map(&client))?;
        Some((key, value.as_str()))
    })
}
