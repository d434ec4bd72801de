//! Starts a whole proxy on a loopback port, for one test.

use foxy_proxy::cache::purge::Purges;
use foxy_proxy::cache::storage::ObjectStore;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::server::{self, MakeResolver, Parts};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{Addresses, Resolve, ResolveError};
use futures_util::future::{FutureExt, LocalBoxFuture};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A resolver that knows no name, so that no test contacts a name server.
struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, _: &str) -> LocalBoxFuture<'static, Addresses> {
        std::future::ready(Err(ResolveError::NoSuchHost)).boxed_local()
    }
}

/// A running proxy that may connect to 127.0.0.0/8.
pub struct Proxy {
    pub port: u16,
    running: server::Proxy,
}

impl Proxy {
    /// Starts a proxy with default settings and no store.
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts a proxy with default settings, changed by `change`.
    pub fn start_with(change: impl FnOnce(&mut ProxySettings)) -> Self {
        Self::start_on(None, change)
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.running.count(counter)
    }

    /// Stops the proxy gracefully, on another thread.
    pub fn stop(self) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || self.running.stop())
    }

    /// Starts a proxy with a store.
    pub fn start_on(
        store: Option<Arc<dyn ObjectStore>>,
        change: impl FnOnce(&mut ProxySettings),
    ) -> Self {
        let resolver: MakeResolver = Arc::new(|| Ok(Rc::new(NoNames) as Rc<dyn Resolve>));
        Self::start_of((store, resolver), change)
    }

    /// Starts a proxy that uses `resolver`.
    pub fn start_resolving(
        resolver: MakeResolver,
        change: impl FnOnce(&mut ProxySettings),
    ) -> Self {
        Self::start_of((None, resolver), change)
    }

    fn start_of(
        (store, resolver): (Option<Arc<dyn ObjectStore>>, MakeResolver),
        change: impl FnOnce(&mut ProxySettings),
    ) -> Self {
        let mut settings = ProxySettings {
            listen: vec![([127, 0, 0, 1], 0).into()],
            stop_after: Duration::from_millis(50),
            ..ProxySettings::default()
        };
        settings.destinations.allowed = vec!["127.0.0.0/8".parse().expect("block")];
        change(&mut settings);
        let running = server::Proxy::start(
            settings,
            Parts {
                store,
                cold: None,
                purges: Purges::in_memory(),
                sink: None,
                sample: None,
                resolver,
                sockets: Vec::new(),
            },
        )
        .expect("a proxy");
        Self { port: running.addresses()[0].port(), running }
    }
}
