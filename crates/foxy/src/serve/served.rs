//! A proxy in service, with the tasks that watch its stores and answer admin requests.

use crate::serve::access_log::refused_destinations::RefusedDestinations;
use crate::serve::acme::AcmeKeeper;
use crate::serve::admin::health::HealthChanges;
use crate::serve::admin::{self, Operated};
use crate::serve::dashboard::Dashboard;
use crate::serve::opening::RunningProxy;
use crate::serve::otlp::OtlpExporter;
use crate::serve::reload::Reloader;
use crate::serve::reload_watch::AnswerCounts;
use crate::serve::status::{ProxyStatus, Trouble, WatchedStore};
use crate::serve::stores::RunningStore;
use crate::serve::stores::health::FileWatch;
use crate::serve::upgrade::UpgradeWish;
use crate::terminal::{self, Level};
use foxy_base::clock;
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::server::listener::{Acceptor, SharedListener};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

/// Interval between checks for new troubles, such as a full disk.
const TROUBLE_LOOK_INTERVAL: Duration = Duration::from_secs(1);

pub struct Served {
    pub running: RunningProxy,
    pub status: Rc<ProxyStatus>,
    tasks: Vec<JoinHandle<()>>,
}

impl Served {
    /// Starts to watch a proxy, and to answer requests on the sockets `admin`.
    pub fn begin(
        running: RunningProxy,
        admin: &[SharedListener],
        reloader: Rc<Reloader>,
        upgrades: UnboundedSender<UpgradeWish>,
    ) -> std::io::Result<Self> {
        let tls = running.certificates.as_ref().map(|certificates| certificates.tls.clone());
        let keeper = tls.clone().and_then(|tls| {
            let directory_tls = running.directory_tls.clone();
            AcmeKeeper::new(Rc::clone(&reloader), directory_tls, tls, running.seed)
        });
        let keeper = keeper.map(Rc::new);
        let mut tasks = Vec::new();
        if let Some(keeper) = &keeper {
            tasks.push(tokio::task::spawn_local(Rc::clone(keeper).run()));
        }
        let status = Rc::new(status(&running, (reloader, keeper), upgrades)?);
        for socket in admin.iter().flat_map(|shared| &shared.sockets) {
            let acceptor = Acceptor::new(socket.try_clone()?)?;
            let operated = Rc::clone(&status) as Rc<dyn Operated>;
            tasks.push(tokio::task::spawn_local(admin::run(acceptor, operated)));
        }
        let refused = Arc::clone(&running.refused);
        let watching = report_troubles(Rc::clone(&status), refused, tls);
        tasks.push(tokio::task::spawn_local(watching));
        if !admin.is_empty() {
            tasks.push(tokio::task::spawn_local(Rc::clone(&status.dashboard).keep_maps()));
        }
        Ok(Self { running, status, tasks })
    }

    /// Ends the tasks, except for admin requests in progress.
    pub fn end_tasks(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
    }
}

fn status(
    running: &RunningProxy,
    (reloader, acme): (Rc<Reloader>, Option<Rc<AcmeKeeper>>),
    upgrades: UnboundedSender<UpgradeWish>,
) -> std::io::Result<ProxyStatus> {
    let watched = |store: &RunningStore| {
        WatchedStore::new(store.facts.folder.display().to_string(), store.shard.handle())
    };
    let named =
        |store: &RunningStore| (store.facts.folder.display().to_string(), store.shard.handle());
    let stores = running.stores.iter().map(named).collect();
    let dashboard = Dashboard::new(running.proxy.gauges(), stores, Arc::clone(&running.traffic));
    let files = running.stores.iter().map(RunningStore::file).collect();
    Ok(ProxyStatus {
        fleet_purges: running.fleet_purges(),
        cold: running.cold.facts(),
        proxy: running.proxy.gauges(),
        handle: running.proxy.handle(),
        token: running.token.clone(),
        hosts: reloader.settings().network.admin_hosts,
        reloader,
        acme,
        upgrades,
        earlier: RefCell::default(),
        stores: running.stores.iter().map(watched).collect(),
        set: running.set.clone(),
        files: FileWatch::start(files)?,
        lists: running.lists.clone(),
        log: running.logs.access.as_ref().map(|log| Arc::clone(&log.queue)),
        transactions: running.logs.transactions.as_ref().map(|log| Arc::clone(&log.queue)),
        otlp: running.logs.otlp.as_ref().map(OtlpExporter::counts),
        started: clock::wall(),
        is_stopping: Cell::new(false),
        dashboard: Rc::new(dashboard),
        whatif: Arc::clone(&running.whatif),
        fleet: running.fleet.clone(),
    })
}

/// Prints the start and end of each trouble, destinations that the proxy refused, and clients whose
/// certificates it refused. Also takes worn-out stores out of use.
async fn report_troubles(
    status: Rc<ProxyStatus>,
    refused: Arc<RefusedDestinations>,
    tls: Option<ClientTls>,
) {
    let mut known: Vec<Trouble> = Vec::new();
    let mut health = HealthChanges::default();
    loop {
        status.take_out_worn_stores(clock::monotonic());
        status.dashboard.traffic.tick(clock::monotonic());
        status.whatif.tick(&status.proxy, clock::monotonic());
        status.earlier.borrow_mut().add(AnswerCounts::of(&status.proxy));
        health.report(&status);
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
        for (client, reason) in tls.iter().flat_map(ClientTls::take_refused) {
            let text = format!("foxy: refused {client} in the TLS handshake: {reason}");
            terminal::report(Level::Warning, &text);
        }
        tokio::time::sleep(TROUBLE_LOOK_INTERVAL).await;
    }
}
