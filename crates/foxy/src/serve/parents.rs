//! Chooses the parent proxies from the setting `parent`, or otherwise from environment variables.

use crate::failure::Failure;
use crate::secret_file;
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_proxy::upstream::{
    NoProxy, Parent, ParentChoice, ParentCredentials, ParentFallback, ParentSettings, Scheme,
};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Environment variables that name the parent proxy for http URLs. The first variable that is set
/// counts. `HTTP_PROXY` is not read: for a CGI program, a client can set it with the request field
/// `Proxy`. curl ignores the variable too.
const FOR_HTTP: &[&str] = &["http_proxy", "all_proxy", "ALL_PROXY"];
/// Environment variables that name the parent proxy for https URLs and CONNECT. The first variable
/// that is set counts.
const FOR_HTTPS: &[&str] = &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const BYPASSES: &[&str] = &["no_proxy", "NO_PROXY"];

/// Another `foxy run`, which shares its store.
pub struct Sibling {
    pub proxy: Parent,
    /// Certificate, in PEM, of the authority with which the sibling intercepts TLS.
    pub authority: String,
}

/// The parent proxies, with a line about each for the start-up message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChosenParents {
    parents: Vec<Parent>,
    no_proxy: Vec<NoProxy>,
    lines: Vec<String>,
    warnings: Vec<String>,
}

/// Chooses the parent proxies, reads their credentials, and prints warnings. `own` lists the
/// addresses of this process, which no parent proxy may have.
pub fn open(
    settings: &Settings,
    own: &[SocketAddr],
) -> Result<(ParentSettings, Vec<String>), Failure> {
    let ChosenParents { mut parents, no_proxy, lines, .. } = named(settings, own)?;
    if let Some(credentials) = credentials(settings)? {
        parents = parents.into_iter().map(|it| it.with_credentials(&credentials)).collect();
    }
    let choice = match settings.parents.parent_choice {
        "rendezvous" => ParentChoice::Rendezvous,
        _ => ParentChoice::Order,
    };
    let fallback = match settings.parents.parent_fallback {
        "direct" => ParentFallback::Direct,
        _ => ParentFallback::Refuse,
    };
    Ok((ParentSettings { parents, choice, fallback, no_proxy, sibling: None }, lines))
}

/// Chooses the parent proxies of the settings or of the environment, and prints warnings.
pub fn named(settings: &Settings, own: &[SocketAddr]) -> Result<ChosenParents, Failure> {
    let variable = |name: &str| std::env::var_os(name)?.into_string().ok();
    let chosen = choose(settings, own, variable)?;
    for warning in &chosen.warnings {
        terminal::report(Level::Warning, &format!("foxy: {warning}"));
    }
    Ok(chosen)
}

/// Reads the credentials for parent proxies from the file of `parent-credentials-file`, if this
/// setting is given.
pub fn credentials(settings: &Settings) -> Result<Option<ParentCredentials>, Failure> {
    settings.parents.parent_credentials_file.as_deref().map(read_credentials).transpose()
}

