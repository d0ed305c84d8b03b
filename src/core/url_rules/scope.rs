//! Scopes: the sets of URLs to which rules apply.

use std::fmt;

use super::address::UrlParts;

/// A part of a site: hosts, a part of their paths, and optionally a parameter that a URL must have.
///
/// ```
/// use webtwin_core::url_rules::{address::UrlParts, scope::SiteScope};
///
/// let scope = SiteScope::parse("*.a.example/wiki/*?do=login").unwrap();
/// assert!(scope.holds(&UrlParts::parse("http://www.a.example/wiki/x?id=1&do=login").unwrap()));
/// assert!(!scope.holds(&UrlParts::parse("http://www.a.example/wiki/x?do=login2").unwrap()));
/// assert_eq!(scope.to_string(), "*.a.example/wiki/*?do=login");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteScope {
    /// Hosts of the URLs.
    pub hosts: HostScope,
    /// Paths of the URLs.
    pub paths: Paths,
    /// Parameter and value, as in the query.
    pub parameter: Option<String>,
}

/// Hosts of a [`SiteScope`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostScope {
    /// A domain and all hosts below it.
    Domain(String),
    /// One host, at any port.
    Host(String),
}

/// Paths of a [`SiteScope`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Paths {
    /// Paths that begin with this text, which ends with `/`.
    Below(String),
    /// A single path.
    Is(String),
}

/// Maximum number of folders of a path that define a scope.
const MAX_FOLDERS: usize = 3;
/// Maximum number of parameters of a URL that define scopes, and maximum bytes of such a parameter.
const PARAMETERS: usize = 4;
const LONGEST_PARAMETER: usize = 32;

impl SiteScope {
    /// True if the scope contains the URL.
    pub fn holds(&self, address: &UrlParts<'_>) -> bool {
        let path = match &self.paths {
            Paths::Below(folder) => address.path.starts_with(folder.as_str()),
            Paths::Is(path) => address.path == path,
        };
        let has_parameter = |parameter: &String| address.pieces().any(|piece| piece == parameter);
        path && self.hosts.hold(address.host()) && self.parameter.as_ref().is_none_or(has_parameter)
    }

    /// True if the scope contains all URLs of another scope.
    pub fn contains(&self, other: &SiteScope) -> bool {
        let hosts = match (&self.hosts, &other.hosts) {
            (HostScope::Host(own), HostScope::Host(host)) => own == host,
            (HostScope::Host(_), HostScope::Domain(_)) => false,
            (HostScope::Domain(_), HostScope::Host(host) | HostScope::Domain(host)) => self.hosts.hold(host),
        };
        let paths = match (&self.paths, &other.paths) {
            (Paths::Below(folder), Paths::Below(path) | Paths::Is(path)) => path.starts_with(folder.as_str()),
            (Paths::Is(own), Paths::Is(path)) => own == path,
            (Paths::Is(_), Paths::Below(_)) => false,
        };
        hosts && paths && (self.parameter.is_none() || self.parameter == other.parameter)
    }

    /// Returns a key that orders scopes from the most general, in the order of
    /// [`UrlScope::all_of`].
    pub fn specificity(&self) -> (bool, bool, bool, usize) {
        let (is_path, length) = match &self.paths {
            Paths::Below(folder) => (false, folder.len()),
            Paths::Is(path) => (true, path.len()),
        };
        (self.parameter.is_some(), matches!(self.hosts, HostScope::Host(_)), is_path, length)
    }

    /// Parses the display form of a [`SiteScope`].
    pub fn parse(text: &str) -> Option<SiteScope> {
        let (place, parameter) = text.split_once('?').map_or((text, None), |(place, piece)| (place, Some(piece)));
        let (host, path) = place.split_at(place.find('/')?);
        let hosts = match host.strip_prefix("*.") {
            Some(domain) => HostScope::Domain(domain.to_string()),
            None => HostScope::Host(host.to_string()),
        };
        let paths = match path.strip_suffix('*') {
            Some(folder) => Paths::Below(folder.to_string()),
            None => Paths::Is(path.to_string()),
        };
        Some(SiteScope { hosts, paths, parameter: parameter.map(str::to_string) })
    }
}

/// Scope of a URL, with texts that are borrowed from the URL and its domain.
///
/// A URL is in a dozen scopes, and evidence is counted for all scopes of many URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UrlScope<'u> {
    /// Host, or the domain.
    host: &'u str,
    is_domain: bool,
    /// Path, or the folder that paths begin with.
    path: &'u str,
    is_folder: bool,
    parameter: Option<&'u str>,
}

