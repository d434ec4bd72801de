//! Runs `foxy serve`. Opens listeners, log and stores, prints the start-up message, and serves
//! until a signal arrives. Then closes everything in order.

mod access_log;
mod activation;
pub mod admin;
pub mod listeners;
mod opening;
mod parents;
mod process;
mod proxy_settings;
pub mod purge;
mod reload;
mod socket_file;
mod status;
mod stores;
mod tls;
pub mod trial;
mod welcome;

pub use opening::{Extra, RunningProxy, open};
pub use tls::interception;
pub use welcome::OpenStore;

use crate::failure::Failure;
use crate::settings::{Loaded, Settings, exposure};
use crate::signals::{self, SignalWish, Signals};
use crate::terminal::{self, Level};
use access_log::refused_destinations::RefusedDestinations;
use admin::Operated;
use foxy_base::clock;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::server::listener::{Acceptor, ListenSocket};
use listeners::{Listeners, ProxyListeners, address_of};
use opening::keep_doubts;
use reload::{ReadAgain, Reloader};
use sd_notify::NotifyState;
use socket_file::SocketFile;
use status::{ProxyStatus, Trouble, WatchedStore};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use stores::RunningStore;
use stores::health::FileWatch;
use tls::ReloadableTls;
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use welcome::Welcome;

/// Interval between checks for new troubles of the stores.
const TROUBLE_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// During a stop, interval between checks whether a disk does not answer.
const STOP_LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// During a stop with a hanging disk, time limit to write the purge lists. The lists may be on
/// other disks.
const LISTS_PATIENCE: Duration = Duration::from_secs(5);

/// Serves until a signal arrives. If opening fails, returns the error before the first request. A
/// reload calls `read_again`.
pub fn run(loaded: Loaded, read_again: Box<ReadAgain>) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot serve: {error}"));
    signals::outlive_log_rotation().map_err(failed)?;
    let names = std::env::var_os(activation::NAMES).unwrap_or_default();
    let given = activation::take(&names.to_string_lossy())?;
    let mut network = settings.network.clone();
    let is_default = |key: &str| loaded.source(key).is_none();
    let listeners = Listeners::activate(given, &mut network, is_default);
    judge_activated(settings, &listeners.proxy)?;
    let Listeners { proxy, admin, files } = listeners.open(&network)?;
    let own = admin.iter().filter_map(address_of).flat_map(|address| address.sockets()).collect();
    let extra = Extra { own, ..Extra::default() };
    let running = opening::open(settings, proxy, extra)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Failed(format!("cannot start the event loop: {error}")))?;
    LocalSet::new().block_on(&runtime, operate((loaded, read_again), running, admin, files))
}

/// Refuses sockets of systemd that the settings would refuse as addresses.
fn judge_activated(settings: &Settings, proxy: &ProxyListeners) -> Result<(), Failure> {
    if proxy.shared.iter().any(|socket| socket.is_tls)
        && settings.network.tls_certificate.is_empty()
    {
        let text = "systemd passes foxy a socket for TLS; give `tls-certificate` and `tls-key`";
        return Err(Failure::Unusable(text.into()));
    }
    let mut exposed = proxy.shown.iter().filter(|(address, _)| address.is_exposed());
    let refusal = exposed.find_map(|(address, _)| exposure::refusal(settings, address));
    refusal.map_or(Ok(()), |message| Err(Failure::Unusable(message)))
}

async fn operate(
    (loaded, read_again): (Loaded, Box<ReadAgain>),
    running: RunningProxy,
    admin: Vec<ListenSocket>,
    files: Vec<SocketFile>,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot serve: {error}"));
    let mut signals = Signals::listen().map_err(failed)?;
    let stores: Vec<OpenStore> = running.stores.iter().map(|store| store.facts.clone()).collect();
    let admin_addresses: Vec<_> = admin.iter().filter_map(address_of).collect();
    let welcome = Welcome {
        settings: &loaded.settings,
        file: loaded.file.as_deref(),
        proxy: &running.addresses,
        admin: &admin_addresses,
        stores: &stores,
        parents: &running.parents,
    };
    let message = welcome.message();
    let stop_after = loaded.settings.operation.stop_after;
    let hosts = loaded.settings.network.admin_hosts.clone();
    let reloader = Reloader::new(loaded, read_again, running.proxy.purger());
    let status = Rc::new(status(&running, hosts, reloader).map_err(failed)?);
    for socket in admin {
        let acceptor = Acceptor::new(socket).map_err(failed)?;
        tokio::task::spawn_local(admin::run(acceptor, Rc::clone(&status) as Rc<dyn Operated>));
    }
    let refused = Arc::clone(&running.refused);
    let watching = tokio::task::spawn_local(report_troubles(Rc::clone(&status), refused));
    terminal::report(Level::Info, &message);
    process::notify(&[NotifyState::Ready]);
    loop {
        match signals.next().await {
            SignalWish::Stop => break,
            SignalWish::ReopenLogs => reopen_log(&running, "SIGUSR1"),
            SignalWish::Reopen => {
                process::notify_reloading();
                reopen_log(&running, "SIGHUP");
                reload_certificates(&running);
                reload_settings(&status.reloader);
                process::notify(&[NotifyState::Ready]);
            }
        }
    }
    process::notify(&[NotifyState::Stopping]);
    drop(files);
    watching.abort();
    status.is_stopping.set(true);
    stop(running, &mut signals, &status, stop_after).await;
    Ok(())
}

