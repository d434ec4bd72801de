//! What `foxy serve` does around the proxy: opens listeners, log and stores, says where everything
//! is, serves until a signal, and closes everything in order.

mod access_line;
mod access_log;
mod admin;
mod admin_access;
pub mod admin_explain;
mod admin_purge;
mod authorities;
mod block_device;
mod certificates;
mod directory;
pub mod disk;
mod disk_health;
mod exposition;
mod facts;
mod file_watch;
mod interception;
mod kept_clock;
pub mod listeners;
mod log_queue;
mod metrics;
mod opening;
mod out_of_use;
pub mod process;
mod proxy_settings;
mod purge_journal;
pub mod purge_list;
mod purge_series;
pub mod query;
mod refused_destinations;
mod room;
mod stopping;
mod store_set;
mod stores;
pub mod token_file;
mod wear;
mod welcome;

pub use interception::of as interception_of;
pub use opening::{Extra, RunningProxy, open};
pub use welcome::OpenStore;

use crate::failure::Failure;
use crate::settings::{Loaded, Settings};
use crate::signals::{self, SignalWish, Signals};
use crate::terminal::{self, Level};
use admin::Facts;
use certificates::Reloadable;
use facts::{RunningFacts, StoreFacts, Trouble};
use file_watch::FileWatch;
use foxy_base::clock;
use listeners::listen;
use refused_destinations::RefusedDestinations;
use std::cell::Cell;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use stores::RunningStore;
use tokio::task::LocalSet;
use welcome::WelcomeFacts;

/// How often troubles are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs until a signal stops it.
///
/// # Errors
/// Something cannot be opened; nobody was served then.
pub fn run(loaded: &Loaded) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot serve: {error}"));
    signals::outlive_log_rotation().map_err(failed)?;
    drop(listen(settings.network.listen, "--listen")?);
    drop(settings.network.listen_tls.map(|address| listen(address, "--listen-tls")).transpose()?);
    let admin = settings.network.admin.map(|address| listen(address, "--admin")).transpose()?;
    let own = admin.as_ref().and_then(|listener| listener.local_addr().ok());
    let running = opening::open(settings, own, Extra::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Failed(format!("cannot start the event loop: {error}")))?;
    LocalSet::new().block_on(&runtime, operate(loaded, running, admin))
}

async fn operate(
    loaded: &Loaded,
    running: RunningProxy,
    admin: Option<TcpListener>,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot serve: {error}"));
    let mut signals = Signals::listen().map_err(failed)?;
    let stores: Vec<OpenStore> = running.stores.iter().map(|store| store.facts.clone()).collect();
    let opened = WelcomeFacts {
        settings: &loaded.settings,
        file: loaded.file.as_deref(),
        listen: running
            .proxy
            .addresses()
            .first()
            .copied()
            .unwrap_or(loaded.settings.network.listen),
        listen_tls: running.proxy.addresses().get(1).copied(),
        admin: admin.as_ref().and_then(|listener| listener.local_addr().ok()),
        stores: &stores,
    };
    let facts = Rc::new(facts(&running, &loaded.settings).map_err(failed)?);
    if let Some(listener) = admin {
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        tokio::task::spawn_local(admin::run(listener, Rc::clone(&facts) as Rc<dyn Facts>));
    }
    let refused = Arc::clone(&running.refused);
    let watching = tokio::task::spawn_local(report_troubles(Rc::clone(&facts), refused));
    terminal::report(Level::Info, &opened.message());
    process::notify("READY=1");
    loop {
        match signals.next().await {
            SignalWish::Stop => break,
            SignalWish::ReopenLogs => reopen_log(&running, "SIGUSR1"),
            SignalWish::Reopen => {
                reopen_log(&running, "SIGHUP");
                reload_certificates(&running);
            }
        }
    }
    process::notify("STOPPING=1");
    watching.abort();
    facts.stopping.set(true);
    stopping::stop(running, &mut signals, &facts, loaded.settings.operation.stop_after).await;
    Ok(())
}

fn reopen_log(running: &RunningProxy, signal: &str) {
    if let Some(log) = &running.log {
        log.writer.reopen();
        terminal::report(Level::Info, &format!("foxy: opening the access log anew ({signal})"));
    }
}

fn reload_certificates(running: &RunningProxy) {
    match running.certificates.as_ref().map(Reloadable::reload) {
        Some(Ok(())) => terminal::report(Level::Info, "foxy: certificates read anew (SIGHUP)"),
        Some(Err(why)) => {
            let text = format!("foxy: {why}; the certificates in use stay (SIGHUP)");
            terminal::report(Level::Warning, &text);
        }
        None => {}
    }
}

fn facts(running: &RunningProxy, settings: &Settings) -> std::io::Result<RunningFacts> {
    let store = |store: &RunningStore| {
        StoreFacts::new(store.facts.folder.display().to_string(), store.shard.handle())
    };
    let files = running.stores.iter().map(RunningStore::file).collect();
    Ok(RunningFacts {
        proxy: running.proxy.gauges(),
        purger: running.proxy.purger(),
        token: running.token.clone(),
        hosts: settings.network.admin_hosts.clone(),
        stores: running.stores.iter().map(store).collect(),
        set: running.set.clone(),
        files: FileWatch::start(files)?,
        lists: running.lists.clone(),
        log: running.log.as_ref().map(|log| Arc::clone(&log.queue)),
        started: clock::wall(),
        stopping: Cell::new(false),
    })
}

/// Reports each new trouble once, and its end, and what destinations were refused; stores that are
/// worn out are taken out of use.
async fn report_troubles(facts: Rc<RunningFacts>, refused: Arc<RefusedDestinations>) {
    let mut known: Vec<Trouble> = Vec::new();
    loop {
        facts.take_out_worn_stores(clock::monotonic());
        let troubles = facts.look();
        for Trouble { text, is_left_out, .. } in
            troubles.iter().filter(|trouble| !known.contains(*trouble))
        {
            let without = if *is_left_out { " without it" } else { "" };
            terminal::report(Level::Warning, &format!("foxy: {text}; serving goes on{without}"));
        }
        let ended = |trouble: &&Trouble| !troubles.contains(*trouble) && facts.is_over(trouble);
        for Trouble { text, .. } in known.iter().filter(ended) {
            terminal::report(Level::Info, &format!("foxy: over: {text}"));
        }
        known = troubles;
        refused.take().iter().for_each(|text| terminal::report(Level::Warning, text));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
