//! The cluster file describes *where* a job runs. The job file describes *what* is computed. They
//! are independent of each other.
//!
//! ```toml
//! workers  = 2              # per process
//! deadline = "60s"          # time limit of joining, and of the silence of a process
//! key_file = "cluster.key"  # required if an address is not loopback
//!
//! [[process]]
//! address = "10.0.0.1:2101"
//! ```
//!
//! Without `[[process]]` the job runs in one process and opens no socket.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use toml::{Table, Value};

use super::key::ClusterKey;
use webtwin_base::error::{Error, Result};

/// Deadline of a cluster file without one.
const DEADLINE: Duration = Duration::from_secs(60);

/// Maximum number of workers of a process, and of processes. A larger number is a typing error.
pub const MAX_WORKERS: usize = 4096;

/// Place where a job runs: processes and their worker threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterLayout {
    /// Number of worker threads of each process, at least 1.
    pub workers: usize,
    /// Time that a process may take to join the others, and that it may be silent after that.
    pub deadline: Duration,
    /// Key that all processes share. Absent only if every address is loopback.
    pub key: ClusterKey,
    /// `host:port` of each process, in order. Empty for a single process without a socket.
    pub addresses: Vec<String>,
}

impl ClusterLayout {
    /// Returns a cluster of one process with `workers` threads and no socket.
    pub fn local(workers: usize) -> ClusterLayout {
        ClusterLayout { workers, deadline: DEADLINE, key: ClusterKey::none(), addresses: Vec::new() }
    }

    /// Reads a cluster file and the key file that it names. The path of the key file is relative to
    /// the folder of the cluster file.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if a file cannot be read, and [`Error::Setting`] if a setting is
    /// invalid.
    pub fn load(path: &Path) -> Result<ClusterLayout> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|cause| Error::Usage(format!("cluster file {name}: {cause}; see cluster-config/ for examples")))?;
        ClusterLayout::parse(&text, &name, path.parent().unwrap_or(Path::new("")))
    }

    /// Parses the text of a cluster file. Messages call the file `file`. The paths of key files are
    /// relative to `folder`.
    ///
    /// # Errors
    /// Returns the errors of [`ClusterLayout::load`].
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<ClusterLayout> {
        let file = File(file);
        let table: Table = text.parse().map_err(|cause: toml::de::Error| {
            Error::Usage(format!("cluster file {}: {}", file.0, cause.to_string().trim().replace('\n', " ")))
        })?;
        file.check_keys(&table, "", &["workers", "deadline", "key_file", "key_env", "process"])?;

        let workers = match table.get("workers") {
            Some(Value::Integer(workers)) if (1..=MAX_WORKERS as i64).contains(workers) => *workers as usize,
            other => {
                return Err(file.setting_error(
                    "workers",
                    other,
                    &format!("a number of threads from 1 to {MAX_WORKERS}"),
                ));
            }
        };
        let deadline = match table.get("deadline") {
            None => DEADLINE,
            Some(value) => value.as_str().and_then(duration).ok_or_else(|| {
                file.setting_error("deadline", Some(value), "a time from \"100ms\" to \"24h\", for example \"60s\"")
            })?,
        };
        let addresses = file.addresses(&table)?;
        let key_file = match table.get("key_file") {
            None => None,
            Some(Value::String(path)) if !path.is_empty() => Some(folder.join(path)),
            other => return Err(file.setting_error("key_file", other, "the path of a file")),
        };
        let key_env = match table.get("key_env") {
            None => None,
            // With two sources of the key it would be unclear which of them applies.
            Some(Value::String(name)) if !name.is_empty() && key_file.is_none() => Some(name),
            other => {
                return Err(file.setting_error(
                    "key_env",
                    other,
                    "the name of an environment variable, and left out with key_file",
                ));
            }
        };
        // A key is required as soon as one address can be reached from other machines.
        let open = addresses.iter().find(|address| !is_loopback(address));
        let key = match (key_file, key_env, open) {
            (Some(path), _, open) => ClusterKey::read(&path, open.is_some())?,
            (None, Some(name), _) => ClusterKey::from_environment(name)?,
            (None, None, None) => ClusterKey::none(),
            (None, None, Some(address)) => {
                let must_be = format!("the path of a key file, because {address} can be reached from other machines");
                return Err(file.setting_error("key_file", None, &must_be));
            }
        };
        Ok(ClusterLayout { workers, deadline, key, addresses })
    }

    /// Returns the number of processes, at least 1.
    pub fn processes(&self) -> usize {
        self.addresses.len().max(1)
    }

    /// Checks that `process` is the number of a process of this cluster. Processes are numbered
    /// from 0.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if it is not.
    pub fn check_process(&self, process: usize) -> Result<()> {
        if process < self.processes() {
            return Ok(());
        }
        let last = self.processes() - 1;
        Err(Error::Usage(format!(
            "--process {process}: the cluster file has {} processes, so the number must be from 0 to {last}",
            last + 1
        )))
    }
}

