//! Operates a proxy until foxy stops: carries out signals, reloads and upgrades.

use crate::failure::Failure;
use crate::serve::activation::Purpose;
use crate::serve::fleet::FleetView;
use crate::serve::listeners::{OpenSockets, ProxyListeners, address_of};
use crate::serve::opening::{self, DepartedProxy, Extra, RunningProxy};
use crate::serve::process;
use crate::serve::reload::{self, ReadAgain, Reloadable, Reloader};
use crate::serve::served::Served;
use crate::serve::socket_file::SocketFile;
use crate::serve::status::ProxyStatus;
use crate::serve::stop::{again, in_thread, stop};
use crate::serve::tls::ReloadableTls;
use crate::serve::upgrade::keeper::RemoteKeeper;
use crate::serve::upgrade::moving_clients::{ClientTarget, MovingClients};
use crate::serve::upgrade::predecessor::Predecessor;
use crate::serve::upgrade::successor::{Successor, SuccessorNews};
use crate::serve::upgrade::{NotUpgraded, UpgradeWish, Upgraded};
use crate::serve::welcome::{OpenStore, Welcome};
use crate::settings::{self, Loaded};
use crate::signals::{SignalWish, Signals};
use crate::terminal::{self, Level};
use foxy_base::clock;
use foxy_proxy::cache::purge::PurgeKeeper;
use foxy_proxy::server::listener::{ListenerKind, SharedListener};
use sd_notify::NotifyState;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Interval between checks whether a departed proxy has finished its connections. A departed proxy
/// has passed its stores and sockets to a new process.
const DEPARTED_LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Interval between checks whether certificate files have changed.
const CERTIFICATE_LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The sockets of this process that the proxy does not use.
pub struct OwnSockets {
    pub admin: Vec<SharedListener>,
    pub files: Vec<SocketFile>,
    /// The addresses of the admin server, to which the proxy must not forward requests.
    pub own: Vec<SocketAddr>,
}

/// A proxy that serves, with the parts of its process that outlive it.
pub struct Operator {
    served: Served,
    parts: ProcessParts,
}

/// The parts of the process that outlive a proxy. After a failed upgrade, the next proxy uses them.
struct ProcessParts {
    signals: Signals,
    reloader: Rc<Reloader>,
    sockets: OwnSockets,
    wish: UnboundedSender<UpgradeWish>,
    wished: UnboundedReceiver<UpgradeWish>,
    predecessor: Option<Rc<Predecessor>>,
}

impl Operator {
    /// Starts to operate a proxy that was just opened. Prints the start-up message.
    pub fn begin(
        (loaded, read_again): (Loaded, Box<ReadAgain>),
        running: RunningProxy,
        sockets: OwnSockets,
        predecessor: Option<Rc<Predecessor>>,
    ) -> Result<Self, Failure> {
        let signals = Signals::listen().map_err(failed)?;
        let message = welcome(&loaded, &running, &sockets.admin);
        let keeper = Arc::clone(&running.keeper) as Arc<dyn PurgeKeeper>;
        let adopter = running.proxy.adopter();
        let reloader = Rc::new(Reloader::new(loaded, read_again, reloadable(&running)));
        let (wish, wished) = unbounded_channel();
        let served = Served::begin(running, &sockets.admin, Rc::clone(&reloader), wish.clone())
            .map_err(failed)?;
        terminal::report(Level::Info, &message);
        process::notify(&[NotifyState::Ready]);
        if let Some(predecessor) = &predecessor {
            predecessor.serving(keeper, adopter).map_err(failed)?;
        }
        let parts = ProcessParts { signals, reloader, sockets, wish, wished, predecessor };
        Ok(Self { served, parts })
    }

    /// Reads changed certificates, and compares the settings of a fleet's nodes. If this node has
    /// just joined a fleet, also takes over more keys when it is time.
    fn look_again(&self) {
        let running = &self.served.running;
        let renewed = running.certificates.as_ref().and_then(ReloadableTls::renew);
        report_certificates(renewed, "the files have changed");
        let Some(fleet) = &running.fleet else { return };
        report_certificates(fleet.renew(), "the files of the fleet have changed");
        fleet.tick();
        fleet.compare(&self.parts.reloader.rules_and_origins());
    }

