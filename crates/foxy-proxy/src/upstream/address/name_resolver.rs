//! Resolves names by DNS, with the library hickory-resolver. Uses `/etc/hosts`, and the DNS servers
//! from `/etc/resolv.conf` or from the proxy's configuration. Caches a limited number of answers.
//! `resolve` shares look-ups between requests. docs/decisions/dns.md explains why this module does
//! not use the C library.

use crate::upstream::address::resolve::{Addresses, Resolve};
use crate::upstream::error::ResolveError;
use futures_util::StreamExt;
use futures_util::future::{FutureExt, LocalBoxFuture, ready};
use futures_util::stream::FuturesUnordered;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, Resolver, TokioResolver};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest number of DNS answers that the resolver caches.
const MAX_ANSWERS: usize = 4096;
/// Longest time for which the resolver caches an answer with addresses.
const MAX_TTL: Duration = Duration::from_secs(3600);
/// Longest time for which the resolver caches the answer that a name has no address.
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(60);

/// A resolver that uses DNS.
pub struct NameResolver {
    /// One resolver for each DNS server. A resolver with several servers would report the failure
    /// of one server as a failure of all servers.
    resolvers: Vec<TokioResolver>,
    known: Rc<KnownNames>,
}

/// The reason why the resolver could not be created.
#[derive(Debug)]
pub struct ResolverUnusable(NetError);

impl fmt::Display for ResolverUnusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "DNS cannot be set up from /etc/resolv.conf: {}; it needs `nameserver ADDRESS` lines",
            self.0
        )
    }
}

impl std::error::Error for ResolverUnusable {}

impl NameResolver {
    /// Creates a resolver that uses the DNS servers `servers`. If the list is empty, uses the
    /// servers of the system's configuration. If this configuration names no server, only
    /// `/etc/hosts` and IP addresses work. Every other look-up then fails with
    /// [`ResolveError::ServerFailed`].
    pub fn new(servers: &[SocketAddr]) -> Result<Self, ResolverUnusable> {
        let (configuration, mut options) = match servers {
            [] => read_system_conf().unwrap_or_default(),
            _ => Default::default(),
        };
        bound(&mut options);
        let (domain, search, of_the_system) = configuration.into_parts();
        let servers = match servers {
            [] => of_the_system,
            _ => servers.iter().map(|&server| asked_at(server)).collect(),
        };
        let hosts = Arc::new(Hosts::from_system().unwrap_or_default());
        let resolver = |servers: &[NameServerConfig]| {
            let configuration =
                ResolverConfig::from_parts(domain.clone(), search.clone(), servers.to_vec());
            let builder =
                Resolver::builder_with_config(configuration, TokioRuntimeProvider::default());
            let mut resolver = builder.with_options(options.clone()).build()?;
            resolver.set_hosts(Arc::clone(&hosts));
            Ok(resolver)
        };
        let each = servers
            .chunks(1)
            .map(resolver)
            .collect::<Result<Vec<_>, _>>()
            .map_err(ResolverUnusable)?;
        let resolvers =
            if each.is_empty() { vec![resolver(&[]).map_err(ResolverUnusable)?] } else { each };
        Ok(Self { resolvers, known: Rc::new(KnownNames::new(hosts)) })
    }

    pub(super) fn resolvers(&self) -> &[TokioResolver] {
        &self.resolvers
    }
}

fn asked_at(server: SocketAddr) -> NameServerConfig {
    let mut asked = NameServerConfig::udp_and_tcp(server.ip());
    asked.connections.iter_mut().for_each(|connection| connection.port = server.port());
    asked
}

