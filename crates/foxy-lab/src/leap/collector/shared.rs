//! The state that all connections of a Collector (common parent proxy) share. All connections run
//! on one thread.

use super::answer::SharedAnswer;
use super::answer::spool::Spool;
use super::failure::Failure;
use super::hosts::{HostLookup, Hosts, Resolved};
use super::line::CollectorLine;
use super::reach::Pacer;
use super::reasons::Refusal;
use super::request::Request;
use super::table::Table;
use super::{CollectorOptions, CollectorReport, LogSink, MOST_PROXIES, ProxyId, VIA};
use crate::leap::wanted::Wanted;
use crate::wire::alarm::Alarm;
use crate::wire::key::Destination;
use foxy_base::{Instant, clock};
use rustls::ClientConfig;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tokio::time::timeout;

pub struct Shared {
    pub options: CollectorOptions,
    pub alarm: Alarm,
    pub table: RefCell<Table<Rc<SharedAnswer>>>,
    pub spool: Rc<Spool>,
    pub pacer: RefCell<Pacer>,
    pub tls: Arc<ClientConfig>,
    pub fetches: Cell<usize>,
    pub connections: Cell<usize>,
    pub answering: Cell<usize>,
    /// The `Via` value of this Collector (common parent proxy). If a request already contains this
    /// value, the request has come back in a loop.
    pub via: String,
    /// The host names and ports that lead to the Collector's own listeners.
    places: Vec<Destination>,
    hosts: RefCell<Hosts>,
    host_known: Notify,
    report: Arc<Mutex<CollectorReport>>,
    log: RefCell<Option<LogSink>>,
    proxies: RefCell<Vec<(usize, IpAddr)>>,
}

impl Shared {
    /// Creates the state. The caller must be inside a Tokio runtime.
    pub fn new(
        mut options: CollectorOptions,
        places: &[SocketAddr],
        report: Arc<Mutex<CollectorReport>>,
    ) -> io::Result<Self> {
        let (half, port) = (options.memory / 2, places.first().map_or(0, SocketAddr::port));
        let (log, file) = (options.log.take(), options.file.take());
        Ok(Self {
            alarm: Alarm::new()?,
            table: RefCell::new(Table::new(half)),
            spool: Rc::new(Spool::new(half, file)),
            pacer: RefCell::default(),
            tls: options.trust.client_without_memory(options.origin_http2),
            fetches: Cell::default(),
            connections: Cell::default(),
            answering: Cell::default(),
            via: format!("{VIA}{}-{port}", std::process::id()),
            places: places.iter().flat_map(|&place| Destination::names_of(place)).collect(),
            hosts: RefCell::default(),
            host_known: Notify::new(),
            report,
            log: RefCell::new(log),
            proxies: RefCell::default(),
            options,
        })
    }

    /// Returns the number of the proxy with this listener and client address. A new proxy gets the
    /// next number. Returns `None` if there are too many proxies.
    pub fn proxy(&self, listener: usize, address: IpAddr) -> Option<ProxyId> {
        let mut proxies = self.proxies.borrow_mut();
        let known = proxies.iter().position(|proxy| *proxy == (listener, address));
        if known.is_none() && proxies.len() < MOST_PROXIES {
            proxies.push((listener, address));
            return Some(ProxyId(proxies.len() - 1));
        }
        known.map(ProxyId)
    }

    pub fn name_of(&self, proxy: ProxyId) -> String {
        let (listener, address) = self.proxies.borrow()[proxy.0];
        self.options.listen[listener].name.clone().unwrap_or_else(|| address.to_string())
    }

    pub fn is_own(&self, to: &Destination) -> bool {
        self.places.iter().any(|place| to.is_at(place))
    }

    pub fn is_unasked(&self, request: &Request) -> bool {
        let path = request.head.origin_form().unwrap_or_default();
        let may_be = |wanted: &Arc<Wanted>| {
            wanted.may_be(&request.to.authority(), &String::from_utf8_lossy(&path))
        };
        self.options.wanted.as_ref().is_some_and(|wanted| !may_be(wanted))
    }

    pub fn count(&self, act: impl FnOnce(&mut CollectorReport)) {
        act(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn refuse(&self, reason: Refusal) {
        self.count(|report| report.refused[reason as usize] += 1);
    }

    pub fn fail(&self, reason: Failure) {
        self.count(|report| report.failures[reason as usize] += 1);
    }

    pub fn log(&self, line: &CollectorLine, proxy: ProxyId) {
        let evicted = self.table.borrow().evicted();
        self.count(|report| {
            report.take(line, proxy.0);
            report.evicted = evicted;
        });
        if let Some(log) = self.log.borrow_mut().as_mut() {
            log(line);
        }
    }

    pub fn evict(&self) -> bool {
        self.table.borrow_mut().evict()
    }

    /// Returns the address of the host, and the time until which the proxy must wait for this
    /// look-up.
    pub async fn pay_for_name(
        &self,
        to: &Destination,
        proxy: ProxyId,
        arrival: Instant,
    ) -> (Resolved, Instant) {
        let is_address = to.host.starts_with('[') || to.host.parse::<IpAddr>().is_ok();
        let literal = match self.options.origin {
            Some(origin) => Some(Ok(origin.ip())),
            None => self.options.reach.literal(&to.host),
        };
        if let Some(found) = literal.filter(|found| is_address || found.is_err()) {
            return (found, arrival);
        }
        loop {
            let known = self.host_known.notified();
            let lookup = self.hosts.borrow_mut().ask(&to.host, proxy, clock::monotonic());
            match lookup {
                HostLookup::Known(found, paid) => return (found, paid.max(arrival)),
                HostLookup::Wait => known.await,
                HostLookup::Resolve => {
                    let begun = clock::monotonic();
                    let found = match literal {
                        Some(found) => found,
                        None => self.look_up(to).await,
                    };
                    let now = clock::monotonic();
                    let took = now.since(begun) + self.options.name_cost;
                    self.hosts.borrow_mut().resolved(&to.host, found, took, now);
                    self.host_known.notify_waiters();
                }
            }
        }
    }

    async fn look_up(&self, to: &Destination) -> Resolved {
        let found = tokio::net::lookup_host((to.host.as_str(), to.port));
        let found = timeout(self.options.time_limit, found).await;
        let address = found.ok().and_then(Result::ok).and_then(|mut found| found.next());
        address.map(|address| address.ip()).ok_or(Failure::NoSuchHost)
    }
}