    /// Operates the proxy until foxy stops.
    pub async fn run(mut self) -> Result<(), Failure> {
        loop {
            let wish = tokio::select! {
                wish = self.parts.signals.next() => wish,
                Some(wish) = self.parts.wished.recv() => match self.upgrade(wish).await? {
                    Some(serving) => {
                        self = serving;
                        continue;
                    }
                    None => return Ok(()),
                },
                () = tokio::time::sleep(CERTIFICATE_LOOK_INTERVAL) => {
                    self.look_again();
                    continue;
                }
            };
            match wish {
                SignalWish::Stop => break,
                SignalWish::ReopenLogs => reopen_log(&self.served.running, "SIGUSR1"),
                SignalWish::Reopen => {
                    process::notify_reloading();
                    reopen_log(&self.served.running, "SIGHUP");
                    let certificates = self.served.running.certificates.as_ref();
                    report_certificates(certificates.map(ReloadableTls::reload), "SIGHUP");
                    let fleet = self.served.running.fleet.as_ref();
                    report_certificates(fleet.map(FleetView::reload), "SIGHUP, for the fleet");
                    if let Some(keeper) = &self.served.status.acme {
                        keeper.try_again();
                    }
                    reload_settings(&self.parts.reloader);
                    process::notify(&[NotifyState::Ready]);
                }
            }
        }
        process::notify(&[NotifyState::Stopping]);
        let Self { mut served, parts } = self;
        let ProcessParts { mut signals, reloader, sockets, predecessor, .. } = parts;
        if let Some(predecessor) = predecessor {
            predecessor.leaving();
        }
        drop(sockets);
        served.end_tasks();
        served.status.is_stopping.set(true);
        let stop_after = reloader.settings().operation.stop_after;
        stop(served.running, &mut signals, &served.status, stop_after).await;
        Ok(())
    }

    /// Starts the new process, gives it the stores, and finishes the connections of this process.
    /// Returns `None` if this process has finished. Returns an operator if the upgrade failed, so
    /// that this process still serves.
    async fn upgrade(self, wish: UpgradeWish) -> Result<Option<Operator>, Failure> {
        let UpgradeWish { binary, reply } = wish;
        let successor = match self.prepare(binary).await {
            Ok(successor) => successor,
            Err(why) => {
                report_failure(&why);
                let _gone = reply.send(Err(why));
                return Ok(Some(self));
            }
        };
        let (began, process) = (clock::monotonic(), successor.process);
        let Self { mut served, parts } = self;
        served.end_tasks();
        let Served { running, status, .. } = served;
        let keeper = Arc::clone(&successor.keeper);
        let link = successor.client_link();
        // If the thread for idle connections cannot start, no connection moves to the new process.
        // Open connections then end after their next request.
        let clients = link.as_ref().and_then(|_| MovingClients::start().ok());
        let heir = clients.as_ref().map(MovingClients::heir);
        let departed = in_thread("depart", move || {
            let keeper = Arc::clone(&successor.keeper) as Arc<dyn PurgeKeeper>;
            let departed = running.depart(keeper, heir);
            (departed, successor.take_over())
        });
        let ended = |_| Failure::Failed("the thread of the upgrade failed".into());
        let departed = departed.ok_or_else(|| ended(()))?;
        let (departed, taken_over) = departed.await.map_err(|_| ended(()))?;
        let leaving = Leaving { departed, parts, clients };
        match taken_over {
            Ok(news) => {
                let gap = clock::monotonic().since(began);
                let text = format!(
                    "foxy: process {process} serves now, after {} ms; this process finishes its \
                     connections",
                    gap.as_millis()
                );
                terminal::report(Level::Info, &text);
                process::notify_main(process);
                if let Some(link) = link {
                    leaving.pass_clients(ClientTarget::NewProcess(link));
                }
                let _gone = reply.send(Ok(Upgraded { process, gap }));
                leaving.finish(news, status, &keeper).await
            }
            Err(why) => {
                report_failure(&why);
                let serving = leaving.serve_again(&keeper).map_err(|(why, _)| why)?;
                let _gone = reply.send(Err(why));
                Ok(Some(serving))
            }
        }
    }

