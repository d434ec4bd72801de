//! Converts Squid's peers: parent proxies to `parent`, origin servers to an origin.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::acl::literal;
use super::lines::SquidLine;
use super::{SquidImport, is_for_all, unreadable};
use crate::serve::admin::requests::encode;
use toml::{Table, Value};

type Converted = Result<(), ImportReason>;

/// The parent proxies and origin servers, and the lines about when Squid uses them.
#[derive(Debug, Default)]
pub struct SquidPeers {
    parents: Vec<(String, Original)>,
    origins: Vec<(String, Original)>,
    /// `cache_peer_access` lines, which choose a peer by request. foxy cannot do this.
    choices: Vec<Original>,
    has_carp: bool,
    never_direct: bool,
    always_direct: Vec<(Vec<String>, Original)>,
}

/// Options without an effect on the conversion.
const PLAIN: [&str; 9] = [
    "no-query",
    "default",
    "no-digest",
    "no-netdb-exchange",
    "proxy-only",
    "connection-auth=off",
    "no-delay",
    "background-ping",
    "closest-only",
];

/// Converts `cache_peer HOST TYPE HTTP-PORT ICP-PORT [OPTION…]`.
pub fn cache_peer(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let [host, kind, port, _, options @ ..] = line.arguments() else {
        return Err(unreadable(&line.original));
    };
    if kind != "parent" {
        return Err(ImportReason::Missing("foxy asks no sibling caches".into()));
    }
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    if options.iter().any(|option| option == "originserver") {
        let origin = (format!("http://{host}:{port}"), line.original.clone());
        import.peers.origins.push(origin);
        return Ok(());
    }
    let mut credentials = String::new();
    let mut others: Vec<&str> = Vec::new();
    for option in options {
        match option.split_once('=') {
            Some(("login", login)) => match login.split_once(':') {
                Some((user, password)) if !user.starts_with('*') => {
                    credentials = format!("{}:{}@", encode(user), encode(password));
                }
                _ => others.push("login"),
            },
            Some(("name" | "weight" | "connect-timeout" | "max-conn", _)) => {}
            _ if PLAIN.contains(&option.as_str()) => {}
            None if option == "carp" || option == "sourcehash" => import.peers.has_carp = true,
            _ => others.push(option),
        }
    }
    let is_secret = !credentials.is_empty();
    let parent = (format!("http://{credentials}{host}:{port}"), line.original.clone());
    import.peers.parents.push(parent);
    if is_secret {
        let text = "the new file has a password; move it to `parent-credentials-file`";
        import.draft.leave(&line.original, ImportReason::Step(text.into()));
    }
    if others.is_empty() {
        return Ok(());
    }
    Err(ImportReason::Differs(format!("foxy has no option {}", others.join(", "))))
}

pub fn cache_peer_access(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    if !is_for_all(line, "allow", 1.min(line.arguments().len())) {
        import.peers.choices.push(line.original.clone());
    }
    Ok(())
}

pub fn never_direct(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    if is_for_all(line, "allow", 0) {
        import.peers.never_direct = true;
        return Ok(());
    }
    Err(ImportReason::Missing("foxy asks parents for all hosts but those of `no-proxy`".into()))
}

pub fn always_direct(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let [action, name] = line.arguments() else {
        return Err(ImportReason::Missing("write the hosts as `no-proxy`".into()));
    };
    let (negated, name) = literal(name);
    let hosts = import.acls.hosts(&name).filter(|_| !negated && action == "allow");
    let hosts = hosts.filter(|hosts| hosts.iter().all(|host| host.starts_with('.')));
    let Some(hosts) = hosts else {
        let text = "list the hosts in `no-proxy`, where a name covers all names below it";
        return Err(ImportReason::Missing(text.into()));
    };
    import.peers.always_direct.push((hosts, line.original.clone()));
    Ok(())
}

pub fn prefer_direct(_: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    match line.argument(0) {
        Some("off") => Err(ImportReason::NotNeeded("foxy asks parents first".into())),
        _ => Err(ImportReason::Missing("foxy asks parents first".into())),
    }
}

impl SquidPeers {
    pub fn finish(&self, draft: &mut ImportDraft) {
        self.add_origins(draft);
        for original in &self.choices {
            let text = "foxy does not choose peers by lists; the peers are not converted";
            draft.leave(original, ImportReason::Missing(text.into()));
        }
        let Some((_, first)) = self.parents.first() else { return };
        if !self.choices.is_empty() {
            return;
        }
        for (parent, original) in &self.parents {
            draft.push("parent", parent.as_str(), original);
        }
        if self.has_carp {
            draft.set("parent-choice", "rendezvous", first);
        }
        if !self.never_direct {
            draft.set("parent-fallback", "direct", first);
            let text = "foxy sends every request to the parent, also CONNECT and POST";
            draft.leave(first, ImportReason::Differs(text.into()));
        }
        for (hosts, original) in &self.always_direct {
            for host in hosts {
                draft.push("no-proxy", host.trim_start_matches('.'), original);
            }
        }
    }

    /// Converts all peers with the option `originserver` to one origin with several servers.
    fn add_origins(&self, draft: &mut ImportDraft) {
        let Some((_, first)) = self.origins.first().filter(|_| self.choices.is_empty()) else {
            return;
        };
        let servers = self.origins.iter().map(|(url, _)| Value::from(url.as_str())).collect();
        let origin = Table::from_iter([("servers".to_owned(), Value::Array(servers))]);
        draft.list("origin", origin, first);
    }
}
