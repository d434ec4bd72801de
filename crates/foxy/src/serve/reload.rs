//! Reloads the configuration of a running foxy. A reload first reads and checks the whole
//! configuration. Then foxy applies all changes. If a change needs a restart, foxy applies none.

use crate::failure::Failure;
use crate::serve::dashboard::configuration;
use crate::serve::fleet::FleetView;
use crate::serve::origins;
use crate::serve::proxy_settings::new_settings;
use crate::settings::complaint::{Complaint, Complaints};
use crate::settings::tables::TableTexts;
use crate::settings::{Loaded, Settings};
use crate::users_file;
use foxy_proxy::core::users::{UserBook, UserChange};
use foxy_proxy::server::handle::ProxyHandle;
use foxy_proxy::upstream::GroupSettings;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::PathBuf;

/// A setting that a reload can change: its key, and a function that copies its value.
type LiveSetting = (&'static str, fn(&mut Settings, &Settings));

/// The settings that a reload can change. A reload can also change rules, origins and users.
pub const LIVE: [LiveSetting; 5] = [
    ("allow-client", |to, from| to.access.allow_client.clone_from(&from.access.allow_client)),
    ("fleet.members", |to, from| to.fleet.members.clone_from(&from.fleet.members)),
    ("negative-lifetime", |to, from| to.disk.negative_lifetime = from.disk.negative_lifetime),
    ("purge-from", |to, from| to.access.purge_from.clone_from(&from.access.purge_from)),
    ("users-file", |to, from| to.access.users_file.clone_from(&from.access.users_file)),
];

fn is_live(key: &str) -> bool {
    LIVE.iter().any(|(live, _)| *live == key)
}

/// Function that reads the configuration again, from the file, environment and arguments with
/// which foxy started.
pub type ReadAgain = dyn Fn() -> Result<Loaded, Complaints>;

/// A difference between the old and the new configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// Name of the changed part: the key of a setting, `rule NAME`, `origin NAME` or `user NAME`.
    pub name: String,
    /// Old value in TOML. `None` if the old configuration had no value.
    pub old: Option<String>,
    /// New value in TOML. `None` if the new configuration has no value.
    pub new: Option<String>,
    pub needs_restart: bool,
}

impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        write!(f, "{}: {} → {}", self.name, shown(&self.old), shown(&self.new))
    }
}

/// The reason why a reload changed nothing.
#[derive(Debug)]
pub enum NotReloaded {
    /// The configuration has mistakes.
    Unusable(Complaints),
    /// A file that an origin names is unusable.
    Unopened(Failure),
    NeedsRestart(Vec<SettingChange>),
}

impl fmt::Display for NotReloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(complaints) => {
                write!(f, "the configuration has mistakes, and foxy changed nothing:\n{complaints}")
            }
            Self::Unopened(failure) => write!(f, "{failure}; foxy changed nothing"),
            Self::NeedsRestart(changes) => {
                f.write_str("these changes need a restart, and foxy changed nothing:")?;
                changes.iter().try_for_each(|change| write!(f, "\n  {change}"))
            }
        }
    }
}

/// The configuration, users and origins before a reload.
struct Before {
    loaded: Loaded,
    users: Option<UserBook>,
    origins: Vec<GroupSettings>,
}

/// The parts of a running foxy to which a reload gives new settings.
pub struct Reloadable {
    pub proxy: ProxyHandle,
    pub fleet: Option<FleetView>,
}

impl Reloadable {
    fn apply(&self, settings: &Settings, users: Option<UserBook>) {
        self.proxy.reload(new_settings(settings, users));
        if let Some(fleet) = &self.fleet {
            fleet.set_members(settings);
        }
    }
}

/// Reloads the configuration of one running foxy.
pub struct Reloader {
    read_again: Box<ReadAgain>,
    current: RefCell<Loaded>,
    /// The state before the last reload that changed something, for taking that reload back.
    previous: RefCell<Option<Before>>,
    /// Number of reloads that changed something.
    number: Cell<u64>,
    parts: RefCell<Reloadable>,
}

