//! Converts Squid's peers: parent proxies to `parent`, origin servers to an origin.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, Facets};
use super::access::{self, AccessLine};
use super::acl::SquidAcls;
use super::lines::SquidLine;
use super::{SquidImport, access_line, is_for_all, unreadable};
use crate::serve::admin::requests::encode;
use toml::{Table, Value};

type Converted = Result<(), ImportReason>;

/// The parent proxies and origin servers, and the lines about when Squid uses them.
#[derive(Debug, Default)]
pub struct SquidPeers {
    parents: Vec<(String, Original)>,
    origins: Vec<(String, Original)>,
    /// `cache_peer_access` lines, which choose a peer for a request by access lists (`acl`). foxy
    /// cannot do this.
    choices: Vec<Original>,
    has_carp: bool,
    /// Lines of peers that have a password.
    secrets: Vec<Original>,
    /// Lines about requests that Squid never (or always) sends to the origin itself.
    never_direct: Vec<AccessLine>,
    always_direct: Vec<AccessLine>,
    no_proxy: Vec<(Vec<String>, Original)>,
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
    if !credentials.is_empty() {
        import.peers.secrets.push(line.original.clone());
    }
    let parent = (format!("http://{credentials}{host}:{port}"), line.original.clone());
    import.peers.parents.push(parent);
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
    import.peers.never_direct.push(access_line(line)?);
    Ok(())
}

pub fn always_direct(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let access = access_line(line)?;
    let hosts = match access.literals() {
        [(false, name)] if access.allows() => import.acls.hosts(name),
        _ => None,
    };
    import.peers.always_direct.push(access);
    let Some(hosts) = hosts.filter(|hosts| hosts.iter().all(|host| host.starts_with('.'))) else {
        let text = "list the hosts in `no-proxy`, where a name covers all names below it";
        return Err(ImportReason::Missing(text.into()));
    };
    import.peers.no_proxy.push((hosts, line.original.clone()));
    Ok(())
}

pub fn prefer_direct(_: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    match line.argument(0) {
        Some("off") => Err(ImportReason::NotNeeded("foxy asks parents first".into())),
        _ => Err(ImportReason::Missing("foxy asks parents first".into())),
    }
}

impl SquidPeers {
    pub const fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    pub fn finish(&self, draft: &mut ImportDraft, acls: &SquidAcls) {
        self.add_origins(draft);
        for original in &self.choices {
            let text = "foxy does not choose peers by access lists; the peers are not converted";
            draft.leave(original, ImportReason::Missing(text.into()));
        }
        let parents = self.parents.first().filter(|_| self.choices.is_empty());
        let Some((_, first)) = parents else {
            for (_, original) in &self.parents {
                let text = "`cache_peer_access` chooses its requests, so foxy does not use it";
                draft.leave(original, ImportReason::Missing(text.into()));
            }
            return self.refuse_direct(draft, acls);
        };
        for (parent, original) in &self.parents {
            draft.push("parent", parent.as_str(), original);
        }
        for original in &self.secrets {
            let text = "the new file has a password; move it to `parent-credentials-file`";
            draft.leave(original, ImportReason::Step(text.into()));
        }
        if self.has_carp {
            draft.set("parent-choice", "rendezvous", first);
        }
        if self.never_direct.is_empty() {
            draft.set("parent-fallback", "direct", first);
            let text = "foxy sends every request to the parent, also CONNECT and POST";
            draft.leave(first, ImportReason::Differs(text.into()));
        }
        let is_all = |line: &AccessLine| matches!(line.literals(), [(false, all)] if all == "all");
        for line in self.never_direct.iter().filter(|line| !line.allows() || !is_all(line)) {
            let text = "foxy sends all requests to the parent, and none to the origin itself";
            draft.leave(line.original(), ImportReason::Differs(text.into()));
        }
        for (hosts, original) in &self.no_proxy {
            for host in hosts {
                draft.push("no-proxy", host.trim_start_matches('.'), original);
            }
        }
    }

    /// Refuses the requests that Squid sends to a parent proxy alone, because the new configuration
    /// has no parent.
    fn refuse_direct(&self, draft: &mut ImportDraft, acls: &SquidAcls) {
        let mut exceptions: Vec<Facets> = Vec::new();
        let direct = self.always_direct.iter().filter(|line| line.allows());
        for line in direct.chain(&self.never_direct) {
            let expanded = acls.expand(line.literals());
            if line.allows() && self.never_direct.iter().any(|other| std::ptr::eq(other, line)) {
                match expanded {
                    Ok(expanded) if expanded.lost.is_empty() => {
                        refuse(draft, &expanded.terms, &exceptions, line.original());
                    }
                    _ => refuse(draft, &[AccessTerm::default()], &exceptions, line.original()),
                }
            } else if let Ok(expanded) = expanded {
                let terms = expanded.terms.into_iter().filter(|term| term.unless.is_empty());
                exceptions.extend(terms.map(|term| term.when));
            }
        }
        if let Some(last) = self.never_direct.last().filter(|line| !line.allows()) {
            refuse(draft, &[AccessTerm::default()], &exceptions, last.original());
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

fn refuse(
    draft: &mut ImportDraft,
    terms: &[AccessTerm],
    exceptions: &[Facets],
    original: &Original,
) {
    for (number, term) in (1..).zip(terms) {
        let term = exceptions.iter().fold(term.clone(), |term, facets| term.and_not(facets));
        let then = Table::from_iter([
            ("access".to_owned(), Value::from("deny")),
            ("message".to_owned(), "A parent proxy must fetch this, but foxy has none.".into()),
        ]);
        let rule = term.rule(&format!("{} ({number})", access::rule_name(original)), then);
        if !draft.list("rule", rule, original) {
            let text = "foxy cannot have this rule, so it fetches these responses itself";
            draft.leave(original, ImportReason::Opens(text.into()));
        }
    }
    let text = "foxy has no parent for these requests, so a rule refuses them";
    draft.leave(original, ImportReason::Missing(text.into()));
}
