//! Clients of the three cloud vendors. Each is a cargo feature; without any of them this file is
//! not compiled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};

use super::blocking::wait;
use webtwin_base::error::{Error, Result};

/// Maximum pause between two attempts of a request.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Maximum number of attempts. It is more than the time limit allows, so the time limit decides.
const MAX_TRIES: usize = 10_000;

/// Number of attempts to connect to an address, and the time limit of each.
const CONNECT_TRIES: u32 = 3;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a root, `scheme://bucket`. Returns `None` if this build does not support the scheme. The
/// names of `settings` are in lower case. Requests are retried for the time `patience`, with no
/// other limit on their number.
///
/// # Errors
/// Returns [`Error::Usage`] if the settings contain an invalid address or one without a server, and
/// [`Error::Storage`] if they describe no usable store.
pub(super) fn open(
    scheme: &str,
    root: &str,
    settings: &BTreeMap<String, String>,
    patience: Duration,
) -> Option<Result<Arc<dyn ObjectStore>>> {
    // The call fails if a TLS provider is already installed, and any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let backoff = BackoffConfig { max_backoff: LONGEST_PAUSE, ..BackoffConfig::default() };
    let retry = RetryConfig { backoff, max_retries: MAX_TRIES, retry_timeout: patience };
    #[cfg_attr(not(any(feature = "aws", feature = "azure")), expect(unused_variables))]
    let allow_http = match Endpoint::from_scheme(scheme, settings).map(|endpoint| endpoint.look()).transpose() {
        Ok(allow_http) => allow_http.unwrap_or(false),
        Err(error) => return Some(Err(error)),
    };
    let client: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        #[cfg(feature = "aws")]
        "s3" | "s3a" => {
            let mut builder = object_store::aws::AmazonS3Builder::new().with_url(root).with_retry(retry);
            builder = builder.with_allow_http(allow_http);
            for (key, value) in of_vendor(settings, "aws_", object_store::aws::AmazonS3ConfigKey::Client) {
                builder = builder.with_config(key, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        #[cfg(feature = "gcp")]
        // `Endpoint` supports no other address for Google Cloud Storage, so HTTP is not allowed.
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
            builder = builder.with_allow_http(allow_http);
            for (key, value) in of_vendor(settings, "azure_", object_store::azure::AzureConfigKey::Client) {
                builder = builder.with_config(key, value);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => return None,
    };
    Some(client.map_err(|error| Error::storage(root, format!("cannot be reached with these settings: {error}"))))
}

/// Returns the settings of one vendor by key. Settings of the HTTP client are accepted with the
/// vendor's prefix (`AWS_READ_TIMEOUT`), because the vendor's own keys include few of them.
fn of_vendor<'a, K: std::str::FromStr>(
    settings: &'a BTreeMap<String, String>,
    prefix: &'a str,
    client: impl Fn(ClientConfigKey) -> K,
) -> impl Iterator<Item = (K, &'a str)> {
    settings.iter().filter_map(move |(name, value)| {
        let client_name = name.strip_prefix(prefix)?;
        let key = name.parse().ok().or_else(|| client_name.parse().ok().map(&client))?;
        Some((key, value.as_str()))
    })
}

/// Address of a store that settings define instead of the vendor's own.
struct Endpoint<'s> {
    setting: &'static str,
    value: &'s str,
}

impl Endpoint<'_> {
    fn from_scheme<'s>(scheme: &str, settings: &'s BTreeMap<String, String>) -> Option<Endpoint<'s>> {
        // In order of precedence.
        let names: &[&'static str] = match scheme {
            "s3" | "s3a" => &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"],
            "az" | "abfs" | "abfss" => &["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"],
            _ => &[],
        };
        let value = |setting: &'static str| Some((setting, settings.get(&setting.to_ascii_lowercase())?));
        let (setting, value) = names.iter().find_map(|name| value(name))?;
        Some(Endpoint { setting, value })
    }

    /// Checks that a server accepts connections at the address, because a request to a wrong
    /// address would be retried for minutes. Returns true if the address is unencrypted.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the address is invalid or no server accepts connections.
    fn look(&self) -> Result<bool> {
        let refuse = |what: String| Err(Error::Usage(format!("{}: {what}", self.setting)));
        let url = match url::Url::parse(self.value) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
            _ => {
                return refuse(
                    "is not the address of a store; write https://HOST, or http://HOST:PORT without encryption".into(),
                );
            }
        };
        // Without credentials, which must not reach a log.
        let address = url.origin().ascii_serialization();
        let client = reqwest::Client::builder()
            .timeout(CONNECT_TIMEOUT)
            // The request carries no data and only tests the connection. The store's own client
            // validates certificates.
            .tls_danger_accept_invalid_certs(true)
            .build()
            .map_err(|cause| Error::storage(&address, cause))?;
        let mut connection_error = None;
        for look in 0..CONNECT_TRIES {
            if look > 0 {
                std::thread::sleep(Duration::from_secs(1));
            }
            match wait(async { client.head(url.clone()).send().await })? {
                Err(cause) if cause.is_connect() => connection_error = Some(root_cause(&cause)),
                // Any response will do.
                _ => return Ok(url.scheme() == "http"),
            }
        }
        let cause = connection_error.unwrap_or_default();
        refuse(format!("no store answers at {address}: {cause}; check the address, and that the store runs"))
    }
}

/// Returns the message of the last error in a chain of causes.
fn root_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), root_cause)
}

#[cfg(all(test, feature = "aws"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use crate::location::Location;
    use crate::stores::Stores;

    fn stores(endpoint: &str) -> Stores {
        Stores::with_settings([("AWS_ENDPOINT_URL", endpoint), ("AWS_SKIP_SIGNATURE", "true")])
    }

    /// Starts a server that closes `closes` connections after the first one, and then responds to
    /// every request with 404. Returns its address.
    fn server(closes: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                // Reading the request first prevents a reset when the connection is closed.
                let mut stream = stream;
                let _ = stream.read(&mut [0; 4096]);
                if (1..=closes).contains(&number) {
                    continue;
                }
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        address
    }

    #[test]
    fn an_address_without_encryption_needs_no_other_setting_and_a_request_is_tried_more_than_ten_times() {
        let stores = stores(&server(12));
        assert_eq!(Location::parse_with("s3://bucket/key", &stores).unwrap().get().unwrap(), None);
    }

    #[test]
    fn unreachable_store_address_is_rejected_before_any_work() {
        for (endpoint, message) in [
            ("127.0.0.1:9", "is not the address"),
            ("ftp://127.0.0.1", "is not the address"),
            ("", "is not the address"),
            ("http://user:hunter2@127.0.0.1:9/?secret", "no store answers at http://127.0.0.1:9"),
        ] {
            let error = Location::parse_with("s3://bucket/key", &stores(endpoint)).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.exit_code(), 2, "{text}");
            assert!(text.starts_with("AWS_ENDPOINT_URL: ") && text.contains(message), "{text}");
            assert!(!text.contains("hunter2") && !text.contains("secret"), "{text}");
        }
    }
}
