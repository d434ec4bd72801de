//! Converts a Squid configuration. The table in `directives` says which directives are converted.

mod access;
mod acl;
mod acl_values;
mod bandwidth;
mod cache_access;
mod caching;
mod directives;
mod headers;
mod htpasswd;
mod lines;
mod listeners;
mod network;
mod peer_choice;
mod peers;
mod refresh;
mod regex;
#[cfg(test)]
mod tests;
mod values;

use super::draft::{ImportDraft, Original};
use super::original_files::OriginalFiles;
use super::report::ImportReason;
use super::terms::{AccessTerm, effect};
use access::{AccessLine, AccessPurpose};
use acl::SquidAcls;
use acl_values::AclWord;
use bandwidth::DelayPools;
use directives::{Handling, TABLE};
use lines::{SQUID_FOLDER, SquidLine};
use listeners::SquidListeners;
use peers::SquidPeers;
use std::collections::HashMap;

/// The new configuration so far. Access lines are collected and converted after the last line,
/// because ACLs must be known and the order of rules counts.
struct SquidImport<'f> {
    draft: ImportDraft,
    files: &'f OriginalFiles,
    acls: SquidAcls,
    http_access: Vec<AccessLine>,
    cache_lists: cache_access::CacheLists,
    cache_sizes: caching::CacheSizes,
    /// The last line of each list of `allow` and `deny` lines whose denials foxy cannot express
    /// ([`Handling::Denials`]).
    last_denials: HashMap<String, SquidLine>,
    listeners: SquidListeners,
    pools: DelayPools,
    peers: SquidPeers,
    /// The file with the users of the original and the hashes of their passwords.
    passwords: Option<String>,
    removed_fields: headers::RemovedFields,
}

/// Converts a configuration. `utc` is true if the original's clock runs in UTC.
pub fn import(content: &str, files: &OriginalFiles, utc: bool) -> ImportDraft {
    let mut import = SquidImport {
        draft: ImportDraft::default(),
        files,
        acls: SquidAcls::built_in(utc),
        http_access: Vec::new(),
        cache_lists: cache_access::CacheLists::default(),
        cache_sizes: caching::CacheSizes::default(),
        last_denials: HashMap::new(),
        listeners: SquidListeners::default(),
        pools: DelayPools::default(),
        peers: SquidPeers::default(),
        passwords: None,
        removed_fields: headers::RemovedFields::default(),
    };
    for line in lines::lines(content, files) {
        if let Err(reason) = import.directive(&line) {
            import.draft.leave(&line.original, reason);
        }
    }
    import.finish()
}