    /// Starts the new process, and waits until it asks for the stores. Fails if this takes too
    /// long.
    async fn prepare(&self, binary: Option<String>) -> Result<Successor, NotUpgraded> {
        if let Err(why) = settings::can_be_read_again(self.parts.reloader.file().as_deref()) {
            return Err(NotUpgraded::UnreadableSettings(why.to_string()));
        }
        if let Some(folder) = self.served.status.silent_folder() {
            return Err(NotUpgraded::SilentDisk(folder.to_owned()));
        }
        let copies = self.open_sockets();
        let copies =
            copies.map_err(|error| NotUpgraded::CannotStart("the new process".into(), error))?;
        let started = in_thread("upgrade", move || Successor::start(binary.as_deref(), &copies));
        match started {
            Some(started) => started.await.unwrap_or(Err(NotUpgraded::Ended(None))),
            None => Err(NotUpgraded::Ended(None)),
        }
    }

    /// Returns copies of all listening sockets, for the new process.
    fn open_sockets(&self) -> std::io::Result<OpenSockets> {
        let of_proxy = self.served.running.proxy.sockets().iter().map(|shared| {
            let purpose = match shared.kind {
                ListenerKind::Plain => Purpose::Listen,
                ListenerKind::Tls => Purpose::ListenTls,
                ListenerKind::Transparent => Purpose::ListenTransparent,
                ListenerKind::Nodes => Purpose::FleetListen,
            };
            (purpose, shared)
        });
        let of_admin = self.parts.sockets.admin.iter().map(|shared| (Purpose::Admin, shared));
        let copy =
            |(purpose, shared): (Purpose, &SharedListener)| Ok((purpose, shared.try_clone()?));
        of_proxy.chain(of_admin).map(copy).collect()
    }
}

/// A process that only finishes its connections, because a new process serves.
struct Leaving {
    departed: DepartedProxy,
    parts: ProcessParts,
    /// The idle connections, if the new process takes them.
    clients: Option<MovingClients>,
}

impl Leaving {
    fn pass_clients(&self, target: ClientTarget) {
        if let Some(clients) = &self.clients {
            clients.pass_to(target);
        }
    }

    /// Waits up to the setting `leave-after` until all connections have ended, and until any older
    /// process whose purges this process passes on has ended. Returns an operator if the new
    /// process ends and this process serves again, otherwise `None`.
    async fn finish(
        mut self,
        mut news: UnboundedReceiver<SuccessorNews>,
        status: Rc<ProxyStatus>,
        keeper: &RemoteKeeper,
    ) -> Result<Option<Operator>, Failure> {
        let until = clock::monotonic() + self.parts.reloader.settings().operation.leave_after;
        if let Some(predecessor) = &self.parts.predecessor {
            predecessor.leaving();
        }
        let mut may_serve_again = true;
        loop {
            // Each admin request in progress has a copy of the status, also the request of this
            // upgrade. So a second copy means that a request is not answered yet.
            let is_answering = Rc::strong_count(&status) > 1;
            let is_followed =
                self.parts.predecessor.as_ref().is_some_and(|predecessor| !predecessor.has_ended());
            let is_passing = self.clients.as_ref().is_some_and(|clients| !clients.is_empty());
            let is_busy =
                is_answering || is_followed || is_passing || self.departed.connections() > 0;
            if !is_busy || clock::monotonic() >= until {
                break;
            }
            tokio::select! {
                wish = self.parts.signals.next() => if wish == SignalWish::Stop { break },
                Some(wish) = self.parts.wished.recv() => {
                    drop(wish.reply.send(Err(NotUpgraded::Leaving)));
                }
                Some(news) = news.recv() => match news {
                    SuccessorNews::Leaving => {
                        may_serve_again = false;
                        self.close_sockets();
                    }
                    SuccessorNews::Ended if may_serve_again => {
                        let text = "foxy: the new process has ended; the old process serves again";
                        terminal::report(Level::Warning, text);
                        match self.serve_again(keeper) {
                            Ok(serving) => return Ok(Some(serving)),
                            Err((why, leaving)) => {
                                // The stores could not be opened again, perhaps because a later
                                // process uses them. So this process only finishes its connections.
                                terminal::report(Level::Warning, &format!("foxy: {why}"));
                                (self, may_serve_again) = (*leaving, false);
                                self.close_sockets();
                                self.pass_clients(ClientTarget::Nobody);
                            }
                        }
                    }
                    SuccessorNews::Ended => self.pass_clients(ClientTarget::Nobody),
                },
                () = tokio::time::sleep(DEPARTED_LOOK_INTERVAL) => {}
            }
        }
        let Self { departed, parts: ProcessParts { mut signals, sockets, .. }, .. } = self;
        sockets.files.into_iter().for_each(SocketFile::leave);
        let Some(closed) = in_thread("stop", move || departed.close()) else {
            return Ok(None);
        };
        tokio::select! {
            _ = closed => {}
            () = again(&mut signals) => {}
        }
        Ok(None)
    }