fn choose(
    settings: &Settings,
    own: &[SocketAddr],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ChosenParents, Failure> {
    let mut chosen = match &settings.parents.parent {
        None => of_environment(own, &variable),
        Some(parents) => {
            if let Some(parent) = parents.iter().find(|parent| is_own(parent, own)) {
                let text = format!("{parent} (parent) is foxy itself; name another proxy");
                return Err(Failure::Unusable(text));
            }
            let lines = parents.iter().map(|parent| line(parent, "parent")).collect();
            ChosenParents { parents: parents.clone(), lines, ..ChosenParents::default() }
        }
    };
    if let Some(no_proxy) = &settings.parents.no_proxy {
        chosen.no_proxy = no_proxy.clone();
    }
    Ok(chosen)
}

fn line(parent: &Parent, source: impl Display) -> String {
    format!("{parent} ({source})")
}

/// Returns the parent proxies that environment variables name. If the same proxy is named for http
/// and https, returns a single parent for both.
fn of_environment(own: &[SocketAddr], variable: &impl Fn(&str) -> Option<String>) -> ChosenParents {
    let mut chosen = ChosenParents::default();
    let mut named = |variables: &[&'static str]| {
        let mut set = variables.iter().filter_map(|name| Some((*name, variable(name)?)));
        // As with curl, an empty variable means that this scheme uses no proxy.
        let (name, text) = set.next().filter(|(_, text)| !text.trim().is_empty())?;
        let refusal = match text.trim().parse::<Parent>() {
            Ok(parent) if is_own(&parent, own) => "this parent is foxy itself".to_owned(),
            Ok(parent) => return Some((name, parent)),
            Err(error) => error.to_string(),
        };
        let warning = format!("{name} is ignored: {refusal}");
        if !chosen.warnings.contains(&warning) {
            chosen.warnings.push(warning);
        }
        None
    };
    match (named(FOR_HTTP), named(FOR_HTTPS)) {
        (Some((http, parent)), Some((https, other))) if parent == other => {
            let source = if http == https { http.into() } else { format!("{http}, {https}") };
            chosen.lines.push(line(&parent, source));
            chosen.parents.push(parent);
        }
        (http, https) => {
            for (found, scheme) in [(http, Scheme::Http), (https, Scheme::Https)] {
                let Some((name, parent)) = found else { continue };
                let source = format!("{name}, for {} only", scheme.as_str());
                chosen.lines.push(line(&parent, source));
                chosen.parents.push(parent.only_for(scheme));
            }
        }
    }
    if !chosen.parents.is_empty() {
        bypasses_of_environment(&mut chosen, variable);
    }
    chosen
}

fn bypasses_of_environment(chosen: &mut ChosenParents, variable: &impl Fn(&str) -> Option<String>) {
    let Some((name, text)) = BYPASSES.iter().find_map(|name| Some((name, variable(name)?))) else {
        return;
    };
    let words = text.split(|c: char| c == ',' || c.is_whitespace());
    for word in words.filter(|word| !word.is_empty()) {
        match word.parse() {
            Ok(rule) => chosen.no_proxy.push(rule),
            Err(error) => chosen.warnings.push(format!("{name}: {error}; foxy ignores this part")),
        }
    }
}

/// Returns true if a parent proxy's address is an address on which this process listens.
fn is_own(parent: &Parent, own: &[SocketAddr]) -> bool {
    let host = parent.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address: Option<IpAddr> = bare.parse().ok();
    let reaches = |own: IpAddr| match address {
        Some(address) => address == own || (address.is_loopback() && own.is_unspecified()),
        None => host == "localhost" && (own.is_loopback() || own.is_unspecified()),
    };
    own.iter().any(|own| own.port() == parent.port() && reaches(own.ip()))
}

fn read_credentials(path: &Path) -> Result<ParentCredentials, Failure> {
    secret_file::read_line(
        path,
        "parent-credentials-file",
        "USER:PASSWORD",
        ParentCredentials::read,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;
    use foxy_cli::machine::Machine;

    type Variables<'a> = &'a [(&'a str, &'a str)];

    fn settings(file: &str) -> Settings {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("foxy.toml");
        std::fs::write(&path, file).expect("written");
        let loaded = settings::load(Some(&path), None, &Machine::default());
        loaded.unwrap_or_else(|all| panic!("{all}")).settings
    }

    fn chosen(file: &str, variables: Variables<'_>) -> ChosenParents {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let own = [SocketAddr::from(([127, 0, 0, 1], 3128))];
        choose(&settings(file), &own, variable).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_environment_names_parents_as_for_curl() {
        let cases: [(Variables<'_>, &[&str]); 11] = [
            (&[], &[]),
            (&[("HTTP_PROXY", "http://p:1")], &[]),
            (
                &[("http_proxy", "http://u:secret@p:1"), ("HTTPS_PROXY", "http://u:secret@p:1")],
                &["http://***@p:1 (http_proxy, HTTPS_PROXY)"],
            ),
            (&[("http_proxy", "p:1")], &["http://p:1 (http_proxy, for http only)"]),
            (
                &[("https_proxy", "http://a:1"), ("HTTPS_PROXY", "http://b:1")],
                &["http://a:1 (https_proxy, for https only)"],
            ),
            (&[("ALL_PROXY", "http://p:1")], &["http://p:1 (ALL_PROXY)"]),
            (
                &[("http_proxy", "http://a:1"), ("all_proxy", "http://b:1")],
                &[
                    "http://a:1 (http_proxy, for http only)",
                    "http://b:1 (all_proxy, for https only)",
                ],
            ),
            (
                &[("http_proxy", ""), ("all_proxy", "http://b:1")],
                &["http://b:1 (all_proxy, for https only)"],
            ),
            (&[("all_proxy", "socks5://u:secret@p:1")], &[]),
            (&[("http_proxy", "http://localhost:3128")], &[]),
            (&[("http_proxy", "http://127.0.0.1:3128")], &[]),
        ];
        for (variables, expected) in cases {
            let chosen = chosen("", variables);
            assert_eq!(chosen.lines, expected, "{variables:?}");
            let warnings = chosen.warnings.join("\n");
            assert!(!warnings.contains("secret"), "{warnings}");
        }
    }

    #[test]
    fn a_variable_that_foxy_ignores_is_named_once() {
        let warnings = chosen("", &[("all_proxy", "socks5://p:1")]).warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("all_proxy is ignored: "), "{warnings:?}");
        let warnings = chosen("", &[("http_proxy", "http://localhost:3128")]).warnings;
        assert_eq!(warnings, ["http_proxy is ignored: this parent is foxy itself"]);
        let proxied = ("http_proxy", "http://p:1");
        let chosen = chosen("", &[proxied, ("no_proxy", "a.test, 192.168.* .b.test")]);
        assert_eq!(chosen.no_proxy.len(), 2);
        assert!(chosen.warnings[0].starts_with("no_proxy: \"192.168.*\" is not a host"));
    }

    #[test]
    fn settings_come_before_the_environment() {
        let variables = [("http_proxy", "http://a:1"), ("no_proxy", "a.test")];
        let of_file = chosen("parent = \"http://b:1\"", &variables);
        assert_eq!(
            (&of_file.lines[..], of_file.no_proxy.len()),
            (&["http://b:1 (parent)".into()][..], 0)
        );
        for none in ["parent = []", "parent = \"off\""] {
            assert_eq!(chosen(none, &variables), ChosenParents::default(), "{none}");
        }
        let both = chosen("no-proxy = [\"b.test\", \"c.test\"]", &variables);
        assert_eq!((both.parents.len(), both.no_proxy.len()), (1, 2));
    }

    #[test]
    fn foxy_is_not_its_own_parent() {
        let own = [SocketAddr::from(([127, 0, 0, 1], 3128))];
        let refused =
            choose(&settings("parent = \"http://u:secret@127.0.0.1:3128\""), &own, |_| None);
        let text = refused.expect_err("a loop").to_string();
        assert_eq!(text, "http://***@127.0.0.1:3128 (parent) is foxy itself; name another proxy");
    }

    #[test]
    fn the_credentials_file_is_a_secret_of_one_line() {
        use std::fs::{Permissions, set_permissions};
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("credentials");
        let read = |content: &str, mode| {
            std::fs::write(&path, content).expect("written");
            set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
            read_credentials(&path).map_err(|error| error.to_string())
        };
        assert!(read("user:secret\n", 0o600).is_ok());
        for (content, mode, expected) in [
            ("user:secret", 0o644, "may be read by every user"),
            ("secret", 0o600, "write one line with USER:PASSWORD"),
            ("user:secret\nmore", 0o600, "write one line with USER:PASSWORD"),
        ] {
            let refused = read(content, mode).expect_err(content);
            assert!(refused.contains(expected) && !refused.contains("secret\n"), "{refused}");
        }
    }
}