fn bound(options: &mut ResolverOpts) {
    options.cache_size = MAX_ANSWERS as u64;
    options.positive_max_ttl = Some(MAX_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
    options.ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
}

impl Resolve for NameResolver {
    fn resolve(&self, name: &str) -> LocalBoxFuture<'static, Addresses> {
        let (text, known) = (Box::<str>::from(name), Rc::clone(&self.known));
        let Ok(name) = Name::from_utf8(name) else {
            return ready(Err(ResolveError::NoSuchHost)).boxed_local();
        };
        let ask = |resolver: &TokioResolver| {
            let (resolver, name) = (resolver.clone(), name.clone());
            async move { resolver.lookup_ip(name).await.map_err(|error| reason(&error)) }
        };
        let mut asked: FuturesUnordered<_> = self.resolvers.iter().map(ask).collect();
        async move {
            let mut failure = ResolveError::ServerFailed;
            while let Some(answer) = asked.next().await {
                match answer {
                    Ok(found) => {
                        let addresses: Rc<[IpAddr]> = found.iter().collect();
                        known.learn(text, &addresses, found.as_lookup().valid_until());
                        return Ok(addresses);
                    }
                    // This DNS server failed. The next server may succeed.
                    Err(error) if error.is_the_servers() => failure = error,
                    Err(error) => return Err(error),
                }
            }
            Err(failure)
        }
        .boxed_local()
    }

    fn known(&self, name: &str) -> Option<Rc<[IpAddr]>> {
        self.known.get(name)
    }
}

pub(super) fn reason(error: &NetError) -> ResolveError {
    match error {
        NetError::Timeout => ResolveError::TimedOut,
        NetError::Busy => ResolveError::TooManyLookups,
        NetError::Proto(_) | NetError::QueryCaseMismatch => ResolveError::BadAnswer,
        _ if error.is_nx_domain() || error.is_no_records_found() => ResolveError::NoSuchHost,
        _ => ResolveError::ServerFailed,
    }
}

/// Names whose addresses are known without a DNS query: names in `/etc/hosts`, and names with a
/// fresh DNS answer. The library has its own cache, but a read of that cache may start a query.
pub(crate) struct KnownNames {
    hosts: Arc<Hosts>,
    answers: RefCell<HashMap<Box<str>, Answer>>,
}

struct Answer {
    addresses: Rc<[IpAddr]>,
    until: Instant,
}

impl KnownNames {
    pub(crate) fn new(hosts: Arc<Hosts>) -> Self {
        Self { hosts, answers: RefCell::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Rc<[IpAddr]>> {
        self.answered(name, now()).or_else(|| self.in_hosts(name))
    }

    pub(crate) fn learn(&self, name: Box<str>, addresses: &Rc<[IpAddr]>, until: Instant) {
        let (mut answers, now) = (self.answers.borrow_mut(), now());
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, answer| now < answer.until);
        }
        if answers.len() >= MAX_ANSWERS {
            answers.clear();
        }
        answers.insert(name, Answer { addresses: Rc::clone(addresses), until });
    }

    fn answered(&self, name: &str, now: Instant) -> Option<Rc<[IpAddr]>> {
        let answers = self.answers.borrow();
        answers
            .get(name)
            .filter(|answer| now < answer.until)
            .map(|answer| Rc::clone(&answer.addresses))
    }

    fn in_hosts(&self, name: &str) -> Option<Rc<[IpAddr]>> {
        let name = Name::from_utf8(name).ok()?;
        let found = [RecordType::AAAA, RecordType::A].map(|kind| {
            let found = self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
            found.map(|found| {
                found
                    .answers()
                    .iter()
                    .filter_map(|record| record.data.ip_addr())
                    .collect::<Vec<_>>()
            })
        });
        let addresses: Rc<[IpAddr]> = found.into_iter().flatten().flatten().collect();
        (!addresses.is_empty()).then_some(addresses)
    }
}