    fn close_sockets(&mut self) {
        self.departed.sockets.clear();
        self.parts.sockets.admin.clear();
    }

    /// Opens the stores again, and serves from the same sockets with a new proxy. The departed
    /// proxy finishes its connections meanwhile.
    fn serve_again(self, remote: &RemoteKeeper) -> Result<Operator, (Failure, Box<Self>)> {
        match self.open_again() {
            Err(why) => Err((why, Box::new(self))),
            Ok(served) => {
                self.pass_clients(ClientTarget::OwnProxy(served.running.proxy.adopter()));
                let Self { departed, parts, .. } = self;
                let keeper = Arc::clone(&served.running.keeper) as Arc<dyn PurgeKeeper>;
                remote.give_back(&*keeper);
                departed.keeper.replace(keeper);
                process::notify_main(std::process::id());
                let until = clock::monotonic() + parts.reloader.settings().operation.leave_after;
                let finish = move || departed.finish(until);
                // If the thread cannot start, the departed proxy is dropped, and its connections
                // end now.
                let _runs = in_thread("departed", finish);
                Ok(Operator { served, parts })
            }
        }
    }

    fn open_again(&self) -> Result<Served, Failure> {
        let mut listeners = ProxyListeners::default();
        for shared in &self.departed.sockets {
            listeners.add(shared.try_clone().map_err(failed)?);
        }
        let extra = Extra { own: self.parts.sockets.own.clone(), ..Extra::default() };
        let running = opening::open(&self.parts.reloader.settings(), listeners, extra)?;
        self.parts.reloader.switch(reloadable(&running));
        let (reloader, wish) = (Rc::clone(&self.parts.reloader), self.parts.wish.clone());
        Served::begin(running, &self.parts.sockets.admin, reloader, wish).map_err(failed)
    }
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Failed(format!("cannot serve: {error}"))
}

/// Returns the parts to which reloads give new settings.
fn reloadable(running: &RunningProxy) -> Reloadable {
    Reloadable { proxy: running.proxy.handle(), fleet: running.fleet.clone() }
}

fn report_failure(why: &NotUpgraded) {
    terminal::report(Level::Warning, &format!("foxy: no upgrade: {why}"));
}

/// Returns the start-up message.
fn welcome(loaded: &Loaded, running: &RunningProxy, admin: &[SharedListener]) -> String {
    let stores: Vec<OpenStore> = running.stores.iter().map(|store| store.facts.clone()).collect();
    let admin = admin.iter().filter_map(|shared| shared.sockets.first().and_then(address_of));
    let welcome = Welcome {
        settings: &loaded.settings,
        file: loaded.file.as_deref(),
        proxy: &running.addresses,
        admin: &admin.collect::<Vec<_>>(),
        stores: &stores,
        parents: &running.parents,
    };
    welcome.message()
}

fn reopen_log(running: &RunningProxy, signal: &str) {
    if let Some(log) = &running.logs.access {
        log.writer.reopen();
        terminal::report(Level::Info, &format!("foxy: opening the access log again ({signal})"));
    }
}

fn report_certificates(reloaded: Option<Result<(), String>>, cause: &str) {
    match reloaded {
        Some(Ok(())) => {
            terminal::report(Level::Info, &format!("foxy: read the certificates again ({cause})"));
        }
        Some(Err(why)) => {
            let text = format!("foxy: {why}; foxy continues with the old certificates ({cause})");
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
