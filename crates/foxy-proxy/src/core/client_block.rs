//! Which addresses count as one client where clients share something.

use std::net::IpAddr;

/// One client: an IPv4 address, or the /64 of an IPv6 address, as a site has at least that many to
/// itself (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientBlock(u128);

impl From<IpAddr> for ClientBlock {
    fn from(address: IpAddr) -> Self {
        const HOSTS_OF_A_SITE: u32 = 64;
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => Self(address.to_bits() >> HOSTS_OF_A_SITE << HOSTS_OF_A_SITE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_is_an_ipv4_address_or_the_64_of_an_ipv6_address() {
        let block = |text: &str| ClientBlock::from(text.parse::<IpAddr>().expect("an address"));
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::ffff:0:0", "::1", false),
        ] {
            assert_eq!(block(one) == block(other), same, "{one} {other}");
        }
    }
}
