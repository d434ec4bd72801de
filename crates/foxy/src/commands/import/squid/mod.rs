//! Converts a Squid configuration. The table in `directives` says which directives are converted.

mod access;
mod acl;
mod acl_values;
mod caching;
mod directives;
mod headers;
mod lines;
mod network;
mod peers;
mod refresh;
mod regex;
mod values;

use super::draft::{ImportDraft, Original};
use super::original_files::OriginalFiles;
use super::report::ImportReason;
use access::{AccessLine, AccessPurpose};
use acl::SquidAcls;
use acl_values::AclWord;
use directives::{Handling, TABLE};
use lines::{SQUID_FOLDER, SquidLine};
use peers::SquidPeers;

/// The new configuration so far. Access lines are collected and converted after the last line,
/// because ACLs must be known and the order of rules counts.
struct SquidImport<'f> {
    draft: ImportDraft,
    files: &'f OriginalFiles,
    acls: SquidAcls,
    http_access: Vec<AccessLine>,
    cache_access: Vec<AccessLine>,
    peers: SquidPeers,
    removed_fields: headers::RemovedFields,
}

/// Converts a configuration. `utc` is true if the original's clock runs in UTC.
pub fn import(content: &str, files: &OriginalFiles, utc: bool) -> ImportDraft {
    let mut import = SquidImport {
        draft: ImportDraft::default(),
        files,
        acls: SquidAcls::built_in(utc),
        http_access: Vec::new(),
        cache_access: Vec::new(),
        peers: SquidPeers::default(),
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
            Some(Handling::Denials(why)) if line.argument(0) == Some("allow") => {
                Err(ImportReason::NotNeeded((*why).into()))
            }
            Some(Handling::Denials(why)) => Err(ImportReason::Opens((*why).into())),
            None => Err(ImportReason::Missing("foxy has no such setting".into())),
        }
    }

    fn finish(mut self) -> ImportDraft {
        self.peers.finish(&mut self.draft);
        caching::finish(&mut self.draft);
        self.serve_rules();
        access::add_rules(&mut self.draft, &self.acls, &self.cache_access, AccessPurpose::Cache);
        self.removed_fields.finish(&mut self.draft);
        self.draft
    }

    /// Converts the `http_access` lines to rules, and to the settings `connect-ports` and
    /// `allow-client`.
    fn serve_rules(&mut self) {
        let Self { draft, acls, http_access, .. } = self;
        let Some(first) = http_access.first() else { return };
        let tunnels = http_access.iter().find_map(|line| line.tunnel_ports(acls));
        network::set_connect_ports(draft, tunnels, first.original());
        if let Some((clients, original)) = access::only_clients(acls, http_access) {
            for network in clients {
                draft.push("allow-client", network, &original);
            }
        }
        let text = "foxy refuses private and loopback destinations; if clients use hosts of your \
                    own network, list its networks in `allow-destination`";
        draft.leave(&Original::file("destinations"), ImportReason::Step(text.into()));
        access::add_rules(draft, acls, http_access, AccessPurpose::Serve);
    }

    fn acl(&mut self, line: &SquidLine) -> Result<(), ImportReason> {
        let [name, kind, values @ ..] = line.arguments() else {
            return Err(ImportReason::Missing("the line has no name or no type".into()));
        };
        let mut ignore_case = false;
        let mut words = Vec::new();
        for value in values {
            match value.as_str() {
                "-i" => ignore_case = true,
                "+i" => ignore_case = false,
                "-n" | "--" => {}
                text if text.starts_with("-m") => {}
                text if text.starts_with('"') => {
                    words.extend(self.values_of_file(text.trim_matches('"'), ignore_case)?);
                }
                text => words.push(AclWord { text: text.to_owned(), ignore_case }),
            }
        }
        self.acls.define(name, kind, words);
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

    fn cache(&mut self, line: &SquidLine) -> Result<(), ImportReason> {
        self.cache_access.push(access_line(line)?);
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
