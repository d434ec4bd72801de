//! What the admin server tells: counters summed at the moment they are asked for, and what is wrong.

use super::admin::{Facts, Later};
use super::admin_explain::Asked;
use super::admin_purge::Wanted;
use super::disk_health::DiskHealth;
use super::exposition::{Exposition, FamilyKind};
use super::file_watch::FileWatch;
use super::log_queue::LogQueue;
use super::purge_journal::ListHealth;
use super::{metrics, process};
use foxy_base::{WallTime, clock};
use foxy_proxy::explain::Explanation;
use foxy_proxy::purge::NotPurged;
use foxy_proxy::purger::Purger;
use foxy_proxy::server::Gauges;
use foxy_proxy::token::Token;
use foxy_store::{StoreHandle, StoreStatus};
use std::cell::Cell;
use std::sync::Arc;

/// A running foxy, as seen from outside.
pub struct RunningFacts {
    /// The proxy's numbers.
    pub proxy: Gauges,
    /// What purges its cache.
    pub purger: Purger,
    /// What whoever purges must know.
    pub token: Option<Token>,
    /// Each store with its folder, and what is known of its disk.
    pub stores: Vec<(String, StoreHandle, DiskHealth)>,
    /// What is known of their files.
    pub files: FileWatch,
    /// What is known of the lists of purges beside them.
    pub lists: ListHealth,
    /// Lines of the access log that wait.
    pub log: Option<Arc<LogQueue>>,
    /// When it became ready.
    pub started: WallTime,
    /// Whether it is about to end.
    pub stopping: Cell<bool>,
}

impl Facts for RunningFacts {
    fn metrics(&self) -> String {
        let mut exposition = Exposition::default();
        metrics::build(&mut exposition);
        metrics::proxy(&mut exposition, &self.proxy);
        let snapshot = |(folder, store, _): &(String, StoreHandle, DiskHealth)| {
            (folder.clone(), store.observer().statistics.snapshot())
        };
        metrics::stores(&mut exposition, &self.stores.iter().map(snapshot).collect::<Vec<_>>());
        if let Some(queue) = &self.log {
            metrics::access_log(&mut exposition, queue);
        }
        let help = "Start time of the process since the Unix epoch in seconds.";
        exposition.single("process_start_time_seconds", FamilyKind::Gauge, help, self.started.seconds());
        process::expose(&mut exposition);
        exposition.finish()
    }

    fn troubles(&self) -> Vec<String> {
        let now = clock::monotonic();
        let trouble = |(number, (folder, store, health)): (usize, &(String, StoreHandle, DiskHealth))| {
            let observer = store.observer();
            let trouble = match observer.status.get() {
                StoreStatus::Unusable(error) => error.to_string(),
                StoreStatus::Panicked => "its thread failed; restart foxy".into(),
                StoreStatus::Rebuilding | StoreStatus::Serving => {
                    let disk = health.judge(&observer.statistics, now).map(|trouble| trouble.to_string());
                    self.files.trouble(number).map(|trouble| trouble.to_string()).or(disk)?
                }
                StoreStatus::Opening | StoreStatus::Closed => return None,
            };
            Some(format!("store {folder}: {trouble}"))
        };
        let stopping = self.stopping.get().then(|| "foxy is stopping".to_owned());
        let list = |(number, (folder, ..)): (usize, &(String, StoreHandle, DiskHealth))| {
            Some(format!("store {folder}: {}", self.lists.trouble(number)?))
        };
        let numbered = || self.stores.iter().enumerate();
        let lists = numbered().filter_map(list);
        stopping.into_iter().chain(numbered().filter_map(trouble)).chain(lists).collect()
    }

    fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    fn purge(&self, wanted: Wanted) -> Later<Result<u64, NotPurged>> {
        let purger = self.purger.clone();
        Box::pin(async move { purger.purge(&wanted.scopes, wanted.strength).await })
    }

    fn explain(&self, asked: &Asked) -> Later<Explanation> {
        let (purger, url, fields) = (self.purger.clone(), asked.url.clone(), asked.fields.clone());
        Box::pin(async move { purger.explain(&url, &fields).await })
    }
}