/// Name of the cluster file, for messages.
struct File<'a>(&'a str);

impl File<'_> {
    fn setting_error(&self, setting: &str, got: Option<&Value>, must_be: &str) -> Error {
        Error::Setting {
            file: self.0.to_string(),
            setting: setting.to_string(),
            got: got.map_or("missing".to_string(), |value| value.to_string().trim().to_string()),
            must_be: must_be.to_string(),
        }
    }

    /// Rejects a key that is not in `known_keys`, and names the nearest known key in the error.
    fn check_keys(&self, table: &Table, prefix: &str, known_keys: &[&str]) -> Result<()> {
        let Some(key) = table.keys().find(|key| !known_keys.contains(&key.as_str())) else { return Ok(()) };
        let nearest = known_keys
            .iter()
            .min_by_key(|known| strsim::damerau_levenshtein(key, known))
            .expect("every table has a known key");
        Err(Error::Setting {
            file: self.0.to_string(),
            setting: format!("{prefix}{key}"),
            got: "not a setting".to_string(),
            must_be: format!("one of {}; the nearest is {nearest}", known_keys.join(", ")),
        })
    }

    fn addresses(&self, table: &Table) -> Result<Vec<String>> {
        let processes = match table.get("process") {
            None => return Ok(Vec::new()),
            Some(Value::Array(processes)) if (1..=MAX_WORKERS).contains(&processes.len()) => processes,
            other => return Err(self.setting_error("process", other, "written as [[process]], once for each process")),
        };
        let mut distinct_addresses = HashSet::new();
        let mut addresses = Vec::with_capacity(processes.len());
        for (at, process) in processes.iter().enumerate() {
            let setting = format!("process[{at}].address");
            let table = process.as_table().ok_or_else(|| {
                self.setting_error(&format!("process[{at}]"), Some(process), "a table with an address")
            })?;
            self.check_keys(table, &format!("process[{at}]."), &["address"])?;
            let value = table.get("address");
            let address =
                value.and_then(Value::as_str).filter(|address| host_and_port(address).is_some()).ok_or_else(|| {
                    self.setting_error(&setting, value, "host:port or [IPv6]:port, with a port from 1 to 65535")
                })?;
            if !distinct_addresses.insert(address.to_ascii_lowercase()) {
                return Err(self.setting_error(&setting, value, "an address that no other process has"));
            }
            addresses.push(address.to_string());
        }
        Ok(addresses)
    }
}

/// Splits `host:port` or `[IPv6]:port`. Returns `None` if the text is neither.
fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|&port| port > 0)?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']').filter(|host| host.parse::<std::net::Ipv6Addr>().is_ok())?,
        None => host,
    };
    let is_host_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    (!host.is_empty() && (is_host_name || host.parse::<IpAddr>().is_ok()) && (is_host_name || address.starts_with('[')))
        .then_some((host, port))
}

