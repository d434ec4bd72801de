//! Runs `foxy serve`. Opens listeners, access log and stores, prints the start-up message, and
//! serves until a signal to stop. Then closes everything in order.

mod access_log;
mod acme;
mod activation;
pub mod admin;
#[cfg_attr(not(feature = "cold"), path = "cold/off.rs")]
mod cold;
pub mod dashboard;
mod fleet;
#[cfg_attr(not(feature = "fleet"), path = "fleet_purges_off.rs")]
mod fleet_purges;
mod http_client;
pub mod listeners;
pub mod opening;
mod operator;
mod origins;
mod otlp;
mod parents;
pub mod process;
mod proxy_settings;
pub mod purge;
pub mod reload;
mod reload_watch;
mod served;
mod socket_file;
mod status;
mod stop;
pub mod stores;
mod tls;
pub mod trial;
mod upgrade;
mod welcome;
pub mod whatif;

pub use opening::{Extra, open};
pub use parents::Sibling;
pub use reload::ReadAgain;
pub use reload_watch::WATCH_TIME;
pub use tls::interception;
pub use upgrade::LONGEST as LONGEST_UPGRADE;
pub use welcome::OpenStore;

use crate::failure::Failure;
use crate::settings::{Loaded, Settings, exposure};
use crate::signals;
use foxy_proxy::server::listener::ListenerKind;
use listeners::{Listeners, OpenSockets, ProxyListeners, address_of};
use operator::Operator;
use std::rc::Rc;
use tokio::task::LocalSet;
use upgrade::predecessor::Predecessor;

/// Serves until a signal to stop. Returns an error if a part cannot be opened; no request was
/// served then. `load` reads the configuration, and returns the function that a reload calls.
pub fn run(
    load: impl FnOnce() -> Result<(Loaded, Box<ReadAgain>), Failure>,
) -> Result<(), Failure> {
    let (predecessor, inherited) = Predecessor::find().unzip();
    let predecessor = predecessor.map(Rc::new);
    let result =
        load().and_then(|loaded| serve(loaded, predecessor.clone(), inherited.unwrap_or_default()));
    if let (Err(why), Some(predecessor)) = (&result, &predecessor) {
        predecessor.failed(why);
    }
    result
}

fn serve(
    (loaded, read_again): (Loaded, Box<ReadAgain>),
    predecessor: Option<Rc<Predecessor>>,
    inherited: OpenSockets,
) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot serve: {error}"));
    signals::outlive_log_rotation().map_err(failed)?;
    let names = std::env::var_os(activation::NAMES).unwrap_or_default();
    let mut given = activation::take(&names.to_string_lossy())?;
    let (also_given, inherited) =
        inherited.into_iter().partition::<Vec<_>, _>(|(_, shared)| shared.is_given);
    given.extend(also_given);
    let mut network = settings.network.clone();
    let is_default = |key: &str| loaded.source(key).is_none();
    let listeners = Listeners::activate(given, &mut network, is_default);
    judge_activated(settings, &listeners.proxy)?;
    listeners::check_transparency(&network, &listeners.proxy)?;
    let Listeners { proxy, admin, files } =
        listeners.open(&network, &settings.fleet.listen, inherited)?;
    let addresses = admin.iter().flat_map(|shared| &shared.sockets).filter_map(address_of);
    let own: Vec<_> = addresses.flat_map(|address| address.sockets()).collect();
    let extra = Extra { own: own.clone(), predecessor: predecessor.clone(), ..Extra::default() };
    let running = opening::open(&fleet::with_found_members(settings), proxy, extra)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::Failed(format!("cannot start the event loop: {error}")))?;
    LocalSet::new().block_on(&runtime, async {
        let sockets = operator::OwnSockets { admin, files, own };
        Operator::begin((loaded, read_again), running, sockets, predecessor)?.run().await
    })
}

/// Refuses a socket of systemd for TLS without a certificate, or that would make foxy an open
/// proxy.
fn judge_activated(settings: &Settings, proxy: &ProxyListeners) -> Result<(), Failure> {
    let is_tls = |kind: ListenerKind| kind == ListenerKind::Tls;
    if proxy.shared.iter().any(|socket| is_tls(socket.kind)) && !settings.has_certificates() {
        let text = "systemd passes foxy a socket for TLS; give `tls-certificate` and `tls-key`";
        return Err(Failure::Unusable(text.into()));
    }
    let mut exposed = proxy.shown.iter().filter(|(address, _)| address.is_exposed());
    let refusal =
        exposed.find_map(|(address, kind)| exposure::refusal(settings, address, is_tls(*kind)));
    refusal.map_or(Ok(()), |message| Err(Failure::Unusable(message)))
}
