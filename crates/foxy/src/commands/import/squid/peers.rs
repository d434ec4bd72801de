//! Converts Squid's peers: parent proxies to `parent`, origin servers to origins. `peer_choice`
//! converts the lists that choose among them.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, Facets, TermFlaw};
use super::access::{self, AccessLine};
use super::acl::SquidAcls;
use super::lines::SquidLine;
use super::peer_choice::{self, ChoiceList, PeerChoice};
use super::{SquidImport, access_line, unreadable};
use crate::serve::admin::requests::encode;
use toml::{Table, Value};

type Converted = Result<(), ImportReason>;

/// The condition of a rule, and its effects.
type PeerRule = (AccessTerm, Table);

/// The parent proxies and origin servers, and the lines about when Squid uses them.
#[derive(Debug, Default)]
pub struct SquidPeers {
    parents: Vec<SquidPeer>,
    origins: Vec<SquidPeer>,
    /// `cache_peer_access` lines, with the name of their peer.
    access: Vec<(String, AccessLine)>,
    has_carp: bool,
    /// Lines of peers that have a password.
    secrets: Vec<Original>,
    /// Lines about requests that Squid never (or always) sends to the origin itself.
    never_direct: Vec<AccessLine>,
    always_direct: Vec<AccessLine>,
}

#[derive(Debug)]
struct SquidPeer {
    name: String,
    /// URL of the peer, with credentials.
    url: String,
    original: Original,
}

impl SquidPeer {
    /// Returns the URL as a rule names it, without credentials.
    fn public_url(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("http", &self.url));
        format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default())
    }
}

/// Options of `cache_peer` without an effect on the conversion.
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
    let given = options.iter().find_map(|option| option.strip_prefix("name="));
    let name = given.unwrap_or(&host).to_owned();
    let peer = |url| SquidPeer { name, url, original: line.original.clone() };
    if options.iter().any(|option| option == "originserver") {
        import.peers.origins.push(peer(format!("http://{host}:{port}")));
        return Ok(());
    }
    let (mut scheme, mut credentials) = ("http", String::new());
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
            Some(("tls-cafile" | "sslcafile", file)) => {
                import.draft.push("origin-ca", file, &line.original);
            }
            _ if PLAIN.contains(&option.as_str()) => {}
            None if option == "tls" || option == "ssl" => scheme = "https",
            None if option == "carp" || option == "sourcehash" => import.peers.has_carp = true,
            _ => others.push(option),
        }
    }
    if !credentials.is_empty() {
        import.peers.secrets.push(line.original.clone());
    }
    import.peers.parents.push(peer(format!("{scheme}://{credentials}{host}:{port}")));
    if others.is_empty() {
        return Ok(());
    }
    Err(ImportReason::Differs(format!("foxy has no option {}", others.join(", "))))
}

/// Converts `cache_peer_access NAME allow|deny ACL…`.
pub fn cache_peer_access(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let name = line.argument(0).ok_or_else(|| unreadable(&line.original))?.to_owned();
    let mut words = line.words.clone();
    words.remove(1);
    let access = access_line(&SquidLine { words, original: line.original.clone() })?;
    import.peers.access.push((name, access));
    Ok(())
}

pub fn never_direct(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    import.peers.never_direct.push(access_line(line)?);
    Ok(())
}

