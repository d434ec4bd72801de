//! The Collector that `foxy leap` starts for its proxies.

use super::arguments::Named;
use crate::failure::Failure;
use crate::lab::collector;
use crate::terminal;
use clap::ArgMatches;
use foxy_base::ByteSize;
use foxy_lab::collector::{Collector, CollectorOptions, CollectorReport, Listen, OfProxy, Reach};
use foxy_report::{Measure, Record};
use std::net::SocketAddr;

/// What the path is called whose proxy stores nothing.
pub const PASSTHROUGH: &str = "passthrough";
/// Room for bodies beside the memory.
const SPOOL: ByteSize = ByteSize(4 << 30);

/// What the paths fetched from the Collector, by name.
#[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^53")]
pub fn bandwidth(report: &CollectorReport) -> Vec<Fetched> {
    let base = [PASSTHROUGH, "direct"]
        .iter()
        .find_map(|name| report.proxies.iter().find(|proxy| proxy.name == *name && proxy.bytes > 0));
    let Some(base) = base else { return Vec::new() };
    let fetched = |proxy: &OfProxy| Fetched {
        name: proxy.name.clone(),
        bytes: proxy.bytes,
        share: proxy.bytes as f64 / base.bytes as f64,
        base: base.name.clone(),
    };
    report.proxies.iter().filter(|proxy| !proxy.name.is_empty()).map(fetched).collect()
}

/// What one path fetched (R127).
pub struct Fetched {
    pub name: String,
    /// Bytes that the Collector sent it, heads too.
    pub bytes: u64,
    /// Of what `base` fetched.
    pub share: f64,
    /// The pass-through proxy, or without one the direct path, which stores nothing either.
    pub base: String,
}

impl Fetched {
    /// As run records.
    #[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^53")]
    pub fn records(&self) -> [Record; 2] {
        let share = format!("bandwidth_share_of_{}", self.base);
        [("bandwidth_bytes", self.bytes as f64, "bytes"), (&share, self.share, "share")]
            .map(|(name, value, unit)| Record::Measure(Measure::once(name, &self.name, value, unit)))
    }
}

/// Starts one if it is asked for, and says where each proxy's parent is: at the given port for the direct path, and at the ports
/// after it for the proxies in their order.
///
/// # Errors
/// An origin that is not near, ports that cannot be listened on, and no room for bodies.
pub fn start(
    matches: &ArgMatches,
    proxies: &[Named],
    origin: Option<SocketAddr>,
) -> Result<Option<Collector>, Failure> {
    let (Some(&first), Some(origin)) = (matches.get_one::<SocketAddr>("collector"), origin) else {
        return Ok(None);
    };
    if !Reach::Offline.covers(origin.ip()) {
        return Err(Failure::Unusable(format!(
            "--direct {origin}: with --collector the origin must have a loopback or private address; name such a one"
        )));
    }
    let names = std::iter::once("direct").chain(proxies.iter().map(|proxy| proxy.name.as_str()));
    let listen = names.zip(first.port()..=u16::MAX).map(|(name, port)| Listen {
        name: Some(name.to_owned()),
        address: SocketAddr::new(first.ip(), port),
    });
    let listen: Vec<Listen> = listen.collect();
    if first.port() == 0 || listen.len() <= proxies.len() {
        let most = usize::from(u16::MAX) - proxies.len();
        let text =
            format!("--collector {first}: each proxy has a port after this one; name one from 1 to {most}");
        return Err(Failure::Unusable(text));
    }
    let folder = std::env::temp_dir();
    let file = collector::spool(&folder, SPOOL).map_err(|error| {
        Failure::Failed(format!("leap: no room for the Collector's bodies in {}: {error}", folder.display()))
    })?;
    let options =
        CollectorOptions { origin: Some(origin), file: Some(file), ..CollectorOptions::new(listen) };
    let running = Collector::start(options).map_err(|error| {
        Failure::Failed(format!("leap: --collector {first}: cannot listen: {error}; choose another port"))
    })?;
    for (proxy, address) in proxies.iter().zip(&running.addresses()[1..]) {
        terminal::print(&format!("leap: {}: parent at http://{address}/", proxy.name));
    }
    Ok(Some(running))
}
