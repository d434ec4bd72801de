//! Converts Squid's access directives, which are ordered lists of `allow` and `deny` lines, into
//! rules in the same order.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, TermFlaw, effect};
use super::acl::{SquidAcls, literal};
use super::lines::SquidLine;
use toml::{Table, Value};

/// An `allow` or `deny` line. `literals` are the names of its ACLs. The flag is true for a name
/// after `!`.
#[derive(Clone, Debug)]
pub struct AccessLine {
    allows: bool,
    literals: Vec<(bool, String)>,
    original: Original,
}

/// The question that an access directive answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPurpose {
    /// Whether a request is served (`http_access`).
    Serve,
    /// Whether the cache may be used (`cache`).
    Cache,
}

impl AccessLine {
    /// Reads `DIRECTIVE allow|deny ACL…`. Returns `None` if the line has another form.
    pub fn read(line: &SquidLine) -> Option<Self> {
        let allows = match line.argument(0)?.to_ascii_lowercase().as_str() {
            "allow" => true,
            "deny" => false,
            _ => return None,
        };
        let literals = line.arguments()[1..].iter().map(|word| literal(word)).collect();
        Some(Self { allows, literals, original: line.original.clone() })
    }

    pub fn original(&self) -> &Original {
        &self.original
    }

    /// Returns whether an ACL of the line asks clients for credentials.
    pub fn asks(&self, acls: &SquidAcls) -> bool {
        self.literals.iter().any(|(_, name)| acls.asks(name))
    }

    /// Returns whether the line denies a request, or does not allow it, because of the name that a
    /// look-up gives for an address.
    pub fn denies_names(&self, acls: &SquidAcls) -> bool {
        self.literals.iter().any(|(negated, name)| acls.looks_up(name, *negated != self.allows))
    }

    pub const fn allows(&self) -> bool {
        self.allows
    }

    pub fn literals(&self) -> &[(bool, String)] {
        &self.literals
    }

    /// If the line is `deny CONNECT !PORTS`, returns the ports of the ACL `PORTS`. Squid permits
    /// tunnels only to these ports.
    pub fn tunnel_ports(&self, acls: &SquidAcls) -> Option<Vec<String>> {
        let [(false, connect), (true, ports)] = self.literals.as_slice() else { return None };
        (!self.allows && connect == "CONNECT").then(|| acls.ports(ports))?
    }
}

impl AccessPurpose {
    fn effect(self, allows: bool) -> Table {
        match self {
            Self::Serve => effect("access", if allows { "allow" } else { "deny" }),
            Self::Cache => effect("bypass", !allows),
        }
    }

    fn lost(self, allows: bool, flaw: &TermFlaw) -> ImportReason {
        if matches!(flaw, TermFlaw::Credentials(_)) {
            return ImportReason::Opens(flaw.to_string());
        }
        match (self, allows) {
            (Self::Serve, true) => ImportReason::Missing(format!(
                "{flaw}; foxy refuses these requests unless a later rule allows them"
            )),
            (Self::Serve, false) => ImportReason::Opens(flaw.to_string()),
            (Self::Cache, true) => ImportReason::Missing(flaw.to_string()),
            (Self::Cache, false) => {
                ImportReason::Opens(format!("{flaw}; foxy would cache these responses"))
            }
        }
    }
}

/// Adds a rule for each line to the draft. If no line matches a request, Squid does the opposite of
/// the last line. A last rule makes foxy do the same.
pub fn add_rules(
    draft: &mut ImportDraft,
    acls: &SquidAcls,
    lines: &[AccessLine],
    purpose: AccessPurpose,
) {
    let mut is_decided = false;
    let asks = |line: &AccessLine| purpose == AccessPurpose::Serve && line.asks(acls);
    let asking = lines.iter().position(asks).filter(|_| acls.has_users).unwrap_or_default();
    for (at, line) in lines.iter().enumerate() {
        let AccessLine { allows, literals, original } = line;
        let expanded = match acls.expand(literals) {
            Ok(expanded) => expanded,
            Err(flaw) => {
                draft.leave(original, purpose.lost(*allows, &flaw));
                continue;
            }
        };
        for flaw in &expanded.lost {
            draft.leave(original, purpose.lost(*allows, flaw));
        }
        if expanded.terms.is_empty() && expanded.lost.is_empty() {
            let text = "the line never matches a request to foxy";
            draft.leave(original, ImportReason::NotNeeded(text.into()));
        }
        let purges = |term: &AccessTerm| {
            term.when.get("method").is_some_and(|methods| methods.iter().any(|m| m == "PURGE"))
        };
        if *allows && purpose == AccessPurpose::Serve && expanded.terms.iter().any(purges) {
            let text = "list these clients in `purge-from`, or give them the word of \
                        `admin-token-file`";
            draft.leave(original, ImportReason::Step(text.into()));
        }
        let mut effect = purpose.effect(*allows);
        if *allows && at < asking {
            effect.insert("login".into(), Value::from(false));
        }
        let count = expanded.terms.len();
        for (number, term) in (1..).zip(&expanded.terms) {
            let part = if count > 1 { format!(" ({number} of {count})") } else { String::new() };
            let name = format!("{}{part}", rule_name(original));
            let is_taken = draft.list("rule", term.rule(&name, effect.clone()), original);
            is_decided |= is_taken && term.is_always();
        }
    }
    if !is_decided
        && let Some(last) = lines.last()
        && (purpose == AccessPurpose::Serve || last.allows)
    {
        let name = format!("{}, if no line matches", rule_name(&last.original));
        let rule = AccessTerm::default().rule(&name, purpose.effect(!last.allows));
        draft.list("rule", rule, &last.original);
    }
}

/// If Squid serves only clients of certain networks, returns these networks and the line that says
/// so. Such a line is `deny !NETWORKS`, and stands before the first `allow` line.
pub fn only_clients(acls: &SquidAcls, lines: &[AccessLine]) -> Option<(Vec<String>, Original)> {
    let denials = lines.iter().take_while(|line| !line.allows);
    denials.into_iter().find_map(|line| match line.literals.as_slice() {
        [(true, name)] => Some((acls.clients(name)?, line.original.clone())),
        _ => None,
    })
}

/// Returns the name of the rule that replaces a directive.
pub fn rule_name(original: &Original) -> String {
    const LONGEST: usize = 100;
    let text = format!("{}: {}", original.place, original.text);
    text.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}