impl Reloader {
    /// Creates a reloader. `current` is the configuration in force. `read_again` reads the next
    /// configuration. `parts` receive the new settings.
    pub fn new(current: Loaded, read_again: Box<ReadAgain>, parts: Reloadable) -> Self {
        Self {
            read_again,
            current: RefCell::new(current),
            previous: RefCell::new(None),
            number: Cell::new(0),
            parts: RefCell::new(parts),
        }
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> Settings {
        self.current.borrow().settings.clone()
    }

    /// Returns all settings as JSON, with the places where they were written.
    pub fn configuration(&self) -> Value {
        configuration::as_json(&mut self.current.borrow_mut(), is_live)
    }

    /// Returns the path of the configuration file. Returns `None` if foxy read no file.
    pub fn file(&self) -> Option<PathBuf> {
        self.current.borrow().file.clone()
    }

    /// Returns the texts of all rules and origins, which must be equal on all nodes of a fleet.
    /// foxy shows this text to nobody: it contains secrets.
    pub fn rules_and_origins(&self) -> String {
        let current = self.current.borrow();
        let text = |texts: TableTexts<'_>| format!("{} {}\n", texts.name, texts.whole);
        current.rules().chain(current.origins()).map(text).collect()
    }

    /// Applies later reloads to another proxy of this process, which already has the current
    /// settings.
    pub fn switch(&self, parts: Reloadable) {
        *self.parts.borrow_mut() = parts;
    }

    /// Returns the number of reloads that changed something.
    pub fn number(&self) -> u64 {
        self.number.get()
    }

    /// Reverts the reload `number`: applies the configuration from before the reload. Returns
    /// false without a change if a later reload has changed something.
    pub fn take_back(&self, number: u64) -> bool {
        if self.number.get() != number {
            return false;
        }
        let Some(Before { loaded, users, origins }) = self.previous.take() else { return false };
        self.parts.borrow().proxy.replace_origins(origins);
        self.parts.borrow().apply(&loaded.settings, users);
        *self.current.borrow_mut() = loaded;
        self.number.set(number + 1);
        true
    }

    /// Reads the configuration again and applies it. Returns the changes.
    pub fn reload(&self) -> Result<Vec<SettingChange>, NotReloaded> {
        let mut new = (self.read_again)().map_err(NotReloaded::Unusable)?;
        let users = users_file::of(&new.settings).map_err(|failure| {
            let complaint = Complaint { message: failure.to_string(), source: None };
            NotReloaded::Unusable(Complaints(vec![complaint]))
        })?;
        let mut changes = changes(&mut self.current.borrow_mut(), &mut new);
        changes.extend(changes_of_users(
            self.parts.borrow().proxy.users().as_ref().as_ref(),
            users.as_ref(),
        ));
        if !differs_in_live_settings_alone(&self.current.borrow().settings, &new.settings)
            && !changes.iter().any(|change| change.needs_restart)
        {
            let hidden = Some("***".to_owned());
            let name = "a secret".to_owned();
            let (old, new) = (hidden.clone(), hidden);
            changes.push(SettingChange { name, old, new, needs_restart: true });
        }
        if changes.iter().any(|change| change.needs_restart) {
            let needing = changes.into_iter().filter(|change| change.needs_restart).collect();
            return Err(NotReloaded::NeedsRestart(needing));
        }
        let origins = origins::open(&new.settings).map_err(NotReloaded::Unopened)?;
        let earlier = self.parts.borrow().proxy.replace_origins(origins);
        if !changes.is_empty() {
            let old_users = self.parts.borrow().proxy.users().as_ref().clone();
            self.parts.borrow().apply(&new.settings, users);
            let loaded = self.current.replace(new);
            *self.previous.borrow_mut() =
                Some(Before { loaded, users: old_users, origins: earlier });
            self.number.set(self.number.get() + 1);
        }
        Ok(changes)
    }
}

/// Returns whether the settings that need a restart are equal. [`changes`] cannot see a changed
/// secret, because it compares texts in which all secrets look equal.
fn differs_in_live_settings_alone(old: &Settings, new: &Settings) -> bool {
    let mut expected = old.clone();
    expected.rules.clone_from(&new.rules);
    if old.origins.is_empty() == new.origins.is_empty() {
        expected.origins.clone_from(&new.origins);
    }
    LIVE.iter().for_each(|(_, copy)| copy(&mut expected, new));
    expected == *new
}

/// Describes the changes for the operator.
pub fn report(changes: &[SettingChange]) -> String {
    if changes.is_empty() {
        return "the configuration has not changed".into();
    }
    let plural = if changes.len() == 1 { "" } else { "s" };
    let mut text =
        format!("applied {} change{plural}; connections and stored responses stay", changes.len());
    for change in changes {
        text.push_str(&format!("\n  {change}"));
    }
    text
}

/// Returns the changes as JSON for the admin server.
pub fn as_json(changes: &[SettingChange]) -> Value {
    let change = |change: &SettingChange| {
        json!({
            "name": change.name,
            "old": change.old,
            "new": change.new,
        })
    };
    json!({
        "changes": changes.iter().map(change).collect::<Vec<_>>(),
        "report": report(changes),
    })
}

fn changes(old: &mut Loaded, new: &mut Loaded) -> Vec<SettingChange> {
    let rules = |loaded: &Loaded| named("rule", loaded.rules());
    let mut changes = differing_tables("rules", &rules(old), &rules(new), |_| true);
    let origins = |loaded: &Loaded| named("origin", loaded.origins());
    let (old_origins, new_origins) = (origins(old), origins(new));
    let stays = old_origins.is_empty() == new_origins.is_empty();
    changes.extend(differing_tables("origins", &old_origins, &new_origins, |_| stays));
    let valued = |loaded: &mut Loaded| -> Vec<ComparedText> {
        let of = |(key, value): (&str, Option<String>)| {
            let (name, whole) = (key.to_owned(), value?);
            Some(ComparedText { name, shown: whole.clone(), whole })
        };
        loaded.values().into_iter().filter_map(of).collect()
    };
    let (old_values, new_values) = (valued(old), valued(new));
    changes.extend(differing(&old_values, &new_values, is_live));
    changes
}

/// Returns the users that differ between two versions of the users file. Never shows a hash.
fn changes_of_users(old: Option<&UserBook>, new: Option<&UserBook>) -> Vec<SettingChange> {
    let (Some(old), Some(new)) = (old, new) else { return Vec::new() };
    let change = |(name, change): (&str, UserChange)| {
        let (old, new) = match change {
            UserChange::Added => (None, Some("known")),
            UserChange::Removed => (Some("known"), None),
            UserChange::NewSecret => (Some("old secret"), Some("new secret")),
        };
        let (old, new) = (old.map(str::to_owned), new.map(str::to_owned));
        SettingChange { name: format!("user {name}"), old, new, needs_restart: false }
    };
    old.changes(new).into_iter().map(change).collect()
}

/// A part of the configuration whose text is compared.
#[derive(Debug, PartialEq)]
struct ComparedText {
    name: String,
    /// The text without secrets, for people.
    shown: String,
    /// The text with its secrets. foxy compares it with the text of the same part of the old or new
    /// configuration.
    whole: String,
}

fn named<'a>(kind: &str, tables: impl Iterator<Item = TableTexts<'a>>) -> Vec<ComparedText> {
    let compared = |TableTexts { name, shown, whole }: TableTexts<'_>| ComparedText {
        name: format!("{kind} {name}"),
        shown,
        whole,
    };
    tables.map(compared).collect()
}