fn reopen_log(running: &RunningProxy, signal: &str) {
    if let Some(log) = &running.log {
        log.writer.reopen();
        terminal::report(Level::Info, &format!("foxy: opening the access log again ({signal})"));
    }
}

fn reload_certificates(running: &RunningProxy) {
    match running.certificates.as_ref().map(ReloadableTls::reload) {
        Some(Ok(())) => terminal::report(Level::Info, "foxy: read the certificates again (SIGHUP)"),
        Some(Err(why)) => {
            let text = format!("foxy: {why}; foxy continues with the old certificates (SIGHUP)");
            terminal::report(Level::Warning, &text);
        }
        None => {}
    }
}

fn reload_settings(reloader: &Reloader) {
    let (level, text) = match reloader.reload() {
        Ok(changes) => (Level::Info, reload::report(&changes)),
        Err(why) => (Level::Warning, why.to_string()),
    };
    terminal::report(level, &format!("foxy: {text} (SIGHUP)"));
}

fn status(
    running: &RunningProxy,
    hosts: Vec<HostPattern>,
    reloader: Reloader,
) -> std::io::Result<ProxyStatus> {
    let watched = |store: &RunningStore| {
        WatchedStore::new(store.facts.folder.display().to_string(), store.shard.handle())
    };
    let files = running.stores.iter().map(RunningStore::file).collect();
    Ok(ProxyStatus {
        proxy: running.proxy.gauges(),
        purger: running.proxy.purger(),
        token: running.token.clone(),
        hosts,
        reloader,
        stores: running.stores.iter().map(watched).collect(),
        set: running.set.clone(),
        files: FileWatch::start(files)?,
        lists: running.lists.clone(),
        log: running.log.as_ref().map(|log| Arc::clone(&log.queue)),
        started: clock::wall(),
        is_stopping: Cell::new(false),
    })
}

/// Reports the start and end of each trouble, and reports refused destinations. Also takes worn-out
/// stores out of use.
async fn report_troubles(status: Rc<ProxyStatus>, refused: Arc<RefusedDestinations>) {
    let mut known: Vec<Trouble> = Vec::new();
    loop {
        status.take_out_worn_stores(clock::monotonic());
        let troubles = status.current_troubles();
        for trouble in troubles.iter().filter(|trouble| !known.contains(*trouble)) {
            let without = if trouble.is_left_out { " without it" } else { "" };
            let text = format!("foxy: {}; foxy continues{without}", trouble.text);
            terminal::report(Level::Warning, &text);
        }
        let has_ended =
            |trouble: &&Trouble| !troubles.contains(*trouble) && status.is_over(trouble);
        for Trouble { text, .. } in known.iter().filter(has_ended) {
            terminal::report(Level::Info, &format!("foxy: over: {text}"));
        }
        known = troubles;
        refused.take().iter().for_each(|text| terminal::report(Level::Warning, text));
        tokio::time::sleep(TROUBLE_LOOK_INTERVAL).await;
    }
}

/// Waits for requests in progress, then closes the stores and the log. foxy ends at once after a
/// second signal, or if a disk still hangs after `stop_after`. Data that was not written is then
/// lost, but the stores remain intact.
async fn stop(
    running: RunningProxy,
    signals: &mut Signals,
    status: &ProxyStatus,
    stop_after: Duration,
) {
    terminal::report(
        Level::Info,
        "foxy: stopping after the requests in progress; a second signal stops foxy at once",
    );
    let Some(ended) = in_thread("stop", move || running.close()) else { return };
    let again = async { while signals.next().await != SignalWish::Stop {} };
    tokio::select! {
        _ = ended => terminal::report(Level::Info, "foxy: stopped"),
        () = again => terminal::report(Level::Warning, "foxy: stopped at once"),
        folder = silent_folder(status, stop_after) => {
            let purger = status.purger.clone();
            if let Some(kept) = in_thread("doubts", move || keep_doubts(&purger)) {
                // A list on a hanging disk cannot be written. The next start then behaves as after
                // a killed process.
                let _ = tokio::time::timeout(LISTS_PATIENCE, kept).await;
            }
            let text = format!(
                "foxy: store {folder}: its disk does not answer; foxy stopped without it, and \
                 unwritten data is lost"
            );
            terminal::report(Level::Warning, &text);
        }
    }
}

/// Calls `work` on a new thread. The receiver resolves when `work` returns. Returns `None` if the
/// system cannot start the thread.
fn in_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Option<oneshot::Receiver<()>> {
    let (done, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
        work();
        let _nobody_waits = done.send(());
    });
    thread.ok().map(|_| ended)
}

/// Waits until `stop_after` has passed and the disk of a store does not answer. Returns the folder
/// of this store.
async fn silent_folder(status: &ProxyStatus, stop_after: Duration) -> String {
    let since = clock::monotonic() + stop_after;
    loop {
        tokio::time::sleep(STOP_LOOK_INTERVAL).await;
        if clock::monotonic() >= since
            && let Some(folder) = status.silent_folder()
        {
            return folder.to_owned();
        }
    }
}
