//! A handle to a running proxy. With it, any thread can purge the proxy's cache, replace its
//! settings and explain requests. `cache::purge` defines purges, and `explain` defines
//! explanations.

use crate::cache::purge::{NotPurged, Order, PURGE_TIMEOUT, Scope, Strength};
use crate::cache::storage::Storage;
use crate::core::counters::{Counter, Counters};
use crate::core::rules::RulesInForce;
use crate::core::users::UserBook;
use crate::settings::ProxySettings;
use crate::upstream::{GroupSettings, Origins};
use crate::worker::Shared;
use foxy_base::{Cidr, clock};
use foxy_rules::operator::OperatorRules;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};

/// Handle to a running proxy: purges its cache, replaces settings and explains requests. Any thread
/// may use it.
#[derive(Clone)]
pub struct ProxyHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
}

/// New values of the settings that can change while the proxy runs. [`ProxySettings`] describes
/// them.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "`ProxySettings` has fields with the same names")]
pub struct NewSettings {
    pub rules: OperatorRules,
    pub allow_client: Vec<Cidr>,
    pub purge_from: Vec<Cidr>,
    pub negative_lifetime: u64,
    pub users: Option<UserBook>,
}

impl ProxyHandle {
    /// Returns the operator's rules.
    pub fn rules(&self) -> &RulesInForce {
        &self.shared.settings.rules
    }

    /// Returns the users. A reload may have replaced them.
    pub fn users(&self) -> Arc<Option<UserBook>> {
        Arc::clone(&self.shared.settings.users.get())
    }

    /// Replaces the settings that can change while the proxy runs. Stored responses also get the
    /// lifetimes that the new settings give.
    pub fn reload(&self, new: NewSettings) {
        let ProxySettings {
            rules, users, allow_client, purge_from, negative_lifetime, mode, ..
        } = &self.shared.settings;
        users.replace(new.users);
        allow_client.replace(new.allow_client);
        purge_from.replace(new.purge_from);
        negative_lifetime.replace(new.negative_lifetime);
        rules.replace(new.rules);
        let (policies, role) = (self.shared.settings.policies(), mode.role());
        self.shared
            .cache
            .memory
            .reassess(|stored| policies.of(role, &stored.key, &stored.head, Some(stored.length)));
    }

    /// Replaces the origins of a reverse proxy, and returns the earlier origins. An origin whose
    /// settings do not change keeps its connections. Does nothing for a forward proxy.
    pub fn replace_origins(&self, all: Vec<GroupSettings>) -> Vec<GroupSettings> {
        let settings = &self.shared.settings;
        let Some(origins) = settings.mode.origins() else { return Vec::new() };
        let earlier = origins.get();
        origins.replace(Origins::new(all, &earlier, clock::monotonic(), settings.seed));
        earlier.groups().iter().map(|group| group.settings.clone()).collect()
    }

    /// Purges all `scopes`, and waits until the purge would survive a crash. Returns the number of
    /// the last purge. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`NotPurged`]: the purge failed, or its outcome is unknown.
    pub async fn purge(&self, scopes: &[Scope], strength: Strength) -> Result<u64, NotPurged> {
        purge(&self.shared, &self.counters, scopes, strength).await
    }

    /// Purges the URLs of removals that the store has not confirmed. Without this purge, a later
    /// process could serve the removed responses. Waits until the purge would survive a crash.
    /// Returns the number of purged scopes. The caller must call this function at the end of the
    /// process, after the stores have stopped.
    ///
    /// # Errors
    /// [`NotPurged`]: a later process may serve responses that were replaced or invalidated.
    pub fn purge_what_is_in_doubt(&self) -> Result<usize, NotPurged> {
        let in_doubt = self.shared.cache.storage().map(Storage::in_doubt).unwrap_or_default();
        if in_doubt.is_empty() {
            return Ok(0);
        }
        let order =
            |scope: &Scope| Order { scope: *scope, strength: Strength::Hard, at: clock::steady() };
        let (sender, receiver) = mpsc::channel();
        let reply = move |answer| {
            // The error is ignored, because the caller may have stopped waiting for the answer.
            let _ = sender.send(answer);
        };
        self.shared.purges.keeper.purge(in_doubt.iter().map(order).collect(), Box::new(reply));
        match receiver.recv_timeout(PURGE_TIMEOUT) {
            Ok(answer) => answer.map(|_| in_doubt.len()),
            Err(RecvTimeoutError::Timeout) => Err(NotPurged::Late),
            Err(RecvTimeoutError::Disconnected) => Err(NotPurged::Stopping),
        }
    }
}

pub(crate) async fn purge(
    shared: &Shared,
    counters: &Counters,
    scopes: &[Scope],
    strength: Strength,
) -> Result<u64, NotPurged> {
    let number = shared.purges.purge(scopes, strength).await?;
    counters.add(Counter::Purges, scopes.len() as u64);
    if strength == Strength::Hard {
        for scope in scopes {
            if let Scope::Url { key, .. } = scope {
                shared.cache.forget_record(*key, *scope);
            }
        }
    }
    Ok(number)
}