impl<'u> UrlScope<'u> {
    /// Returns the scopes that contain a URL of a domain, the most general first.
    pub fn all_of(address: &UrlParts<'u>, domain: &'u str) -> Vec<UrlScope<'u>> {
        let host = address.host();
        let folders = address.path.match_indices('/').map(|(at, _)| &address.path[..=at]).take(MAX_FOLDERS + 1);
        let is_plain = |text: &&str| !text.contains(['*', '?']);
        let on_host = |path, is_folder| UrlScope { host, is_domain: false, path, is_folder, parameter: None };
        let mut scopes = vec![UrlScope { host: domain, is_domain: true, path: "/", is_folder: true, parameter: None }];
        scopes.extend(folders.filter(is_plain).map(|folder| on_host(folder, true)));
        scopes.extend(is_plain(&address.path).then(|| on_host(address.path, false)));
        let pieces = address.pieces().filter(|piece| (3..=LONGEST_PARAMETER).contains(&piece.len()));
        let mut pieces: Vec<&str> =
            pieces.filter(|piece| piece.contains('=') && is_plain(piece)).take(PARAMETERS).collect();
        pieces.sort_unstable();
        pieces.dedup();
        // A parameter is combined with all paths of the domain and with this path. Other
        // combinations rarely differ from these.
        for scope in [scopes[0], scopes[scopes.len() - 1]] {
            scopes.extend(pieces.iter().map(|&piece| UrlScope { parameter: Some(piece), ..scope }));
        }
        scopes
    }
}

impl From<UrlScope<'_>> for SiteScope {
    fn from(scope: UrlScope<'_>) -> SiteScope {
        let UrlScope { host, is_domain, path, is_folder, parameter } = scope;
        let (host, path) = (host.to_string(), path.to_string());
        SiteScope {
            hosts: if is_domain { HostScope::Domain(host) } else { HostScope::Host(host) },
            paths: if is_folder { Paths::Below(path) } else { Paths::Is(path) },
            parameter: parameter.map(str::to_string),
        }
    }
}

impl HostScope {
    /// True if the host is one of these hosts.
    pub fn hold(&self, host: &str) -> bool {
        match self {
            HostScope::Host(own) => own == host,
            HostScope::Domain(domain) => {
                host.strip_suffix(domain.as_str()).is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
        }
    }

    /// Returns the host, or the domain.
    pub fn name(&self) -> &str {
        let (HostScope::Host(name) | HostScope::Domain(name)) = self;
        name
    }
}

impl fmt::Display for SiteScope {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            HostScope::Domain(domain) => write!(to, "*.{domain}")?,
            HostScope::Host(host) => write!(to, "{host}")?,
        }
        match &self.paths {
            Paths::Below(folder) => write!(to, "{folder}*")?,
            Paths::Is(path) => write!(to, "{path}")?,
        }
        self.parameter.as_ref().map_or(Ok(()), |parameter| write!(to, "?{parameter}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_url_is_in_scopes_from_its_domain_to_its_path_and_parameters() {
        let address = UrlParts::parse("http://w.a.example/x/y.php?do=z&q").unwrap();
        let scope_names: Vec<String> = UrlScope::all_of(&address, "a.example")
            .into_iter()
            .map(|scope| SiteScope::from(scope).to_string())
            .collect();
        let expected = [
            "*.a.example/*",
            "w.a.example/*",
            "w.a.example/x/*",
            "w.a.example/x/y.php",
            "*.a.example/*?do=z",
            "w.a.example/x/y.php?do=z",
        ];
        assert_eq!(scope_names, expected);
    }

    proptest! {
        #[test]
        fn scopes_of_a_url_hold_it_and_are_read_as_written(
            url in "http://(w\\.)?a\\.b(:8)?(/[xy]{0,2}){1,5}(\\?([de]=[12]{1,2}&?){0,3})?",
            other in "http://(w\\.)?a\\.b(:8)?(/[xy]{0,2}){1,5}(\\?([de]=[12]{1,2}&?){0,3})?",
        ) {
            let [address, other] = [&url, &other].map(|url| UrlParts::parse(url).unwrap());
            let scopes: Vec<SiteScope> = UrlScope::all_of(&address, "a.b").into_iter().map(SiteScope::from).collect();
            for scope in &scopes {
                prop_assert!(scope.holds(&address));
                prop_assert_eq!(SiteScope::parse(&scope.to_string()), Some(scope.clone()));
                // A URL outside a scope is outside all scopes that it contains.
                for narrow in scopes.iter().filter(|narrow| scope.contains(narrow)) {
                    prop_assert!(!narrow.holds(&other) || scope.holds(&other));
                }
                prop_assert!(scopes[0].contains(scope));
            }
        }
    }
}
