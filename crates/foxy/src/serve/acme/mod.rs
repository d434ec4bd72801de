//! Gets certificates for the host names in the settings from an ACME authority, and renews them.
//! The certificates are stored in a folder, from which the module `tls` reads them like other
//! certificate files.

mod folder;
mod http;
mod order;
mod schedule;
pub mod trial;

pub use folder::AcmeFolder;

use crate::serve::admin::metrics::{Exposition, FamilyKind};
use crate::serve::reload::Reloader;
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_base::{CivilTime, Random, WallTime, clock};
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::upstream::OriginTls;
use order::{NoCertificate, ProofWay};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;

/// Interval between checks whether a certificate must be renewed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time for which foxy tries to get one certificate.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the folder for certificates. Returns `None` if the settings name no ACME authority.
pub fn folder(settings: &Settings) -> Option<AcmeFolder> {
    let acme = &settings.acme;
    Some(AcmeFolder::of(acme.folder.as_deref()?, acme.directory.as_deref()?))
}

/// Keeps the certificates of all names up to date.
pub struct AcmeKeeper {
    reloader: Rc<Reloader>,
    directory: String,
    folder: AcmeFolder,
    /// TLS settings for connections to the authority's directory, the list of its URLs.
    directory_tls: OriginTls,
    /// The listeners for TLS, which answer challenges.
    tls: ClientTls,
    random: RefCell<Random>,
    names: RefCell<BTreeMap<String, NameState>>,
    /// Number of the configuration reload that gave the host names in `names`.
    reloads: Cell<Option<u64>>,
    wish: Notify,
}

/// The state of a host name's certificate.
#[derive(Debug, Default)]
struct NameState {
    /// Time of the next attempt to get a certificate.
    next: WallTime,
    /// The stored certificate expires at this time.
    end: Option<WallTime>,
    /// Failures since the last success.
    failures_in_a_row: u32,
    failures: u64,
    trouble: Option<String>,
}

impl NameState {
    fn is_due(&self, now: WallTime) -> bool {
        match self.failures_in_a_row {
            0 => self.next <= now,
            _ => schedule::is_due_after_failure(self.next, now),
        }
    }
}

impl AcmeKeeper {
    /// Creates the keeper of certificates. Returns `None` if the settings name no ACME authority.
    pub fn new(
        reloader: Rc<Reloader>,
        directory_tls: OriginTls,
        tls: ClientTls,
        seed: u64,
    ) -> Option<Self> {
        let settings = reloader.settings();
        Some(Self {
            directory: settings.acme.directory.clone()?,
            folder: folder(&settings)?,
            reloader,
            directory_tls,
            tls,
            random: RefCell::new(Random::new(seed)),
            names: RefCell::default(),
            reloads: Cell::new(None),
            wish: Notify::new(),
        })
    }

    /// Gets and renews certificates, for ever.
    pub async fn run(self: Rc<Self>) {
        loop {
            self.read_names();
            let now = clock::wall();
            let is_due =
                |(name, state): (&String, &NameState)| state.is_due(now).then(|| name.clone());
            let due: Vec<String> = self.names.borrow().iter().filter_map(is_due).collect();
            if !due.is_empty() {
                self.renew(&due).await;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = self.wish.notified() => self.forget_pauses(),
            }
        }
    }

    /// Tries now to get each certificate for which the last attempt failed.
    pub fn try_again(&self) {
        self.wish.notify_one();
    }

    fn forget_pauses(&self) {
        let mut names = self.names.borrow_mut();
        for state in names.values_mut().filter(|state| state.failures_in_a_row > 0) {
            state.next = WallTime::default();
        }
    }

    /// Takes the host names in the settings, which a reload may have changed.
    fn read_names(&self) {
        let number = self.reloader.number();
        if self.reloads.replace(Some(number)) == Some(number) {
            return;
        }
        let mut old = self.names.take();
        let state = |name: String| {
            let state = old.remove(&name).unwrap_or_else(|| self.stored(&name));
            (name, state)
        };
        let new = self.reloader.settings().acme_names().into_iter().map(state).collect();
        *self.names.borrow_mut() = new;
    }

