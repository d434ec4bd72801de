//! A running Collector (common parent proxy). It opens its listeners, serves them on one thread,
//! and stops on request.

use super::reach;
use super::reasons::Refusal;
use super::serve::{self, ProxyConnection};
use super::shared::Shared;
use super::{CollectorOptions, CollectorReport};
use crate::wire::tls::entrance;
use foxy_base::clock;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

const PAUSE: Duration = Duration::from_millis(10);
const SWEEP: Duration = Duration::from_secs(1);

/// The time for which running answers may continue after the Collector (common parent proxy) was
/// told to stop.
const GRACE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(2);

/// A running Collector (common parent proxy). Dropping this value stops the Collector.
#[derive(Debug)]
pub struct Collector {
    addresses: Vec<SocketAddr>,
    report: Arc<Mutex<CollectorReport>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    /// Binds all listeners, then serves them on a new thread.
    pub fn start(options: CollectorOptions) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for listen in &options.listen {
            let listener = TcpListener::bind(listen.address).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", listen.address))
            })?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let addresses =
            listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let places = addresses.clone();
        let report = Arc::new(Mutex::new(CollectorReport::default()));
        let counted = Arc::clone(&report);
        let (stop, stopped) = oneshot::channel();
        let (say, said) = std::sync::mpsc::channel();
        let run = move || {
            let started = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .and_then(|runtime| {
                    let shared = {
                        let _inside = runtime.enter();
                        Rc::new(Shared::new(options, &places, counted)?)
                    };
                    Ok((runtime, shared))
                });
            let (runtime, shared) = match started {
                Ok(started) => started,
                Err(error) => return drop(say.send(Err(error))),
            };
            drop(say.send(Ok(())));
            let tasks = tokio::task::LocalSet::new();
            tasks.block_on(&runtime, serve_all(listeners, shared, stopped));
        };
        let thread = std::thread::Builder::new().name("collector".into()).spawn(run)?;
        said.recv().map_err(io::Error::other)??;
        Ok(Self { addresses, report, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the addresses of the listeners, in the order of [`CollectorOptions::listen`].
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Stops the Collector (common parent proxy). Returns the final report, which includes the last
    /// answers.
    pub fn stop(mut self) -> CollectorReport {
        self.end();
        self.report()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panicked thread has already reported its panic, so the result is not needed.
            let _ = thread.join();
        }
    }

    /// Returns the counts so far. An answer counts after its last byte was sent.
    pub fn report(&self) -> CollectorReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve_all(
    listeners: Vec<TcpListener>,
    shared: Rc<Shared>,
    stopped: oneshot::Receiver<()>,
) {
    let alarmed = Rc::clone(&shared);
    let alarm = tokio::task::spawn_local(async move { alarmed.alarm.run().await });
    for (number, listener) in listeners.into_iter().enumerate() {
        tokio::task::spawn_local(accept(number, listener, Rc::clone(&shared)));
    }
    let sweep = async {
        loop {
            tokio::time::sleep(SWEEP).await;
            shared.table.borrow_mut().forget(clock::monotonic());
        }
    };
    tokio::select! {
        // The owner of the Collector (common parent proxy) has called `stop`, or has dropped the
        // Collector.
        _ = stopped => {
            let until = clock::monotonic() + GRACE;
            while shared.answering.get() > 0 && clock::monotonic() < until {
                tokio::time::sleep(LOOK).await;
            }
        }
        () = sweep => {}
        // Answers wait for this timer. Without the timer, the Collector (common parent proxy) would
        // send answers too early. So the Collector stops if the timer fails.
        _ = alarm => {}
    }
}

async fn accept(number: usize, listener: TcpListener, shared: Rc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((client, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let address = peer.ip().to_canonical();
        let refused = if !reach::is_near(address) {
            Some(Refusal::Stranger)
        } else if shared.connections.get() >= shared.options.most_connections {
            Some(Refusal::TooManyConnections)
        } else {
            None
        };
        match (refused, refused.is_none().then(|| shared.proxy(number, address)).flatten()) {
            (None, Some(proxy)) => {
                shared.connections.set(shared.connections.get() + 1);
                let shared = Rc::clone(&shared);
                tokio::task::spawn_local(async move {
                    // An error ends only this connection, so the result does not matter.
                    let _ = entrance::serve(
                        &ProxyConnection { shared: Rc::clone(&shared), proxy },
                        client,
                    )
                    .await;
                    shared.connections.set(shared.connections.get() - 1);
                });
            }
            (reason, _) => turn_away(&shared, client, reason.unwrap_or(Refusal::TooManyProxies)),
        }
    }
}

fn turn_away(shared: &Shared, client: TcpStream, reason: Refusal) {
    shared.refuse(reason);
    // If this write fails, the client has left and only the refusal is lost. So the result does not
    // matter.
    let _ = client.try_write(&serve::refusal(reason).to_bytes());
}