/// Returns the current time. The library gives the expiry of its answers on the same clock.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UdpSocket;

    #[tokio::test]
    async fn localhost_is_loopback_without_asking_anybody() {
        let addresses = NameResolver::new(&[])
            .expect("a resolver")
            .resolve("localhost")
            .await
            .expect("localhost");
        assert!(
            !addresses.is_empty() && addresses.iter().all(std::net::IpAddr::is_loopback),
            "{addresses:?}"
        );
    }

    /// Starts a DNS server that answers every query with the query itself, changed by `garble`.
    async fn garbling(garble: fn(&mut Vec<u8>)) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let address = socket.local_addr().expect("bound");
        tokio::spawn(async move {
            let mut packet = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                let mut answer = packet[..length].to_vec();
                answer[2] |= 0x80;
                garble(&mut answer);
                socket.send_to(&answer, from).await.expect("sent");
            }
        });
        address
    }

    async fn asked(servers: &[SocketAddr]) -> Addresses {
        NameResolver::new(servers).expect("a resolver").resolve("a.test").await
    }

    #[tokio::test]
    async fn an_answer_that_is_not_understood_does_not_mean_that_the_name_does_not_exist() {
        let garbled: [fn(&mut Vec<u8>); 3] = [
            |answer| answer.truncate(14),
            |answer| answer[12..].fill(0xff),
            |answer| {
                // The header announces a record that the answer does not contain.
                answer[7] = 1;
                answer.truncate(24);
            },
        ];
        for garble in garbled {
            assert_eq!(asked(&[garbling(garble).await]).await, Err(ResolveError::BadAnswer));
        }
    }

    #[tokio::test]
    async fn another_server_is_heard_when_an_answer_is_not_understood() {
        let found = garbling(|answer| {
            // Makes a complete answer from the question. A question for an IPv4 address gets one
            // address, which is valid for a minute.
            let end = 12 + 8 + 4;
            let wants_v4 = answer[end - 3] == 1;
            answer.truncate(end);
            answer[6..12].copy_from_slice(&[0, u8::from(wants_v4), 0, 0, 0, 0]);
            if wants_v4 {
                answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]);
            }
        });
        let garbled = garbling(|answer| answer.truncate(14));
        let (found, garbled) = (found.await, garbled.await);
        let resolver = NameResolver::new(&[found]).expect("a resolver");
        assert_eq!(resolver.known("a.test"), None);
        let addresses = resolver.resolve("a.test").await.expect("found");
        assert_eq!(resolver.known("a.test"), Some(addresses), "an answer is known for a minute");
        for servers in [[garbled, found], [found, garbled]] {
            let addresses = asked(&servers).await.expect("found");
            assert_eq!(addresses.as_ref(), ["192.0.2.7".parse::<IpAddr>().expect("an address")]);
        }
    }

    #[tokio::test]
    async fn what_is_no_name_is_asked_of_nobody() {
        let resolver =
            NameResolver::new(&[garbling(|_| unreachable!("asked")).await]).expect("a resolver");
        for name in ["a..test", &"a".repeat(64), &"a.".repeat(128)] {
            assert_eq!(resolver.resolve(name).await, Err(ResolveError::NoSuchHost), "{name}");
        }
    }

    #[test]
    fn an_answer_is_known_as_long_as_it_is_good_and_a_host_of_the_machine_for_ever() {
        let mut hosts = Hosts::default();
        hosts.read_hosts_conf(&b"192.0.2.1 here.test\n2001:db8::1 here.test\n"[..]).expect("sound");
        let names = KnownNames::new(Arc::new(hosts));
        let address: Rc<[IpAddr]> = Rc::from([IpAddr::from([192, 0, 2, 7])]);
        let now = now();
        names.learn("a.test".into(), &address, now + Duration::from_secs(60));
        assert_eq!(names.answered("a.test", now + Duration::from_secs(59)), Some(address));
        assert_eq!(names.answered("a.test", now + Duration::from_secs(60)), None);
        assert_eq!(names.get("here.test").expect("in the file").len(), 2);
        assert_eq!(names.get("there.test"), None);
    }

    #[test]
    fn answers_are_bounded() {
        let names = KnownNames::new(Arc::default());
        let address: Rc<[IpAddr]> = Rc::from([IpAddr::from([192, 0, 2, 7])]);
        for number in 0..=MAX_ANSWERS {
            names.learn(format!("{number}.test").into(), &address, now() + Duration::from_secs(60));
        }
        assert!(names.answers.borrow().len() <= MAX_ANSWERS);
        assert!(names.get(&format!("{MAX_ANSWERS}.test")).is_some());
    }
}