    fn stored(&self, name: &str) -> NameState {
        let Some(validity) = self.folder.validity(name) else { return NameState::default() };
        let next = schedule::renewal(validity, &mut self.random.borrow_mut());
        NameState { next, end: Some(validity.end), ..NameState::default() }
    }

    async fn renew(&self, due: &[String]) {
        let settings = self.reloader.settings();
        let (contact, way) = (&settings.acme.contact, ProofWay::of(&settings));
        let account =
            order::account(&self.folder, (&self.directory, contact), &self.directory_tls).await;
        let account = match account {
            Ok(account) => account,
            Err(why) => return due.iter().for_each(|name| self.failed(name, &why)),
        };
        for name in due {
            let attempt = order::certificate(&account, name, &self.tls, way);
            let result = match tokio::time::timeout(ATTEMPT_TIMEOUT, attempt).await {
                Ok(result) => result,
                Err(_) => Err(NoCertificate::Authority("no result in time".into())),
            };
            let kept = result.and_then(|chain_and_key| {
                self.folder.keep(name, &chain_and_key).map_err(NoCertificate::Folder)
            });
            match kept {
                Ok(()) => self.succeeded(name),
                Err(why) => self.failed(name, &why),
            }
        }
    }

    fn succeeded(&self, name: &str) {
        let NameState { next, end, .. } = self.stored(name);
        let next = schedule::after_success(next, clock::wall());
        if let Some(state) = self.names.borrow_mut().get_mut(name) {
            *state = NameState { next, end, failures: state.failures, ..NameState::default() };
        }
        let until =
            end.map_or_else(String::new, |end| format!(", valid until {}", CivilTime::of(end)));
        terminal::report(Level::Info, &format!("foxy: got a certificate for {name}{until}"));
    }

    fn failed(&self, name: &str, why: &NoCertificate) {
        if why.is_unknown_account() {
            self.folder.forget_credentials();
        }
        let mut names = self.names.borrow_mut();
        let Some(state) = names.get_mut(name) else { return };
        state.failures += 1;
        state.failures_in_a_row = state.failures_in_a_row.saturating_add(1);
        let pause = schedule::pause(state.failures_in_a_row, &mut self.random.borrow_mut());
        let (now, directory) = (clock::wall(), &self.directory);
        state.next = WallTime::from_seconds(now.seconds() + pause.as_secs());
        let why = printable(&why.to_string());
        let text = format!("no certificate for {name} from {directory}: {why}");
        if state.end.is_some_and(|end| now < end) {
            let text = format!("foxy: {text}; the old certificate is still valid");
            terminal::report(Level::Warning, &text);
        } else {
            state.trouble = Some(text);
        }
    }

    /// Describes each name without a valid certificate, if the last attempt to get one failed. A
    /// failed renewal is not a trouble while the old certificate is valid.
    pub fn troubles(&self) -> Vec<String> {
        self.names.borrow().values().filter_map(|state| state.trouble.clone()).collect()
    }

    /// Adds the metrics about the certificates of all host names.
    pub fn expose(&self, exposition: &mut Exposition) {
        let names = self.names.borrow();
        let labels: Vec<_> = names.keys().map(|name| [("name", name.as_str())]).collect();
        let states = || labels.iter().map(|label| &label[..]).zip(names.values());
        let ends = states().filter_map(|(label, state)| Some((label, state.end?.seconds())));
        let help = "Time at which the certificate expires since the Unix epoch in seconds.";
        exposition.family("foxy_acme_certificate_end_seconds", FamilyKind::Gauge, help, ends);
        let failures = states().map(|(label, state)| (label, state.failures));
        let help = "Failed attempts to get a certificate.";
        exposition.family("foxy_acme_failures_total", FamilyKind::Counter, help, failures);
    }
}

/// Returns the beginning of a text in which the authority's words may occur, without control
/// characters.
fn printable(text: &str) -> String {
    const LONGEST: usize = 500;
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_writes_no_line_of_its_own_and_no_long_text() {
        assert_eq!(printable("no\r\nfoxy: all is well\u{1b}[2J"), "no  foxy: all is well [2J");
        assert_eq!(printable(&"ä".repeat(1 << 20)).chars().count(), 500);
    }
}
