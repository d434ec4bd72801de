//! The resolver of DNS: hickory-resolver with `/etc/hosts` and the servers of `/etc/resolv.conf`, or others, bounded
//! answers and waits. It caches; `resolve` shares lookups. Why not the C library's: `docs/decisions/`.

use crate::upstream::error::ResolveError;
use crate::upstream::resolve::{Addresses, Resolve};
use futures_util::StreamExt;
use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Resolver, TokioResolver};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Answers kept, each at most this long; an answer that a name does not exist is kept shorter.
const ANSWERS: u64 = 4096;
const LONGEST: Duration = Duration::from_secs(3600);
const LONGEST_NEGATIVE: Duration = Duration::from_secs(60);

/// Names resolved by DNS.
pub struct NameResolver {
    /// One for each server, since a resolver of several takes the failure of one for that of all.
    resolvers: Vec<TokioResolver>,
}

/// Why there is no resolver.
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
    /// Asks these servers, or without any those that the system's configuration names; where that names none, `/etc/hosts` and
    /// literals still work and every other lookup fails by [`ResolveError::ServerFailed`].
    ///
    /// # Errors
    /// [`ResolverUnusable`] if the resolver cannot be set up as configured.
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
        let resolver = |servers: &[NameServerConfig]| {
            let configuration = ResolverConfig::from_parts(domain.clone(), search.clone(), servers.to_vec());
            let builder = Resolver::builder_with_config(configuration, TokioRuntimeProvider::default());
            builder.with_options(options.clone()).build().map_err(ResolverUnusable)
        };
        let each = servers.chunks(1).map(resolver).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { resolvers: if each.is_empty() { vec![resolver(&[])?] } else { each } })
    }
}

fn asked_at(server: SocketAddr) -> NameServerConfig {
    let mut asked = NameServerConfig::udp_and_tcp(server.ip());
    asked.connections.iter_mut().for_each(|connection| connection.port = server.port());
    asked
}

/// Puts the system's options within our bounds.
fn bound(options: &mut ResolverOpts) {
    options.cache_size = ANSWERS;
    options.positive_max_ttl = Some(LONGEST);
    options.negative_max_ttl = Some(LONGEST_NEGATIVE);
    options.ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
}

impl Resolve for NameResolver {
    fn resolve(&self, name: &str) -> LocalBoxFuture<'static, Addresses> {
        let ask = |resolver: &TokioResolver| {
            let (resolver, name) = (resolver.clone(), name.to_owned());
            async move { resolver.lookup_ip(name).await.map_err(|error| reason(&error)) }
        };
        let mut asked: FuturesUnordered<_> = self.resolvers.iter().map(ask).collect();
        async move {
            let mut failure = ResolveError::ServerFailed;
            while let Some(answer) = asked.next().await {
                match answer {
                    Ok(found) => return Ok(found.iter().collect()),
                    // Another server may do better.
                    Err(error @ (ResolveError::ServerFailed | ResolveError::TimedOut)) => failure = error,
                    Err(error) => return Err(error),
                }
            }
            Err(failure)
        }
        .boxed_local()
    }
}

fn reason(error: &NetError) -> ResolveError {
    match error {
        NetError::Timeout => ResolveError::TimedOut,
        NetError::Busy => ResolveError::TooManyLookups,
        NetError::Proto(_) => ResolveError::NoSuchHost,
        _ if error.is_nx_domain() || error.is_no_records_found() => ResolveError::NoSuchHost,
        _ => ResolveError::ServerFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn localhost_is_loopback_without_asking_anybody() {
        let addresses =
            NameResolver::new(&[]).expect("a resolver").resolve("localhost").await.expect("localhost");
        assert!(
            !addresses.is_empty() && addresses.iter().all(std::net::IpAddr::is_loopback),
            "{addresses:?}"
        );
    }
}