/// True if only this machine can reach `address`, judged by its text.
pub(super) fn is_loopback(address: &str) -> bool {
    let Some((host, _)) = host_and_port(address) else { return false };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Parses `"250ms"`, `"60s"`, `"5m"` or `"1h"`. Returns `None` outside of 100 ms to 24 h.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim_start() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let duration = Duration::from_millis(number.checked_mul(unit)?);
    (Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(&duration).then_some(duration)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<ClusterLayout> {
        ClusterLayout::parse(text, "c.toml", Path::new(""))
    }

    fn refusal(text: &str) -> String {
        let error = parse(text).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }

    fn processes(addresses: &[&str]) -> String {
        addresses
            .iter()
            .fold("workers = 1\n".to_string(), |text, address| format!("{text}[[process]]\naddress = {address:?}\n"))
    }

    #[test]
    fn two_processes_on_loopback_need_no_key() {
        let text = format!("deadline = \"5m\"\n{}", processes(&["127.0.0.1:2101", "[::1]:2102", "localhost:2103"]));
        let cluster = parse(&text).unwrap();
        assert_eq!((cluster.workers, cluster.processes()), (1, 3));
        assert_eq!(cluster.deadline, Duration::from_secs(300));
        assert!(cluster.key.is_none());
        assert!(cluster.check_process(2).is_ok());
        let error = cluster.check_process(3).unwrap_err();
        assert!(error.to_string().contains("from 0 to 2"), "{error}");
    }

    #[test]
    fn a_file_without_processes_is_one_process() {
        let cluster = parse("workers = 3").unwrap();
        assert_eq!(cluster, ClusterLayout::local(3));
        assert_eq!(cluster.processes(), 1);
    }

    #[test]
    fn unknown_key_error_names_the_nearest_known_key() {
        let line = refusal("worker = 2");
        assert!(line.starts_with("c.toml: worker is not a setting") && line.ends_with("nearest is workers"), "{line}");
        let line = refusal("workers = 2\n[[process]]\naddres = \"127.0.0.1:1\"");
        assert!(line.contains("process[0].addres is") && line.ends_with("nearest is address"), "{line}");
    }

    #[test]
    fn every_broken_setting_is_named_with_its_value() {
        for (text, part) in [
            ("", "workers is missing"),
            ("workers = 0", "workers is 0"),
            ("workers = -1", "workers is -1"),
            ("workers = \"2\"", "workers is \"2\""),
            ("workers = 2\ndeadline = \"soon\"", "deadline is \"soon\""),
            ("workers = 2\ndeadline = \"0s\"", "deadline is \"0s\""),
            ("workers = 2\ndeadline = 60", "deadline is 60"),
            ("workers = 2\nkey_file = \"\"", "key_file is \"\""),
            ("workers = 2\nprocess = []", "process is []"),
            ("workers = 2\n[process]\naddress = \"127.0.0.1:1\"", "process is {"),
            ("workers = 2\n[[process]]", "process[0].address is missing"),
            ("workers = [", "cluster file c.toml"),
            (&processes(&["127.0.0.1:0"]), "process[0].address is \"127.0.0.1:0\""),
            (&processes(&["127.0.0.1"]), "process[0].address"),
            (&processes(&["::1:2101"]), "process[0].address"),
            (&processes(&["a b:2101"]), "process[0].address"),
            (&processes(&["127.0.0.1:1", "127.0.0.1:70000"]), "process[1].address"),
            (&processes(&["localhost:1", "LOCALHOST:1"]), "process[1].address is \"LOCALHOST:1\""),
        ] {
            let line = refusal(text);
            assert!(line.contains(part) && !line.contains('\n'), "{text:?}: {line}");
        }
    }

    #[test]
    fn an_address_beyond_loopback_is_refused_without_a_key_file() {
        for address in ["10.0.0.1:2101", "0.0.0.0:2101", "[::]:2101", "node-1.example:2101"] {
            let line = refusal(&processes(&["127.0.0.1:2100", address]));
            assert!(line.contains("key_file is missing") && line.contains(address), "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn key_file_is_next_to_its_cluster_file_and_private_beyond_loopback() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("k");
        std::fs::write(&key, [b'x'; 40]).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, format!("key_file = \"k\"\n{}", processes(&["10.0.0.1:2101"]))).unwrap();
        assert!(ClusterLayout::load(&path).unwrap_err().to_string().contains("mode 0644"));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(!ClusterLayout::load(&path).unwrap().key.is_none());
    }

    #[test]
    fn a_missing_cluster_file_is_named() {
        let error = ClusterLayout::load(Path::new("no/such.toml")).unwrap_err();
        assert!(error.to_string().contains("no/such.toml") && error.exit_code() == 2, "{error}");
    }

    #[test]
    fn every_shipped_cluster_file_reads() {
        for (text, processes) in [
            (include_str!("../../cluster-config/local.toml"), 1),
            (include_str!("../../cluster-config/two-processes.toml"), 2),
        ] {
            assert_eq!(parse(text).unwrap().processes(), processes);
        }
        let folder = tempfile::tempdir().unwrap();
        let error =
            ClusterLayout::parse(include_str!("../../cluster-config/four-hosts.example.toml"), "c", folder.path());
        let line = error.unwrap_err().to_string();
        assert!(line.starts_with("key file "), "everything but the key is in order: {line}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,80}", address in ".{0,20}") {
            let _ = parse(&text);
            let _ = parse(&processes(&[&address]));
            let _ = duration(&text);
        }
    }
}