/// Returns the tables whose texts differ between the two lists, or the new order if only the order
/// differs.
fn differing_tables(
    kind: &str,
    old: &[ComparedText],
    new: &[ComparedText],
    is_live: impl Fn(&str) -> bool,
) -> Vec<SettingChange> {
    let mut changes = differing(old, new, is_live);
    if old != new && changes.is_empty() {
        let names = |tables: &[ComparedText]| {
            Some(tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", "))
        };
        let (old, new) = (names(old), names(new));
        let name = format!("order of {kind}");
        changes.push(SettingChange { name, old, new, needs_restart: false });
    }
    changes
}

/// Returns the entries whose values differ between the two lists.
fn differing(
    old: &[ComparedText],
    new: &[ComparedText],
    is_live: impl Fn(&str) -> bool,
) -> Vec<SettingChange> {
    fn of<'a>(list: &'a [ComparedText], name: &str) -> Option<&'a ComparedText> {
        list.iter().find(|listed| listed.name == name)
    }
    let gone = old.iter().filter(|entry| of(new, &entry.name).is_none());
    let change = |ComparedText { name, .. }: &ComparedText| {
        let (old, new) = (of(old, name), of(new, name));
        let differs = old.map(|entry| &entry.whole) != new.map(|entry| &entry.whole);
        let shown = |entry: Option<&ComparedText>| entry.map(|entry| entry.shown.clone());
        differs.then(|| SettingChange {
            name: name.clone(),
            old: shown(old),
            new: shown(new),
            needs_restart: !is_live(name),
        })
    };
    new.iter().chain(gone).filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{load, rows};
    use foxy_cli::machine::Machine;

    fn loaded(content: &str) -> Loaded {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("foxy.toml");
        std::fs::write(&path, content).expect("written");
        load(Some(&path), None, &Machine::default()).unwrap_or_else(|all| panic!("{all}"))
    }

    fn shown(old: &str, new: &str) -> Vec<String> {
        let changes = changes(&mut loaded(old), &mut loaded(new));
        let mark = |change: &SettingChange| if change.needs_restart { "restart: " } else { "" };
        changes.iter().map(|change| format!("{}{change}", mark(change))).collect()
    }

    #[test]
    fn each_changed_setting_is_listed_with_both_values() {
        assert_eq!(shown("workers = 2", "workers = 2"), [""; 0]);
        assert_eq!(
            shown("allow-client = \"10.0.0.0/8\"", "workers = 3"),
            ["restart: workers: 0 → 3", "allow-client: [\"10.0.0.0/8\"] → []"]
        );
    }

    #[test]
    fn each_setting_that_a_reload_changes_exists_and_is_in_the_manual() {
        let manual = include_str!("../../../../docs/operation.md");
        let (_, section) = manual.split_once("\n### Changed settings\n").expect("a section");
        let section = section.split("\n###").next().expect("a text");
        for (key, _) in LIVE {
            assert!(rows::all().any(|setting| setting.key == key), "{key} is not a setting");
            assert!(section.contains(&format!("`{key}`")), "docs/operation.md lacks {key}");
        }
    }

    #[test]
    fn origins_change_at_once_but_a_forward_proxy_stays_a_forward_proxy() {
        let origin =
            |port: u16| format!("[[origin]]\nname = \"a\"\nservers = \"http://10.0.0.1:{port}\"\n");
        let text = |port: u16| format!("servers = \"http://10.0.0.1:{port}\"");
        assert_eq!(shown(&origin(1), &origin(2)), [format!("origin a: {} → {}", text(1), text(2))]);
        assert_eq!(shown("", &origin(2)), [format!("restart: origin a: none → {}", text(2))]);
    }

    #[test]
    fn rules_are_compared_by_name_and_order() {
        let rule = |name: &str, store: bool| {
            format!("[[rule]]\nname = \"{name}\"\nthen = {{ store = {store} }}\n")
        };
        let (a, b) = (rule("a", true), rule("b", false));
        assert_eq!(
            shown(&a, &[rule("a", false), b.clone()].concat()),
            [
                "rule a: then = { store = true } → then = { store = false }",
                "rule b: none → then = { store = false }"
            ]
        );
        let secret = |word| {
            let field = format!("request-header-set = {{ Authorization = \"{word}\" }}");
            format!("[[rule]]\nname = \"a\"\nthen = {{ {field} }}\n")
        };
        let hidden = "then = { request-header-set = { Authorization = \"***\" } }";
        assert_eq!(shown(&secret("x"), &secret("y")), [format!("rule a: {hidden} → {hidden}")]);
        let reordered = shown(&[a.clone(), b.clone()].concat(), &[b, a].concat());
        assert_eq!(reordered, ["order of rules: rule a, rule b → rule b, rule a"]);
    }
}