pub fn always_direct(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    import.peers.always_direct.push(access_line(line)?);
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
        if self.origins.is_empty() {
            return self.add_parents(draft, acls);
        }
        let parents = self.parents.iter().map(|peer| &peer.original);
        let direct = self.always_direct.iter().filter(|line| line.allows());
        for original in parents.chain(direct.map(AccessLine::original)) {
            let text = "foxy sends all requests to the peers with `originserver`";
            draft.leave(original, ImportReason::Missing(text.into()));
        }
        self.add_origins(draft, acls);
    }

    /// Returns for each peer the access list that decides whether Squid may use the peer.
    fn lists<'s>(&'s self, peers: &'s [SquidPeer]) -> impl Iterator<Item = ChoiceList<'s>> {
        peers.iter().map(|peer| {
            let lines = self.access.iter().filter(|(name, _)| *name == peer.name);
            (lines.map(|(_, line)| line).collect(), true)
        })
    }

    fn add_parents(&self, draft: &mut ImportDraft, acls: &SquidAcls) {
        let direct = [&self.always_direct, &self.never_direct];
        let direct = direct.map(|lines| (lines.iter().collect(), false));
        let lists: Vec<ChoiceList<'_>> =
            direct.into_iter().chain(self.lists(&self.parents)).collect();
        let rules =
            peer_choice::choices(acls, &lists).and_then(|choices| self.rules_of_parents(choices));
        let mut rules = match rules {
            Ok(rules) => rules,
            Err(flaw) => {
                let lines = self.access.iter().map(|(_, line)| line.original());
                for original in lines.chain(self.parents.iter().map(|peer| &peer.original)) {
                    let text = format!("{flaw}; foxy does not use the peers");
                    draft.leave(original, ImportReason::Missing(text));
                }
                return self.refuse_direct(draft, acls);
            }
        };
        for peer in &self.parents {
            draft.push("parent", peer.url.as_str(), &peer.original);
        }
        for original in &self.secrets {
            let text = "the new file has a password; move it to `parent-credentials-file`";
            draft.leave(original, ImportReason::Step(text.into()));
        }
        if let Some(SquidPeer { original, .. }) = self.parents.first() {
            if self.has_carp {
                draft.set("parent-choice", "rendezvous", original);
            }
            let is_fallback = |then: &Table| then.get("upstream").is_some_and(Value::is_array);
            if rules.iter().any(|(_, then)| is_fallback(then)) {
                let text = "foxy sends these requests to the parent first, also CONNECT and POST";
                draft.leave(original, ImportReason::Differs(text.into()));
            }
            self.set_usual_way(draft, &mut rules, original);
        } else {
            rules.retain(|(_, then)| then.contains_key("access"));
        }
        self.add_rules(draft, rules);
    }

    /// Returns a rule for each choice: the condition, and the effect that selects parents or the
    /// direct way to the origin.
    fn rules_of_parents(&self, choices: Vec<PeerChoice>) -> Result<Vec<PeerRule>, TermFlaw> {
        let mut rules: Vec<PeerRule> = Vec::new();
        for PeerChoice { term, answers } in choices {
            let (is_always_direct, is_never_direct) = (answers[0], answers[1]);
            let permitted = self.parents.iter().zip(&answers[2..]).filter(|(_, permits)| **permits);
            let mut ways: Vec<Value> =
                permitted.map(|(peer, _)| peer.public_url().into()).collect();
            if ways.len() == self.parents.len() && !ways.is_empty() {
                ways = vec!["parents".into()];
            }
            if is_always_direct {
                ways.clear();
            }
            if is_always_direct || !is_never_direct {
                ways.push("direct".into());
            }
            rules.push(match (ways.pop(), ways.is_empty()) {
                (None, _) => {
                    let text = "A parent proxy must fetch this, but foxy has none.";
                    (without_earlier(term, &rules)?, refusal(text))
                }
                (Some(way), true) => (term, upstream(way)),
                (Some(last), false) => {
                    ways.push(last);
                    (term, upstream(Value::Array(ways)))
                }
            });
        }
        Ok(rules)
    }

    /// Removes the last rules if their effect can be foxy's behaviour for requests that no rule
    /// matches. For this, sets `parent-fallback` if necessary.
    fn set_usual_way(
        &self,
        draft: &mut ImportDraft,
        rules: &mut Vec<PeerRule>,
        original: &Original,
    ) {
        let both = upstream(Value::Array(vec!["parents".into(), "direct".into()]));
        let parents = upstream("parents".into());
        let last = rules.last().map(|(_, then)| then.clone()).unwrap_or_default();
        if last == both {
            draft.set("parent-fallback", "direct", original);
        }
        if last == both || last == parents {
            while rules.pop_if(|(_, then)| *then == last).is_some() {}
        }
    }

    fn add_rules(&self, draft: &mut ImportDraft, rules: Vec<PeerRule>) {
        for (number, (term, then)) in (1..).zip(rules) {
            self.add_rule(draft, (number, &term, then));
        }
    }

    fn add_rule(&self, draft: &mut ImportDraft, rule: (usize, &AccessTerm, Table)) {
        let (number, term, mut then) = rule;
        let lists = self.always_direct.iter().chain(&self.never_direct);
        let mut lines = lists.chain(self.access.iter().map(|(_, line)| line));
        let Some(original) = lines.next().map(AccessLine::original) else { return };
        let is_refusal = then.contains_key("access");
        if !is_refusal && peer_choice::depends_on_client(term) {
            then.insert("bypass".into(), true.into());
            if peer_choice::is_cacheable(term) {
                let text = "foxy caches nothing of requests whose client, method, field or time \
                            chooses the way";
                draft.leave(original, ImportReason::Differs(text.into()));
            }
        }
        let name = format!("peers {number}, from {}", original.place);
        draft.list("rule", term.rule(&name, then), original);
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

    /// Converts the peers with the option `originserver`. Peers without `cache_peer_access` are the
    /// servers of one origin. Otherwise rules choose an origin for each combination of peers.
    fn add_origins(&self, draft: &mut ImportDraft, acls: &SquidAcls) {
        let Some(SquidPeer { original: first, .. }) = self.origins.first() else { return };
        if self.access.is_empty() {
            draft.list("origin", origin(None, &self.origins), first);
            return;
        }
        let lists: Vec<ChoiceList<'_>> = self.lists(&self.origins).collect();
        let mut origins: Vec<(String, Table)> = Vec::new();
        let rules = peer_choice::choices(acls, &lists)
            .and_then(|choices| self.rules_of_origins(choices, &mut origins));
        match rules {
            Ok(rules) => {
                for (_, origin) in origins {
                    draft.list("origin", origin, first);
                }
                self.add_rules(draft, rules);
            }
            Err(flaw) => {
                for (_, line) in &self.access {
                    let text = format!("{flaw}; foxy does not use the peers");
                    draft.leave(line.original(), ImportReason::Missing(text));
                }
            }
        }
    }

    fn rules_of_origins(
        &self,
        choices: Vec<PeerChoice>,
        origins: &mut Vec<(String, Table)>,
    ) -> Result<Vec<PeerRule>, TermFlaw> {
        let mut rules: Vec<PeerRule> = Vec::new();
        for PeerChoice { term, answers } in choices {
            let permitted = self.origins.iter().zip(answers).filter(|(_, permits)| *permits);
            let peers: Vec<&SquidPeer> = permitted.map(|(peer, _)| peer).collect();
            if peers.is_empty() {
                let text = "No origin serves this URL.";
                rules.push((without_earlier(term, &rules)?, refusal(text)));
                continue;
            }
            let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
            let name = names.join("-");
            rules.push((term, upstream(format!("origin:{name}").into())));
            if !origins.iter().any(|(known, _)| *known == name) {
                let origin = origin(Some(&name), peers);
                origins.push((name, origin));
            }
        }
        Ok(rules)
    }
}