impl SquidImport<'_> {
    fn directive(&mut self, line: &SquidLine) -> Result<(), ImportReason> {
        let row = TABLE.iter().find(|(name, _)| *name == line.name());
        match row.map(|(_, handling)| handling) {
            Some(Handling::Convert(convert)) => convert(self, line),
            Some(Handling::NotNeeded(why)) => Err(ImportReason::NotNeeded((*why).into())),
            Some(Handling::Missing(why)) => Err(ImportReason::Missing((*why).into())),
            Some(Handling::Opens(why)) => Err(ImportReason::Opens((*why).into())),
            Some(Handling::Denials(why)) => {
                self.last_denials.insert(line.name().to_owned(), line.clone());
                if is_for_all(line, "allow", 0) {
                    return Err(ImportReason::NotNeeded((*why).into()));
                }
                if line.argument(0) == Some("allow") {
                    return Ok(());
                }
                Err(ImportReason::Opens((*why).into()))
            }
            None => Err(ImportReason::Missing("foxy has no such setting".into())),
        }
    }

    fn finish(mut self) -> ImportDraft {
        self.set_users();
        self.listeners.finish(&mut self.draft, &self.acls);
        self.peers.finish(&mut self.draft, &self.acls);
        self.cache_sizes.finish(&mut self.draft);
        self.last_denials();
        self.serve_rules();
        self.pools.finish(&mut self.draft, &self.acls);
        self.cache_lists.finish(&mut self.draft, &self.acls);
        self.removed_fields.finish(&mut self.draft);
        self.draft
    }

    /// Sets the file of foxy's users, if `http_access` lines ask clients for credentials. foxy then
    /// asks every client to which no rule with `login = false` applies.
    fn set_users(&mut self) {
        const FILE: &str = "/etc/foxy/users";
        let asking = self.http_access.iter().position(|line| line.asks(&self.acls));
        let Some(at) = asking.filter(|_| !self.peers.has_origins()) else { return };
        self.acls.has_users = true;
        let line = &self.http_access[at];
        self.draft.set("users-file", FILE, line.original());
        let found = self.passwords.as_ref().map(|path| self.files.read(path, SQUID_FOLDER));
        let users = found.and_then(Result::ok).map(|files| htpasswd::users(&files));
        for text in htpasswd::steps(FILE, &users.unwrap_or_default()) {
            self.draft.leave(line.original(), ImportReason::Step(text));
        }
        let after = self.http_access[at..].iter().filter(|line| line.allows());
        for line in after.filter(|line| !line.asks(&self.acls)) {
            let text = "foxy asks these clients for credentials, as an earlier line asks others; to \
                        serve them without credentials, add `login = false` to the rule";
            self.draft.leave(line.original(), ImportReason::Differs(text.into()));
        }
    }

    /// Reports lists without an equivalent whose last line allows requests. Squid denies the
    /// requests that no line matches.
    fn last_denials(&mut self) {
        let allows = |line: &&SquidLine| line.argument(0) == Some("allow");
        for line in self.last_denials.values().filter(allows) {
            if !is_for_all(line, "allow", 0) {
                let text = "this last line denies all other requests; foxy does not";
                self.draft.leave(&line.original, ImportReason::Opens(text.into()));
            }
        }
    }

    /// Converts the `http_access` lines to rules, and to the settings `connect-ports` and
    /// `allow-client`. Without such a line, Squid denies all requests.
    fn serve_rules(&mut self) {
        let Self { draft, acls, http_access, .. } = self;
        let Some(first) = http_access.first() else {
            let original = Original::file("no http_access");
            let then = effect("access", "deny");
            draft.list("rule", AccessTerm::default().rule("no http_access", then), &original);
            let text = "the original denies every request, and so does the first rule";
            return draft.leave(&original, ImportReason::Step(text.into()));
        };
        let tunnels = http_access.iter().find_map(|line| line.tunnel_ports(acls));
        network::set_connect_ports(draft, tunnels, first.original());
        if let Some((clients, original)) = access::only_clients(acls, http_access) {
            for network in clients {
                draft.push("allow-client", network, &original);
            }
        }
        let text = "foxy refuses private and loopback destinations; if clients use hosts of your \
                    own network, list its networks in `allow-destination`, but no network that a \
                    `dst` line denies";
        draft.leave(&Original::file("destinations"), ImportReason::Step(text.into()));
        if http_access.iter().any(|line| line.denies_names(acls)) {
            let text = "Squid looks up the names of addresses in URLs, and foxy does not, so clients \
                        reach denied names by their addresses; a rule that denies `host = \
                        [\"0.0.0.0/0\", \"::/0\"]` refuses all addresses";
            draft.leave(&Original::file("addresses"), ImportReason::Opens(text.into()));
        }
        access::add_rules(draft, acls, http_access, AccessPurpose::Serve);
    }

    fn acl(&mut self, line: &SquidLine) -> Result<(), ImportReason> {
        let [name, kind, values @ ..] = line.arguments() else {
            return Err(ImportReason::Missing("the line has no name or no type".into()));
        };
        let (mut ignore_case, mut looks_up) = (false, true);
        let mut words = Vec::new();
        for value in values {
            match value.as_str() {
                "-i" => ignore_case = true,
                "+i" => ignore_case = false,
                "-n" => looks_up = false,
                "--" => {}
                text if text.starts_with("-m") => {}
                text if text.starts_with('"') => {
                    words.extend(self.values_of_file(text.trim_matches('"'), ignore_case)?);
                }
                text => words.push(AclWord { text: text.to_owned(), ignore_case }),
            }
        }
        self.acls.define(name, kind, words, looks_up);
        if kind == "time" && self.acls.uses_utc() {
            let text = "because of --utc, the hours count in UTC; in another time zone they are \
                        wrong";
            return Err(ImportReason::Differs(text.into()));
        }
        Ok(())
    }

    /// Returns the values in a file that an `acl` line names.
    fn values_of_file(&self, path: &str, ignore_case: bool) -> Result<Vec<AclWord>, ImportReason> {
        let read = self.files.read(path, SQUID_FOLDER);
        let found = read.map_err(|why| {
            ImportReason::Missing(format!("{why}; rules with this list are not converted"))
        })?;
        let lines = found.iter().flat_map(|(_, content)| content.lines());
        let words = lines.map(|line| line.split('#').next().unwrap_or_default());
        let words = words.flat_map(str::split_whitespace);
        Ok(words.map(|text| AclWord { text: text.to_owned(), ignore_case }).collect())
    }

    fn http_access(&mut self, line: &SquidLine) -> Result<(), ImportReason> {
        self.http_access.push(access_line(line)?);
        Ok(())
    }

    fn include(&mut self, line: &SquidLine) -> Result<(), ImportReason> {
        let path = line.argument(0).unwrap_or_default();
        if path.contains('*') {
            return Err(ImportReason::NotNeeded("no such file is here".into()));
        }
        Err(ImportReason::Opens(format!("{path} is not here, and may deny requests")))
    }
}

fn access_line(line: &SquidLine) -> Result<AccessLine, ImportReason> {
    let unreadable = || ImportReason::Opens("the line is neither allow nor deny".into());
    AccessLine::read(line).ok_or_else(unreadable)
}

/// Returns whether the arguments from position `from` on are `ACTION` or `ACTION all`.
fn is_for_all(line: &SquidLine, action: &str, from: usize) -> bool {
    let rest: Vec<&str> = line.arguments()[from..].iter().map(String::as_str).collect();
    rest == [action, "all"] || rest == [action]
}

fn unreadable(original: &Original) -> ImportReason {
    ImportReason::Missing(format!("the value of `{}` is not readable", original.text))
}