fn upstream(way: Value) -> Table {
    Table::from_iter([("upstream".to_owned(), way)])
}

/// Excludes the requests of earlier rules from a term. A rule that refuses needs this, because the
/// first rule on `access` decides, and the earlier rules are not about `access`.
fn without_earlier(term: AccessTerm, earlier: &[PeerRule]) -> Result<AccessTerm, TermFlaw> {
    earlier.iter().try_fold(term, |term, (earlier, _)| {
        let why = "foxy cannot exclude the requests of earlier lines".to_owned();
        let flaw = || TermFlaw::NoEquivalent { name: "cache_peer_access".into(), why };
        if earlier.unless.is_empty() { Ok(term.and_not(&earlier.when)) } else { Err(flaw()) }
    })
}

fn origin<'p>(name: Option<&str>, peers: impl IntoIterator<Item = &'p SquidPeer>) -> Table {
    let servers: Vec<Value> = peers.into_iter().map(|peer| peer.url.as_str().into()).collect();
    let name = name.map(|name| ("name".to_owned(), Value::from(name)));
    name.into_iter().chain([("servers".to_owned(), Value::Array(servers))]).collect()
}

fn refusal(message: &str) -> Table {
    let text = |text: &str| Value::from(text);
    Table::from_iter([("access".to_owned(), text("deny")), ("message".to_owned(), text(message))])
}

fn refuse(
    draft: &mut ImportDraft,
    terms: &[AccessTerm],
    exceptions: &[Facets],
    original: &Original,
) {
    for (number, term) in (1..).zip(terms) {
        let term = exceptions.iter().fold(term.clone(), |term, facets| term.and_not(facets));
        let then = refusal("A parent proxy must fetch this, but foxy has none.");
        let rule = term.rule(&format!("{} ({number})", access::rule_name(original)), then);
        draft.list("rule", rule, original);
    }
    let text = "foxy has no parent for these requests, so a rule refuses them";
    draft.leave(original, ImportReason::Missing(text.into()));
}
